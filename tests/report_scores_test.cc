// Public bug reports of other attention libraries as tests: soft cap, sinks and
// scale; caches and partial results. Each test's name begins with the kind and
// number of its case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/reference.h"
#include "tests/report_case.h"
#include "tests/special_values.h"
#include "tests/stored_case.h"

namespace heed::test {
namespace {

// llama.cpp#29034
TEST(PublicReports, FEA01_ASoftCapGivesNoWeightToKeysThatAreNot) {
  for (const int64_t len : {1, 33, 48, 49, 63, 64, 65, 66, 129, 769}) {
    Case c = MakeCase(MakeProblem(1, 1, 1, 1, len, 8, 8));
    std::fill(c.v.begin(), c.v.end(), 1.0f);
    c.problem.softcap = 1;
    ForEveryPath(c, [&](Result* got, const std::string& how) {
      for (const float x : got->out) ASSERT_NEAR(x, 1.0f, 1.2e-7) << how;
    });
  }
}

// modular#6198
TEST(PublicReports, FEA05_ASinkTakesItsShareOfTheWeight) {
  Case c = MakeCase(MakeProblem(1, 5, 5, 3, 4, 8, 8));
  std::fill(c.v.begin(), c.v.end(), 1.0f);
  c.problem.sinks = 1;
  c.sinks = {2, 0, -1000, 88, 200};
  const double want[] = {0.3512144, 0.8, 1, 0, 0};
  ForEveryPath(c, [&](Result* got, const std::string& how) {
    for (size_t i = 0; i < got->out.size(); ++i) {
      ASSERT_NEAR(got->out[i], want[i / (3 * 8)], 1.2e-7) << how;
    }
    for (size_t i = 0; i < got->lse.size(); ++i) {
      const double sink = c.sinks[i / 3];
      const double lse = sink > 50 ? sink : std::log(4 + std::exp(sink));
      ASSERT_NEAR(got->lse[i], lse, 1e-5) << how;
    }
  });
}

// llama.cpp#8542
TEST(PublicReports, FEA07_SoftCappedScoresAreRightOverTheirWholeSpread) {
  for (const int64_t len_q : {1, 5, 70}) {
    Case c = GenCase(
        MakeProblem(1, 2, 1, len_q, 70, 256, 256, HEED_CAUSAL_BOTTOM_RIGHT));
    c.problem.scale_mode = HEED_SCALE_VALUE;
    c.problem.scale = 1.0 / 16;
    c.problem.softcap = 50;
    // Scores of +-200: q is a unit vector and k has what it reads.
    std::fill(c.q.begin(), c.q.end(), 0.0f);
    for (size_t i = 0; i < c.q.size(); i += 256) c.q[i] = 1;
    for (int64_t key = 0; key < 70; ++key) {
      c.k[key * 256] = 16 * (static_cast<float>(key * 7919 % 401) - 200);
    }
    ExpectEveryKernelRight(c);
  }
  Case c = GenCase(MakeProblem(1, 1, 1, 3, 9, 16, 16));
  const Result without = RunHeed(c);
  c.problem.softcap = 0;
  EXPECT_EQ(Difference(RunHeed(c), without), "");
  for (const double cap : {-1.0, -50.0, static_cast<double>(kNan),
                           static_cast<double>(kInfinity)}) {
    c.problem.softcap = cap;
    const Result got = RunHeed(c);
    EXPECT_EQ(got.status, HEED_INVALID_ARGUMENT) << cap;
    EXPECT_NE(got.error.find("problem.softcap"), std::string::npos)
        << got.error;
  }
}

// tt-metal#42891
TEST(PublicReports, FEA09_TheScaleTouchesNoMaskSlopeOrSink) {
  for (const double scale : {0.125, 2.0, 0.1}) {
    Case c = MakeCase(MakeProblem(1, 1, 1, 1, 2, 64, 1));
    c.problem.scale_mode = HEED_SCALE_VALUE;
    c.problem.scale = scale;
    c.v = {0, 1};
    Case masked = c;
    masked.problem.mask = HEED_MASK_F32;
    masked.mask.room = 2;
    masked.mask.values = {0, -5};
    // ALiBi: key 1 stands one before the row, key 0 two.
    Case sloped = c;
    sloped.problem.alibi = 1;
    sloped.problem.align = HEED_ALIGN_OFFSET;
    sloped.causal_offset = 2;
    sloped.slopes = {-5};
    Case with_sink = c;
    with_sink.v = {1, 1};
    with_sink.problem.sinks = 1;
    with_sink.sinks = {static_cast<float>(5 + std::log(2.0))};
    for (const Case& biased : {masked, sloped, with_sink}) {
      ForEveryPath(biased, [&](Result* got, const std::string& how) {
        EXPECT_NEAR(got->out[0], 0.00669285, 1e-8) << how;
      });
    }
  }
}

// flashinfer#4267: in bf16 the keys round together beyond -1e6.
TEST(PublicReports, NUM01_SixteenBitLogitsFarBelowASentinelHaveAMaximum) {
  for (const float level : {-1e4f, -1e5f, -1e6f}) {
    Case plain = GenCase(MakeProblem(1, 16, 1, 1, 64, 128, 128));
    std::fill(plain.q.begin(), plain.q.end(), 1.0f);
    std::fill(plain.k.begin(), plain.k.end(), level / 128);
    std::fill(plain.k.begin(), plain.k.begin() + 128, (level + 5000) / 128);
    for (const int32_t dtype : kStoredDtypes) {
      const StoredCase c = Store(plain, dtype);
      if (c.widened.k[0] - c.widened.k[128] < 20) continue;
      ForEveryPath(c, [&](Result* got, const std::string& how) {
        for (size_t i = 0; i < got->out.size(); ++i) {
          ASSERT_EQ(got->out[i], c.widened.v[i % 128]) << level << how;
        }
      });
    }
  }
}

// One state: out and lse of one row of one column.
struct PartialState {
  float out, lse;
};

PartialState Merge(const PartialState& a, const PartialState& b) {
  PartialState merged = {kNan, kNan};
  heed_merge merge;
  heed_merge_init(&merge);
  merge.batch = merge.heads = merge.len = merge.dim = 1;
  merge.out_a = heed_dense_input(&a.out, 1, 1, 1);
  merge.lse_a = heed_dense_input(&a.lse, 1, 1, 1);
  merge.out_b = heed_dense_input(&b.out, 1, 1, 1);
  merge.lse_b = heed_dense_input(&b.lse, 1, 1, 1);
  merge.out = heed_dense_output(&merged.out, 1, 1, 1);
  merge.lse = heed_dense_output(&merged.lse, 1, 1, 1);
  EXPECT_EQ(heed_merge_states(&merge), HEED_OK) << heed_last_error();
  return merged;
}

// flashinfer#4051
TEST(PublicReports, KVC01_MergingEmptyPartialStatesIsNotNan) {
  const PartialState empty = {0, -kInfinity}, state = {0.3f, -7.25f};
  EXPECT_EQ(Merge(empty, empty).out, 0);
  EXPECT_EQ(Merge(empty, empty).lse, -kInfinity);
  for (const PartialState& merged :
       {Merge(empty, state), Merge(state, empty)}) {
    EXPECT_TRUE(SameBits(merged.out, state.out));
    EXPECT_TRUE(SameBits(merged.lse, state.lse));
  }
  const PartialState other = {-0.9f, -6.5f};
  const PartialState seven[] = {empty, empty, state, empty,
                                other, empty, empty};
  PartialState all = empty;
  for (const PartialState& part : seven) all = Merge(all, part);
  const double a = std::exp(-7.25), b = std::exp(-6.5);
  EXPECT_NEAR(all.out, (0.3 * a - 0.9 * b) / (a + b), 1e-7);
  EXPECT_NEAR(all.lse, std::log(a + b), 1e-6);
}

// llama.cpp#19209: the split over keys, by the caller.
TEST(PublicReports, KVC05_StatesOfAnySplitMergeToTheWholeResult) {
  for (const int64_t len : {1, 2, 7, 63, 64, 65, 4097}) {
    const Case c = GenCase(MakeProblem(1, 8, 2, 1, len, 16, 16));
    for (int64_t splits = 1; splits <= 16; ++splits) {
      Result all;
      DenseCall(c, &all);
      std::fill(all.out.begin(), all.out.end(), 0.0f);
      std::fill(all.lse.begin(), all.lse.end(), -kInfinity);
      for (int64_t split = 0; split < splits; ++split) {
        const int64_t begin = split * len / splits;
        const int64_t end = (split + 1) * len / splits;
        heed_problem p = c.problem;
        p.len_k = end - begin;
        Result part;
        heed_call call = DenseCall(c, &part);
        call.k.data = c.k.data() + begin * 16;
        call.v.data = c.v.data() + begin * 16;
        ASSERT_EQ(RunCall(p, call, {}), HEED_OK) << heed_last_error();
        heed_merge merge;
        heed_merge_init(&merge);
        merge.batch = 1;
        merge.heads = 8;
        merge.len = 1;
        merge.dim = 16;
        merge.out_a = heed_dense_input(all.out.data(), 8, 1, 16);
        merge.lse_a = heed_dense_input(all.lse.data(), 8, 1, 1);
        merge.out_b = heed_dense_input(part.out.data(), 8, 1, 16);
        merge.lse_b = heed_dense_input(part.lse.data(), 8, 1, 1);
        merge.out = heed_dense_output(all.out.data(), 8, 1, 16);
        merge.lse = heed_dense_output(all.lse.data(), 8, 1, 1);
        ASSERT_EQ(heed_merge_states(&merge), HEED_OK) << heed_last_error();
      }
      ExpectReference(c, &all, NameOf(c) + " in " + std::to_string(splits),
                      1e-6);
    }
  }
}

// A cache that grows by heed_kv_append(), and the history it should hold.
class GrowingCache {
 public:
  GrowingCache(int64_t capacity, int64_t dim)
      : history_(GenCase(MakeProblem(1, 2, 1, capacity, capacity, dim, dim,
                                     HEED_CAUSAL_TOP_LEFT))),
        capacity_(capacity),
        dim_(dim),
        k_(static_cast<size_t>(capacity * dim + 2 * kGuards), kNan),
        v_(k_) {}

  const Case& history() const { return history_; }
  int64_t used() const { return used_; }

  heed_status Append(int64_t count) {
    const int64_t from = std::min(used_, capacity_ - count) * dim_;
    heed_append append;
    heed_append_init(&append);
    append.batch = append.heads_kv = 1;
    append.len_new = count;
    append.len_cache = capacity_;
    append.dim_qk = append.dim_v = dim_;
    append.dtype_new = append.dtype_cache = HEED_F32;
    append.k_new = heed_dense_input(history_.k.data() + from, 1, count, dim_);
    append.v_new = heed_dense_input(history_.v.data() + from, 1, count, dim_);
    append.k_cache = heed_dense_output(k_.data() + kGuards, 1, capacity_, dim_);
    append.v_cache = heed_dense_output(v_.data() + kGuards, 1, capacity_, dim_);
    append.positions = &used_;
    const heed_status status = heed_kv_append(&append);
    if (status == HEED_OK) used_ += count;
    return status;
  }

  // The last `count` tokens against the cache.
  Result Attend(int64_t count) const {
    const heed_problem p = MakeProblem(1, 2, 1, count, used_, dim_, dim_,
                                       HEED_CAUSAL_BOTTOM_RIGHT);
    Result got;
    got.out.resize(static_cast<size_t>(2 * count * dim_));
    got.lse.resize(static_cast<size_t>(2 * count));
    heed_call call;
    heed_call_init(&call);
    call.q = heed_dense_input(history_.q.data() + (used_ - count) * dim_, 2,
                              capacity_, dim_);
    call.k = heed_dense_input(k_.data() + kGuards, 1, capacity_, dim_);
    call.v = heed_dense_input(v_.data() + kGuards, 1, capacity_, dim_);
    call.out = heed_dense_output(got.out.data(), 2, count, dim_);
    call.lse = heed_dense_output(got.lse.data(), 2, count, 1);
    got.status = RunCall(p, call, {});
    return got;
  }

  bool GuardsAreIntact() const {
    for (const std::vector<float>* x : {&k_, &v_}) {
      for (size_t i = 0; i < kGuards; ++i) {
        if (!std::isnan((*x)[i]) || !std::isnan((*x)[x->size() - 1 - i])) {
          return false;
        }
      }
      const auto used = static_cast<size_t>(used_ * dim_);
      for (size_t i = kGuards + used; i < x->size(); ++i) {
        if (!std::isnan((*x)[i])) return false;
      }
    }
    return true;
  }

 private:
  static constexpr size_t kGuards = 64;
  Case history_;
  int64_t capacity_, dim_;
  int64_t used_ = 0;
  std::vector<float> k_, v_;
};

// gemma.cpp#608
TEST(PublicReports, KVC07_ACacheIsRightToItsLastSlotAndNoFurther) {
  for (const int64_t capacity : {4096, 2048, 5000}) {
    GrowingCache cache(capacity, 16);
    const Result want = RunHeed(cache.history());
    const auto check = [&](int64_t count) {
      const Result got = cache.Attend(count);
      ASSERT_EQ(got.status, HEED_OK) << heed_last_error();
      for (int64_t i = 0; i < 2 * count; ++i) {
        const int64_t row =
            i / count * capacity + cache.used() - count + i % count;
        ASSERT_TRUE(SameBits(got.lse[i], want.lse[row])) << cache.used();
        for (int64_t d = 0; d < 16; ++d) {
          ASSERT_TRUE(SameBits(got.out[i * 16 + d], want.out[row * 16 + d]))
              << cache.used();
        }
      }
      ASSERT_TRUE(cache.GuardsAreIntact()) << cache.used();
    };
    while (cache.used() + 256 + 3 <= capacity) {
      ASSERT_EQ(cache.Append(256), HEED_OK) << heed_last_error();
      ASSERT_NO_FATAL_FAILURE(check(256));
    }
    while (cache.used() < capacity) {
      ASSERT_EQ(cache.Append(1), HEED_OK) << heed_last_error();
      ASSERT_NO_FATAL_FAILURE(check(1));
    }
    EXPECT_EQ(cache.Append(1), HEED_INVALID_ARGUMENT);
    EXPECT_TRUE(cache.GuardsAreIntact());
  }
}

}  // namespace
}  // namespace heed::test
