// heed_merge_states(): attention over the union of two sets of keys from the
// states over each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <heed.hpp>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/input_families.h"
#include "tests/refused_call.h"
#include "tests/special_values.h"

namespace heed::test {
namespace {

// Dense [1, 1, rows, dim] states.
struct States {
  std::vector<float> out, lse;
};

heed_merge MergeOf(const States& a, const States& b, int64_t dim, States* to) {
  const auto rows = static_cast<int64_t>(a.lse.size());
  heed_merge merge;
  heed_merge_init(&merge);
  merge.batch = merge.heads = 1;
  merge.len = rows;
  merge.dim = dim;
  merge.out_a = heed_dense_input(a.out.data(), 1, rows, dim);
  merge.lse_a = heed_dense_input(a.lse.data(), 1, rows, 1);
  merge.out_b = heed_dense_input(b.out.data(), 1, rows, dim);
  merge.lse_b = heed_dense_input(b.lse.data(), 1, rows, 1);
  merge.out = heed_dense_output(to->out.data(), 1, rows, dim);
  merge.lse = heed_dense_output(to->lse.data(), 1, rows, 1);
  return merge;
}

States Merged(const States& a, const States& b, int64_t dim) {
  States to = a;
  std::fill(to.out.begin(), to.out.end(), -7.0f);
  std::fill(to.lse.begin(), to.lse.end(), -7.0f);
  const heed_merge merge = MergeOf(a, b, dim, &to);
  EXPECT_EQ(heed_merge_states(&merge), HEED_OK) << heed_last_error();
  return to;
}

States RandomStates(int64_t rows, int64_t dim, float lse_scale, uint64_t seed) {
  States states;
  states.out.resize(static_cast<size_t>(rows * dim));
  states.lse.resize(static_cast<size_t>(rows));
  Random random(seed);
  random.FillNormal(&states.out);
  for (float& x : states.lse) x = random.Normal() * lse_scale;
  return states;
}

TEST(MergeStates, IsWithinItsBoundOfTheFormula) {
  constexpr int64_t kRows = 500, kDim = 9;
  for (const float scale : {0.0f, 1e-6f, 1.0f, 10.0f, 100.0f, 1e30f}) {
    const States a = RandomStates(kRows, kDim, scale, 1);
    const States b = RandomStates(kRows, kDim, scale, 2);
    const States got = Merged(a, b, kDim);
    for (int64_t r = 0; r < kRows; ++r) {
      const long double m = std::max(a.lse[r], b.lse[r]);
      const long double wa = std::exp(a.lse[r] - m);
      const long double wb = std::exp(b.lse[r] - m);
      const long double lse = m + std::log(wa + wb);
      EXPECT_LE(std::fabs(got.lse[r] - lse),
                std::fabs(lse) * 0x1p-24L + 0x1p-50L);
      for (int64_t i = r * kDim; i < (r + 1) * kDim; ++i) {
        const long double out = (wa * a.out[i] + wb * b.out[i]) / (wa + wb);
        EXPECT_LE(
            std::fabs(got.out[i] - out),
            std::fabs(out) * 0x1p-24L +
                std::max(std::fabs(a.out[i]), std::fabs(b.out[i])) * 0x1p-50L);
      }
    }
  }
}

TEST(MergeStates, DoesNotDependOnTheOrder) {
  const States a = RandomStates(300, 7, 3, 3), b = RandomStates(300, 7, 3, 4);
  const States ab = Merged(a, b, 7), ba = Merged(b, a, 7);
  EXPECT_TRUE(SameBits(ab.out, ba.out));
  EXPECT_TRUE(SameBits(ab.lse, ba.lse));
}

TEST(MergeStates, AStateWithoutKeysIsNeutralBitForBit) {
  States a = RandomStates(50, 8, 5, 5);
  a.out[3] = -0.0f;
  a.out[4] = 1e-42f;
  a.out[5] = kInfinity;
  a.lse[7] = -0.0f;
  a.lse[8] = std::nanf("");
  a.lse[9] = kInfinity;
  States none = a;
  std::fill(none.lse.begin(), none.lse.end(), -kInfinity);
  for (const float held : {0.0f, 5.0f, kInfinity, std::nanf("")}) {
    std::fill(none.out.begin(), none.out.end(), held);
    for (const States& got : {Merged(a, none, 8), Merged(none, a, 8)}) {
      EXPECT_TRUE(SameBits(got.out, a.out));
      EXPECT_TRUE(SameBits(got.lse, a.lse));
    }
  }
  std::fill(none.out.begin(), none.out.end(), 0.0f);
  const States both = Merged(none, none, 8);
  EXPECT_TRUE(SameBits(both.out, none.out));
  EXPECT_TRUE(SameBits(both.lse, none.lse));
}

TEST(MergeStates, NaNAndInfinityAreNotHidden) {
  const float nan = std::nanf("");
  for (const float bad : {nan, kInfinity}) {
    const States a = {{1, 2}, {bad}}, b = {{3, 4}, {0}};
    for (const States& got :
         {Merged(a, b, 2), Merged(b, a, 2), Merged(a, a, 2)}) {
      EXPECT_TRUE(std::isnan(got.lse[0]));
      EXPECT_TRUE(std::isnan(got.out[0]));
      EXPECT_TRUE(std::isnan(got.out[1]));
    }
  }
  // A NaN value reaches its column, however small its weight.
  const States far = Merged({{nan, 2}, {-1000}}, {{3, 4}, {0}}, 2);
  EXPECT_TRUE(std::isnan(far.out[0]));
  EXPECT_EQ(far.out[1], 4.0f);
  EXPECT_EQ(far.lse[0], 0.0f);
  const States infinite = Merged({{kInfinity, 2}, {-1}}, {{3, 4}, {0}}, 2);
  EXPECT_EQ(infinite.out[0], kInfinity);
}

TEST(MergeStates, MayOverwriteEitherInput) {
  const States a = RandomStates(40, 5, 2, 6), b = RandomStates(40, 5, 2, 7);
  const States want = Merged(a, b, 5);
  States x = a, y = b;
  heed_merge merge = MergeOf(x, y, 5, &x);
  ASSERT_EQ(heed_merge_states(&merge), HEED_OK) << heed_last_error();
  EXPECT_TRUE(SameBits(x.out, want.out) && SameBits(x.lse, want.lse));
  x = a;
  merge = MergeOf(x, y, 5, &y);
  ASSERT_EQ(heed_merge_states(&merge), HEED_OK) << heed_last_error();
  EXPECT_TRUE(SameBits(y.out, want.out) && SameBits(y.lse, want.lse));
}

TEST(MergeStates, FollowsStrides) {
  // [batch, heads, len] as [len, batch, heads], backwards in memory.
  constexpr int64_t kBatch = 2, kHeads = 3, kLen = 4, kDim = 5;
  const int64_t rows = kBatch * kHeads * kLen;
  const States a = RandomStates(rows, kDim, 2, 8);
  const States b = RandomStates(rows, kDim, 2, 9);
  const States want = Merged(a, b, kDim);
  States got = a;
  heed_merge merge = MergeOf(a, b, kDim, &got);
  merge.batch = kBatch;
  merge.heads = kHeads;
  merge.len = kLen;
  const auto set = [&](auto* tensor, const float* data, int64_t dim) {
    tensor->data = const_cast<float*>(data) + (rows - 1) * dim;
    tensor->stride_token = -kBatch * kHeads * dim;
    tensor->stride_batch = -kHeads * dim;
    tensor->stride_head = -dim;
  };
  set(&merge.out_a, a.out.data(), kDim);
  set(&merge.lse_a, a.lse.data(), 1);
  set(&merge.out_b, b.out.data(), kDim);
  set(&merge.lse_b, b.lse.data(), 1);
  set(&merge.out, got.out.data(), kDim);
  set(&merge.lse, got.lse.data(), 1);
  ASSERT_EQ(heed_merge_states(&merge), HEED_OK) << heed_last_error();
  EXPECT_TRUE(SameBits(got.out, want.out) && SameBits(got.lse, want.lse));
}

// Two halves of the keys, as a ring of machines would hold them.
TEST(MergeStates, OfTwoHalvesOfTheKeysIsTheWhole) {
  constexpr int64_t kDim = 16, kLenK = 300;
  Case whole = MakeCase(MakeProblem(1, 4, 4, 9, kLenK, kDim, kDim));
  Random random(10);
  Families().front().fill(&random, &whole);
  const Result want = RunHeed(whole);
  std::vector<Result> halves;
  for (const int64_t first : {0, 1}) {
    Case half = whole;
    half.problem.len_k = first == 0 ? 110 : kLenK - 110;
    half.k.clear();
    half.v.clear();
    for (int64_t h = 0; h < 4; ++h) {
      const int64_t from = (h * kLenK + first * 110) * kDim;
      const int64_t count = half.problem.len_k * kDim;
      half.k.insert(half.k.end(), whole.k.begin() + from,
                    whole.k.begin() + from + count);
      half.v.insert(half.v.end(), whole.v.begin() + from,
                    whole.v.begin() + from + count);
    }
    halves.push_back(RunHeed(half));
  }
  const States got = Merged({halves[0].out, halves[0].lse},
                            {halves[1].out, halves[1].lse}, kDim);
  for (size_t i = 0; i < got.out.size(); ++i) {
    EXPECT_NEAR(got.out[i], want.out[i], 1e-6f);
  }
  for (size_t i = 0; i < got.lse.size(); ++i) {
    EXPECT_NEAR(got.lse[i], want.lse[i], 2e-6f);
  }
}

TEST(MergeStatesArguments, AreCheckedByName) {
  const States a = RandomStates(4, 3, 1, 1), b = RandomStates(4, 3, 1, 2);
  const auto refused = [&](const std::function<void(heed_merge*)>& change,
                           const std::vector<std::string>& parts) {
    States to = a;
    std::fill(to.out.begin(), to.out.end(), -7.0f);
    const States before = to;
    heed_merge merge = MergeOf(a, b, 3, &to);
    change(&merge);
    EXPECT_EQ(heed_merge_states(&merge), HEED_INVALID_ARGUMENT);
    ExpectMessage(parts);
    EXPECT_EQ(to.out, before.out);
    EXPECT_EQ(to.lse, before.lse);
  };
  EXPECT_EQ(heed_merge_states(nullptr), HEED_INVALID_ARGUMENT);
  heed_merge_init(nullptr);
  refused([](heed_merge* m) { m->struct_size = 3; },
          {"merge.struct_size is 3", "expected"});
  refused([](heed_merge* m) { m->len = -1; }, {"merge.len is -1", "expected"});
  refused([](heed_merge* m) { m->lse_b.data = nullptr; },
          {"merge.lse_b.data is NULL", "expected"});
  refused([](heed_merge* m) { m->out.data = nullptr; },
          {"merge.out.data is NULL", "expected"});
  refused([](heed_merge* m) { m->out.stride_token = 0; },
          {"merge.out.stride_token is 0", "expected"});
  refused([](heed_merge* m) { m->out_a.stride_dim = 4; },
          {"merge.out_a.stride_dim is 4", "expected 1"});
  refused(
      [](heed_merge* m) {
        m->out.data = static_cast<float*>(const_cast<void*>(m->out_a.data)) + 3;
        m->len = 3;
      },
      {"merge.out", "overlaps merge.out_a"});
  refused([](heed_merge* m) { m->lse.data = const_cast<void*>(m->out_b.data); },
          {"merge.lse", "overlaps merge.out_b"});
  refused([](heed_merge* m) { m->lse.data = m->out.data; },
          {"merge.lse", "overlaps merge.out"});
}

TEST(MergeStates, OfNothingIsASuccess) {
  Merge merge;
  MergeStates(merge);
  EXPECT_EQ(merge.batch, 1);
  // Rows without values have sums all the same.
  const States got = Merged({{}, {1, 2}}, {{}, {1, -kInfinity}}, 0);
  EXPECT_FLOAT_EQ(got.lse[0], 1 + std::log(2.0f));
  EXPECT_EQ(got.lse[1], 2.0f);
}

}  // namespace
}  // namespace heed::test
