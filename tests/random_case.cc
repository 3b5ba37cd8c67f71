#include "tests/random_case.h"

#include <algorithm>
#include <cfloat>
#include <initializer_list>
#include <vector>

#include "tests/input_families.h"
#include "tests/special_values.h"

namespace heed::test {
namespace {

// Multiply-adds of one case, so that thousands of them take a minute in scalar
// code; and of one in many, which may be larger.
constexpr int64_t kUsualWork = 300000;
constexpr int64_t kLargeWork = 4000000;

template <typename T>
T Pick(Random* random, std::initializer_list<T> values) {
  return values.begin()[random->Below(static_cast<int64_t>(values.size()))];
}

// Elements of a mask that stand for `len` tokens.
int64_t Blocks(int64_t len, int32_t block) {
  return block > 1 ? (len + block - 1) / block : len;
}

bool OneIn(Random* random, int64_t count) { return random->Below(count) == 0; }

// Draws the parts of a case in an order that a change must not disturb more
// than it has to: every seed in a report names one case.
class Maker {
 public:
  Maker(uint64_t seed, uint32_t wanted) : random_(seed), wanted_(wanted) {}

  Case Make() {
    DrawShape();
    DrawOptions();
    c_ = MakeCase(problem_);
    DrawSequences();
    DrawPages();
    c_.tokens_first = OneIn(&random_, 2);
    SizeInputs(&c_);
    Fill();
    DrawScale();
    DrawMask();
    DrawHeadNumbers();
    return std::move(c_);
  }

 private:
  bool Wants(uint32_t feature) const { return (wanted_ & feature) != 0; }

  // What was asked for, and else one case in `count` unless it is to be plain.
  bool Has(uint32_t feature, int64_t count) {
    const bool by_chance = OneIn(&random_, count);
    return Wants(feature) || (by_chance && !Wants(kPlain));
  }

  int64_t Work() const {
    const heed_problem& p = problem_;
    return p.batch * p.heads_q * p.len_q * std::max<int64_t>(1, p.len_k) *
           (p.dim_qk + p.dim_v + 8);
  }

  void DrawShape() {
    const int64_t batch = Pick<int64_t>(&random_, {1, 1, 2, 3});
    const int64_t heads_kv = Pick<int64_t>(&random_, {1, 1, 1, 2});
    const int64_t group = Pick<int64_t>(&random_, {1, 1, 2, 3, 4, 5, 7, 8});
    problem_ = MakeProblem(batch, group * heads_kv, heads_kv, 1, 1, 1, 1);
    const bool decode = Has(kDecode, 2);
    const bool many = Has(kManyKeys, 24);
    problem_.len_q = decode ? 1 + random_.Below(OneIn(&random_, 2) ? 2 : 16)
                            : Pick<int64_t>(&random_, {9, 17, 24, 31, 48, 49,
                                                       65, 97, 101, 130});
    if (many) {
      problem_.len_k = OneIn(&random_, 3) ? 1530 + random_.Below(70)
                                          : 760 + random_.Below(70);
    } else {
      problem_.len_k = OneIn(&random_, 40) ? 0 : 1 + random_.Below(199);
    }
    const auto width = [this] {
      return Pick<int64_t>(&random_,
                           {1, 3, 8, 15, 16, 17, 24, 32, 40, 64, 72, 80, 128});
    };
    problem_.dim_qk = width();
    problem_.dim_v = OneIn(&random_, 2) ? problem_.dim_qk : width();
    if (OneIn(&random_, 30)) problem_.dim_qk = 0;
    if (OneIn(&random_, 30)) problem_.dim_v = 0;
    // Smaller in what matters least, until it is small enough.
    const int64_t most = OneIn(&random_, 50) ? kLargeWork : kUsualWork;
    while (Work() > most) {
      heed_problem& p = problem_;
      const int64_t kv_heads = p.heads_kv, now_group = p.heads_q / kv_heads;
      if (p.batch > 1 && OneIn(&random_, 3)) {
        --p.batch;
      } else if (kv_heads > 1) {
        p.heads_kv = 1;
        p.heads_q = now_group;
      } else if (p.dim_qk + p.dim_v > 48) {
        p.dim_qk = Pick<int64_t>(&random_, {3, 8, 15, 16});
        p.dim_v = Pick<int64_t>(&random_, {3, 8, 15, 16, 17, 24});
      } else if (p.len_q > 4) {
        p.len_q -= p.len_q / 3;
      } else if (now_group > 1 && OneIn(&random_, 2)) {
        p.heads_q = now_group - 1;
      } else if (p.len_q > 1) {
        --p.len_q;
      } else if (!many && p.len_k > 30) {
        p.len_k /= 2;
      } else if (p.batch > 1) {
        --p.batch;
      } else {
        break;
      }
    }
  }

  void DrawOptions() {
    heed_problem& p = problem_;
    p.causal = static_cast<int32_t>(random_.Below(4));
    if (Has(kWindow, 3)) {
      p.window = 1;
      const auto side = [this] {
        return OneIn(&random_, 4)
                   ? -1
                   : random_.Below(OneIn(&random_, 2) ? 12 : 150);
      };
      p.window_left = side();
      p.window_right = side();
    }
    if (Has(kSoftCap, 4)) {
      p.softcap = Pick<double>(&random_,
                               {0.5, 1.0, 5.0, 20.0, 30.0, 50.0, 0.3, 1000.0});
      if (!Wants(kModerate) && OneIn(&random_, 8)) {
        p.softcap = Pick<double>(&random_, {1e-6, 1e6, 3e-30, 1e30});
      }
    }
    p.alibi = Has(kAlibi, 4) ? 1 : 0;
    p.align = static_cast<int32_t>(1 + random_.Below(3));
    if (p.causal != HEED_CAUSAL_NONE || (p.window == 0 && p.alibi == 0)) {
      p.align = 0;
    }
    const bool blocks = Has(kBlocks, 14);
    if (Has(kBoolMask, 5) || blocks) p.mask = HEED_MASK_BOOL;
    if (Has(kAdditiveMask, 5) && !blocks) {
      p.mask = OneIn(&random_, 2) ? HEED_MASK_F32 : HEED_MASK_DTYPE;
    }
    if (blocks) {
      p.mask_block_q = Pick<int32_t>(&random_, {0, 1, 2, 7, 16, 48, 64});
      p.mask_block_k = Pick<int32_t>(&random_, {1, 3, 16, 20, 48, 64, 100});
    }
    p.sinks = Has(kSinks, 4) ? 1 : 0;
    p.ragged = Has(kRagged, 3) ? 1 : 0;
    if (Has(kPages, 5) && p.len_k > 0) {
      p.page_size = Pick<int64_t>(&random_, {1, 2, 7, 16, 48, 64, 100, 256});
    }
  }

  // An offset that leaves rows with all, some and no keys; or one so large that
  // distances are not whole floats.
  int64_t DrawOffset() {
    if (OneIn(&random_, 12)) {
      const int64_t far = int64_t{1} << (22 + random_.Below(20));
      const int64_t offset = far + random_.Below(1000);
      return OneIn(&random_, 4) ? -offset : offset;
    }
    return random_.Below(problem_.len_q + problem_.len_k + 6) - problem_.len_q -
           3;
  }

  int64_t DrawLength(int64_t longest) {
    const int64_t kind = random_.Below(6);
    return kind == 0 ? 0 : kind == 1 ? longest : random_.Below(longest + 1);
  }

  // Lengths of `batch` sequences, the longest of which mostly is `longest`.
  std::vector<int32_t> DrawStarts(int64_t longest) {
    std::vector<int32_t> starts = {0};
    const int64_t full =
        OneIn(&random_, 4) ? -1 : random_.Below(problem_.batch);
    for (int64_t b = 0; b < problem_.batch; ++b) {
      const int64_t len = b == full ? longest : DrawLength(longest);
      starts.push_back(starts.back() + static_cast<int32_t>(len));
    }
    return starts;
  }

  void DrawSequences() {
    const heed_problem& p = problem_;
    c_.causal_offset = DrawOffset();
    if (p.ragged == 0) return;
    if (OneIn(&random_, 2)) c_.cu_seqlens_q = DrawStarts(p.len_q);
    if (OneIn(&random_, 2) && p.page_size == 0) {
      c_.cu_seqlens_k = DrawStarts(p.len_k);
    }
    if (OneIn(&random_, 2)) {
      for (int64_t b = 0; b < p.batch; ++b) {
        const int64_t longest =
            c_.cu_seqlens_k.empty()
                ? p.len_k
                : c_.cu_seqlens_k[b + 1] - c_.cu_seqlens_k[b];
        c_.seqused_k.push_back(static_cast<int32_t>(DrawLength(longest)));
      }
    }
    const bool has_offset =
        p.causal == HEED_CAUSAL_OFFSET || p.align == HEED_ALIGN_OFFSET;
    if (has_offset && OneIn(&random_, 2)) {
      for (int64_t b = 0; b < p.batch; ++b) {
        c_.causal_offsets.push_back(DrawOffset());
      }
    }
  }

  // Pages in any order, some of them shared, and entries beyond a sequence's
  // keys that name no page.
  void DrawPages() {
    const heed_problem& p = problem_;
    if (p.page_size == 0) return;
    const int64_t longest = (p.len_k + p.page_size - 1) / p.page_size;
    c_.max_pages = longest + random_.Below(3);
    const bool shares = OneIn(&random_, 3);
    c_.num_pages = (shares ? longest : longest * p.batch) + random_.Below(3);
    std::vector<int32_t> free;
    for (int64_t i = 0; i < c_.num_pages; ++i) {
      free.push_back(static_cast<int32_t>(i));
    }
    for (size_t i = free.size(); i > 1; --i) {
      std::swap(free[i - 1], free[random_.Below(static_cast<int64_t>(i))]);
    }
    for (int64_t b = 0; b < p.batch; ++b) {
      const int64_t used = c_.seqused_k.empty() ? p.len_k : c_.seqused_k[b];
      for (int64_t i = 0; i < c_.max_pages; ++i) {
        int32_t page = Pick<int32_t>(&random_, {-1, INT32_MAX, INT32_MIN});
        if (i * p.page_size < used) {
          page = free[shares ? random_.Below(c_.num_pages) : b * longest + i];
        }
        c_.block_table.push_back(page);
      }
    }
  }

  void Fill() {
    const auto& families = Families();
    const Family* family = &families.front();
    if (OneIn(&random_, 3)) {
      do {
        family =
            &families[random_.Below(static_cast<int64_t>(families.size()))];
        // Where its large score is hidden, "flushed" blends values whose sum is
        // out of range (promise P8).
      } while (Wants(kModerate) &&
               (!family->is_moderate || family->name == "flushed"));
    }
    // A family may steer the scores by the scale.
    family->fill(&random_, &c_);
  }

  void DrawScale() {
    if (c_.problem.scale_mode == HEED_SCALE_VALUE || !OneIn(&random_, 4))
      return;
    c_.problem.scale_mode = HEED_SCALE_VALUE;
    c_.problem.scale = Pick<double>(&random_, {0.0, -0.3, 0.05, 1.0});
  }

  float DrawAdded(int64_t kind) {
    const float normal = random_.Normal();
    const bool extreme = !Wants(kModerate) && OneIn(&random_, 64);
    const float number = Pick<float>(
        &random_, {-FLT_MAX, FLT_MAX, -1e9f, -1e4f, 3e38f, -0.0f, kInfinity});
    if (kind == 0) return extreme ? number : normal;
    if (kind == 1) return OneIn(&random_, 2) ? -kInfinity : 0.0f;
    if (kind == 2) return OneIn(&random_, 3) ? -FLT_MAX : normal;
    if (kind == 3) return OneIn(&random_, 3) ? -1e9f : 0.0f;
    return OneIn(&random_, 3) ? -kInfinity : 3 * normal;
  }

  // One row: keys of one kind throughout, or hidden up to some key, or hidden
  // from it on, or all hidden; or all but hidden, by the lowest finite number.
  void DrawMaskRow(int64_t kind, int64_t row) {
    CaseMask& mask = c_.mask;
    const int64_t len = Blocks(problem_.len_k, problem_.mask_block_k);
    const int64_t shape = random_.Below(8);
    const int64_t border = random_.Below(len + 1);
    const int64_t density = Pick<int64_t>(&random_, {2, 3, 10, 50});
    const float hidden_value = OneIn(&random_, 3) ? -FLT_MAX : -kInfinity;
    for (int64_t j = 0; j < mask.room; ++j) {
      const bool hidden = (shape == 0 && j < border) ||
                          (shape == 1 && j >= border) || shape == 2;
      const size_t at = static_cast<size_t>(row * mask.room + j);
      if (problem_.mask == HEED_MASK_BOOL) {
        const auto any = Pick<uint8_t>(&random_, {1, 2, 128, 255});
        const bool rare = density == 50 || kind > 2;
        const bool visible = rare != OneIn(&random_, density);
        mask.bytes[at] = visible && !hidden ? any : 0;
        if (j >= len) mask.bytes[at] = 255;
      } else {
        const float added = DrawAdded(kind);
        mask.values[at] = hidden ? hidden_value : added;
        if (j >= len) mask.values[at] = kNan;
      }
    }
  }

  void DrawMask() {
    const heed_problem& p = problem_;
    if (p.mask == HEED_MASK_NONE) return;
    CaseMask& mask = c_.mask;
    const auto extent = [this](int64_t whole) {
      return OneIn(&random_, 2) ? whole : 1;
    };
    mask.batch = extent(p.batch);
    mask.heads = extent(p.heads_q);
    mask.len_q = OneIn(&random_, 4) ? 1 : Blocks(p.len_q, p.mask_block_q);
    mask.room = Blocks(p.len_k, p.mask_block_k) + 1 + random_.Below(3);
    const int64_t rows = mask.batch * mask.heads * mask.len_q;
    const auto size = static_cast<size_t>(rows * mask.room);
    (p.mask == HEED_MASK_BOOL ? mask.bytes.resize(size)
                              : mask.values.resize(size));
    const int64_t kind = random_.Below(5);
    for (int64_t row = 0; row < rows; ++row) DrawMaskRow(kind, row);
    // A NaN is a visible one, if its key is.
    if (!mask.values.empty() && !Wants(kModerate) && OneIn(&random_, 20)) {
      mask.values[random_.Below(static_cast<int64_t>(size))] = kNan;
    }
  }

  void DrawHeadNumbers() {
    const heed_problem& p = problem_;
    const bool extreme = !Wants(kModerate) && OneIn(&random_, 10);
    for (int64_t h = 0; p.alibi != 0 && h < p.heads_q; ++h) {
      float slope = Pick<float>(
          &random_, {0.5f, 0.25f, 0.0625f, 0.00390625f, 0.0f, -0.125f, 0.7f});
      if (extreme) {
        slope = Pick<float>(&random_,
                            {1e4f, -3e37f, FLT_MAX, 1e-38f, kNan, kInfinity});
      }
      c_.slopes.push_back(slope);
    }
    for (int64_t h = 0; p.sinks != 0 && h < p.heads_q; ++h) {
      float sink =
          OneIn(&random_, 4)
              ? Pick<float>(&random_, {0.0f, -kInfinity, 20.0f, -20.0f})
              : 3 * random_.Normal();
      if (extreme) {
        sink = Pick<float>(&random_, {88.0f, 1e6f, -1e6f, 5e6f, FLT_MAX,
                                      -FLT_MAX, kInfinity, kNan, -1000.0f});
      }
      c_.sinks.push_back(sink);
    }
  }

  Random random_;
  uint32_t wanted_;
  heed_problem problem_;
  Case c_;
};

}  // namespace

Case RandomCase(uint64_t seed, uint32_t wanted) {
  return Maker(seed, wanted).Make();
}

Settings RandomSettings(uint64_t seed) {
  Random random(seed ^ 0x5E771465u);
  Settings settings;
  settings.threads = Pick<int>(&random, {1, 1, 2, 3, 7});
  if (OneIn(&random, 3)) return settings;
  std::vector<heed_tile> tiles = VariedTiles();
  tiles.push_back({16, 96, 2, 3, 1, 0, 0, {}});
  tiles.push_back({16, 48, 3, 2, 1, 0, 0, {}});
  settings.pinned = true;
  settings.tile = tiles[random.Below(static_cast<int64_t>(tiles.size()))];
  return settings;
}

}  // namespace heed::test
