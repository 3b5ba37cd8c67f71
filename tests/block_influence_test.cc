// What a token cannot see has no influence on it: every intermediate of the
// tokens before a changed one, or before the end of a longer sequence, keeps
// its bytes.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/block_case.h"

namespace heed::test {
namespace {

// Two heads on one, RoPE, several chunks of inputs.
BlockCase Causal(int64_t len, int32_t dtype) {
  BlockCase c;
  heed_block_desc_init(&c.desc);
  c.desc.d_model = 268;
  c.desc.heads_q = 2;
  c.desc.heads_kv = 1;
  c.desc.dim_qk = 12;
  c.desc.dim_v = 20;
  c.desc.norm = HEED_NORM_LAYER;
  c.desc.norm_place = HEED_NORM_PRE;
  c.desc.norm_eps = 1e-5;
  c.desc.causal = 1;
  c.desc.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  c.desc.rope = HEED_ROPE_INTERLEAVED;
  c.desc.rope_theta = 10000;
  c.batch = 1;
  c.len = len;
  c.qkv.dtype = c.out.dtype = dtype;
  Random random(static_cast<uint64_t>(len));
  FillNormal(&random, &c);
  return c;
}

constexpr int64_t kLengths[] = {1, 2, 5, 6, 7, 17, 48, 97, 253, 769, 1100};

TEST(BlockInfluence, AChangedTokenLeavesThoseBeforeIt) {
  for (const int64_t len : kLengths) {
    for (const int threads : {1, 2}) {
      Settings settings;
      settings.threads = threads;
      const BlockCase c = Causal(len, len % 2 == 0 ? HEED_F32 : HEED_BF16);
      const BlockValues before = RunBlock(c, settings, len <= 253);
      ASSERT_EQ(before.status, HEED_OK) << before.error;
      for (const int64_t t : {int64_t{0}, len / 3, len / 2, len - 1}) {
        for (const float value : {1.5f, NAN}) {
          BlockCase changed = c;
          changed.x[static_cast<size_t>(t * c.desc.d_model + 3)] = value;
          const BlockValues after = RunBlock(changed, settings, len <= 253);
          ASSERT_EQ(
              Difference(FirstTokens(c, after, t), FirstTokens(c, before, t)),
              "")
              << len << " tokens, " << threads << " threads, token " << t;
          // The token itself sees the change.
          ASSERT_NE(Difference(FirstTokens(c, after, t + 1),
                               FirstTokens(c, before, t + 1)),
                    "");
          if (before.scores.empty()) continue;
          for (int64_t head = 0; head < c.desc.heads_q; ++head) {
            for (int64_t i = head * len * len; i < (head * len + t) * len;
                 ++i) {
              const auto at = static_cast<size_t>(i);
              ASSERT_TRUE(SameBits(after.scores[at], before.scores[at]) &&
                          SameBits(after.pattern[at], before.pattern[at]))
                  << len << " tokens, token " << t;
            }
          }
        }
      }
    }
  }
}

TEST(BlockInfluence, TheRestOfASequenceDoesNotShow) {
  const BlockCase longest = Causal(1100, HEED_F32);
  const BlockValues all = RunBlock(longest);
  ASSERT_EQ(all.status, HEED_OK) << all.error;
  for (const int64_t len : kLengths) {
    for (const int threads : {1, 2}) {
      BlockCase c = longest;
      c.len = len;
      c.x.resize(static_cast<size_t>(len * c.desc.d_model));
      Settings settings;
      settings.threads = threads;
      ASSERT_EQ(
          Difference(RunBlock(c, settings), FirstTokens(longest, all, len)), "")
          << len << " tokens, " << threads << " threads";
    }
  }
}

// Without positional information two tokens that are alike have the same q, k
// and v; with RoPE their q and k differ and their v do not.
TEST(BlockInfluence, OnlyRopeTellsPositionsApart) {
  for (const bool with_rope : {false, true}) {
    BlockCase c = Causal(9, HEED_F32);
    if (!with_rope) c.desc.rope = HEED_ROPE_NONE;
    const int64_t width = c.desc.d_model;
    std::copy_n(c.x.begin() + 2 * width, width, c.x.begin() + 7 * width);
    const BlockValues values = RunBlock(c);
    const auto same = [&](const std::vector<float>& of, int64_t dim) {
      return std::equal(of.begin() + 2 * dim, of.begin() + 3 * dim,
                        of.begin() + 7 * dim);
    };
    EXPECT_EQ(same(values.q, c.desc.dim_qk), !with_rope);
    EXPECT_EQ(same(values.k, c.desc.dim_qk), !with_rope);
    EXPECT_TRUE(same(values.v, c.desc.dim_v));
  }
}

}  // namespace
}  // namespace heed::test
