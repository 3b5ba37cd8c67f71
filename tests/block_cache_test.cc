// Tokens computed piece by piece against a cache have the bits they have when
// all are computed at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "tests/block_case.h"

namespace heed::test {
namespace {

using Memory = std::unique_ptr<void, void (*)(void*)>;

// A block and its cache, which holds k and v token by token with room between
// tokens, unlike anything else in these tests.
class Decoder {
 public:
  Decoder(const BlockCase& c, int64_t batch, int64_t room,
          const Settings& settings)
      : c_(c), room_(room), settings_(settings) {
    const heed_block_desc desc = Desc(c);
    const heed_options options = OptionsOf(settings_);
    EXPECT_EQ(heed_block_create(&desc, &options, &block_), HEED_OK)
        << heed_last_error();
    const auto floats = [&](int64_t dim) {
      return std::vector<float>(static_cast<size_t>(batch * room * Step(dim)),
                                NAN);
    };
    k_ = floats(desc.dim_qk);
    v_ = floats(desc.dim_v);
  }
  ~Decoder() { heed_block_destroy(block_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // `len` tokens of sequences [first, first + count), whose x lie dense at
  // `x`.
  BlockValues Take(const float* x, int64_t first, int64_t count, int64_t len,
                   std::vector<int64_t> positions, bool with_scores = false) {
    const heed_options options = OptionsOf(settings_);
    heed_block_plan* plan = nullptr;
    BlockValues values;
    EXPECT_EQ(
        heed_block_plan_create(block_, count, len, room_, &options, &plan),
        HEED_OK)
        << heed_last_error();
    heed_block_call call;
    BindValues(c_, count, len, with_scores ? room_ : 0, &call, &values);
    call.x = heed_dense_input(x, 1, len, c_.desc.d_model);
    call.positions = positions.data();
    call.k_cache = Cache(&k_, c_.desc.dim_qk, first);
    call.v_cache = Cache(&v_, c_.desc.dim_v, first);
    call.workspace_size = heed_block_plan_workspace_size(plan);
    const Memory workspace(
        std::aligned_alloc(64, (call.workspace_size + 63) / 64 * 64),
        std::free);
    call.workspace = workspace.get();
    values.status = heed_block_run(plan, &call);
    if (values.status != HEED_OK) values.error = heed_last_error();
    EXPECT_EQ(values.error, "");
    heed_block_plan_destroy(plan);
    return values;
  }

 private:
  int64_t Step(int64_t dim) const { return c_.desc.heads_kv * dim + 5; }
  heed_output Cache(std::vector<float>* data, int64_t dim, int64_t first) {
    float* begin = data->data() + first * room_ * Step(dim);
    return {begin, room_ * Step(dim), dim, Step(dim), 1};
  }

  const BlockCase& c_;
  int64_t room_;
  Settings settings_;
  heed_block* block_ = nullptr;
  std::vector<float> k_, v_;
};

// Tokens [begin, begin + tokens) of [outer, len, width].
std::vector<float> Part(const std::vector<float>& from, int64_t outer,
                        int64_t len, int64_t width, int64_t begin,
                        int64_t tokens) {
  std::vector<float> to;
  for (int64_t i = 0; i < outer; ++i) {
    const auto at = from.begin() + (i * len + begin) * width;
    to.insert(to.end(), at, at + tokens * width);
  }
  return to;
}

BlockValues TokensOf(const BlockCase& c, const BlockValues& all, int64_t begin,
                     int64_t tokens) {
  const heed_block_desc& desc = c.desc;
  const auto part = [&](const std::vector<float>& from, int64_t heads,
                        int64_t width) {
    return Part(from, c.batch * heads, c.len, width, begin, tokens);
  };
  BlockValues values;
  values.y = part(all.y, 1, desc.d_model);
  values.ln = part(all.ln, 1, desc.d_model);
  values.attn_out = part(all.attn_out, 1, desc.d_model);
  values.resid = part(all.resid, 1, desc.d_model);
  values.q = part(all.q, desc.heads_q, desc.dim_qk);
  values.k = part(all.k, desc.heads_kv, desc.dim_qk);
  values.v = part(all.v, desc.heads_kv, desc.dim_v);
  values.z = part(all.z, desc.heads_q, desc.dim_v);
  return values;
}

// A random causal block, whose positions are those of its cache.
BlockCase Causal(uint64_t seed) {
  BlockCase c = RandomBlock(seed);
  c.desc.causal = 1;
  c.positions.clear();
  return c;
}

void ExpectSamePieces(const BlockCase& c, int64_t piece, uint64_t seed,
                      const Settings& settings) {
  const BlockValues all = RunBlock(c, {});
  ASSERT_EQ(all.status, HEED_OK) << all.error;
  const int64_t room = c.len + static_cast<int64_t>(seed % 3);
  Decoder decoder(c, c.batch, room, settings);
  for (int64_t begin = 0; begin < c.len; begin += piece) {
    const int64_t tokens = std::min(piece, c.len - begin);
    const std::vector<float> x =
        Part(c.x, c.batch, c.len, c.desc.d_model, begin, tokens);
    const BlockValues got =
        decoder.Take(x.data(), 0, c.batch, tokens,
                     std::vector<int64_t>(static_cast<size_t>(c.batch), begin));
    ASSERT_EQ(Difference(got, TokensOf(c, all, begin, tokens)), "")
        << "seed " << seed << ", " << tokens << " tokens at " << begin << ": "
        << NameOf(c);
  }
}

TEST(BlockCache, OneTokenAtATimeGivesTheSameBytes) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Settings settings;
    settings.threads = 1 + static_cast<int>(seed % 3);
    ExpectSamePieces(Causal(seed), 1, seed, settings);
    if (HasFatalFailure()) return;
  }
}

TEST(BlockCache, PiecesOfAnySizeGiveTheSameBytes) {
  for (uint64_t seed = 200; seed <= 260; ++seed) {
    Settings settings;
    settings.threads = 1 + static_cast<int>(seed % 3);
    ExpectSamePieces(Causal(seed), 1 + static_cast<int64_t>(seed % 11), seed,
                     settings);
    if (HasFatalFailure()) return;
  }
}

// More keys than a chunk of the row program, so that threads cut them.
TEST(BlockCache, LongSequencesGiveTheSameBytes) {
  BlockCase c = Causal(1);
  heed_block_desc& desc = c.desc;
  desc.d_model = 32;
  desc.heads_q = 2;
  desc.heads_kv = 1;
  desc.dim_qk = desc.dim_v = 16;
  desc.window = 0;
  desc.rope = HEED_ROPE_HALF;
  desc.rope_width = 0;
  c.batch = 1;
  c.len = 1700;
  c.gain.clear();
  c.bias.clear();
  c.slopes.clear();
  c.sinks.clear();
  c.is_packed = true;
  for (StoredMatrix* m : {&c.qkv, &c.out}) m->stride = 0;
  Random random(5);
  FillNormal(&random, &c);
  const BlockValues all = RunBlock(c);
  Settings settings;
  settings.threads = 3;
  Decoder decoder(c, 1, 2000, settings);
  decoder.Take(c.x.data(), 0, 1, 1600, {0});
  for (int64_t t = 1600; t < c.len; ++t) {
    ASSERT_EQ(Difference(decoder.Take(c.x.data() + t * 32, 0, 1, 1, {t}),
                         TokensOf(c, all, t, 1)),
              "")
        << "token " << t;
  }
}

// Each sequence is filled by itself to a length of its own; then all take steps
// together.
TEST(BlockCache, SequencesOfDifferentLengthsStepTogether) {
  for (uint64_t seed = 300; seed <= 340; ++seed) {
    BlockCase c = Causal(seed);
    c.batch = 3;
    c.len = 30;
    Random random(seed);
    c.x.resize(static_cast<size_t>(c.batch * c.len * c.desc.d_model));
    random.FillNormal(&c.x);
    const BlockValues all = RunBlock(c);
    const int64_t width = c.desc.d_model;
    Decoder decoder(c, c.batch, c.len, {});
    std::vector<int64_t> positions;
    for (int64_t b = 0; b < c.batch; ++b) {
      positions.push_back(1 + random.Below(25));
      decoder.Take(c.x.data() + b * c.len * width, b, 1, positions[b], {0});
    }
    for (int step = 0; step < 4; ++step) {
      std::vector<float> x;
      for (int64_t b = 0; b < c.batch; ++b) {
        const auto at = c.x.begin() + (b * c.len + positions[b]) * width;
        x.insert(x.end(), at, at + width);
      }
      const BlockValues got = decoder.Take(x.data(), 0, c.batch, 1, positions);
      for (int64_t b = 0; b < c.batch; ++b) {
        const auto want = all.y.begin() + (b * c.len + positions[b]) * width;
        ASSERT_TRUE(std::equal(want, want + width, got.y.begin() + b * width,
                               [](float p, float q) { return SameBits(p, q); }))
            << "seed " << seed << ", sequence " << b << ": " << NameOf(c);
        ++positions[b];
      }
    }
  }
}

// Scores and pattern of a step are those of its row.
TEST(BlockCache, ScoresOfAStepAreThoseOfItsRow) {
  for (uint64_t seed = 400; seed <= 430; ++seed) {
    const BlockCase c = Causal(seed);
    const BlockValues all = RunBlock(c, {}, true);
    const int64_t room = c.len + 2, last = c.len - 1;
    const int64_t heads = c.batch * c.desc.heads_q;
    Decoder decoder(c, c.batch, room, {});
    const auto at = [&](int64_t position) {
      return std::vector<int64_t>(static_cast<size_t>(c.batch), position);
    };
    if (last > 0) {
      const std::vector<float> x =
          Part(c.x, c.batch, c.len, c.desc.d_model, 0, last);
      decoder.Take(x.data(), 0, c.batch, last, at(0));
    }
    const std::vector<float> x =
        Part(c.x, c.batch, c.len, c.desc.d_model, last, 1);
    const BlockValues got =
        decoder.Take(x.data(), 0, c.batch, 1, at(last), true);
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t key = 0; key < c.len; ++key) {
        const auto i = static_cast<size_t>(head * room + key);
        const auto j = static_cast<size_t>((head * c.len + last) * c.len + key);
        ASSERT_TRUE(SameBits(got.scores[i], all.scores[j]) &&
                    SameBits(got.pattern[i], all.pattern[j]))
            << "seed " << seed << ", head " << head << ", key " << key;
      }
    }
  }
}

}  // namespace
}  // namespace heed::test
