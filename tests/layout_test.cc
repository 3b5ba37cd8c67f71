// Promises P6 and P9: tensors of any strides give the bits of dense ones, and
// nothing outside the tensors is read or written.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/fenced_buffer.h"
#include "tests/guarded_tensor.h"
#include "tests/input_families.h"
#include "tests/special_values.h"

namespace heed::test {
namespace {

constexpr float kGuard = 4.625e21f;

using Strides = std::array<int64_t, 3>;

// Strides of a [batch, heads, len, dim] tensor by name.
Strides StridesOf(const std::string& layout, int64_t heads, int64_t len,
                  int64_t dim) {
  if (layout == "dense") return {heads * len * dim, len * dim, dim};
  if (layout == "token_major") return {len * heads * dim, dim, heads * dim};
  if (layout == "padded") {
    const int64_t row = dim + 3, head = len * row + 7;
    return {heads * head + 11, head, row};
  }
  if (layout == "backwards") return {-heads * len * dim, len * dim, -dim};
  // Every axis swapped: batch innermost.
  if (layout == "batch_inner") return {dim, 8 * dim * len, 8 * dim};
  ADD_FAILURE() << layout;
  return {};
}

struct Layouts {
  std::string q, k, v, out;
};

void ExpectLayoutsGiveDenseBits(const Case& c, const Layouts& layouts,
                                const Settings& settings) {
  const heed_problem& p = c.problem;
  const auto make = [&](const std::string& layout, int64_t heads, int64_t len,
                        int64_t dim, float guard) {
    return GuardedTensor({p.batch, heads, len, dim},
                         StridesOf(layout, heads, len, dim), guard);
  };
  GuardedTensor q = make(layouts.q, p.heads_q, p.len_q, p.dim_qk, kNan);
  GuardedTensor k = make(layouts.k, p.heads_kv, p.len_k, p.dim_qk, kNan);
  GuardedTensor v = make(layouts.v, p.heads_kv, p.len_k, p.dim_v, kNan);
  GuardedTensor out = make(layouts.out, p.heads_q, p.len_q, p.dim_v, kGuard);
  GuardedTensor lse = make(layouts.out, p.heads_q, p.len_q, 1, kGuard);
  q.Set(c.q);
  k.Set(c.k);
  v.Set(c.v);
  heed_call call;
  heed_call_init(&call);
  call.q = q.Input();
  call.k = k.Input();
  call.v = v.Input();
  call.out = out.Output();
  call.lse = lse.Output();
  const std::string where = layouts.q + " " + layouts.k + " " + layouts.v +
                            " " + layouts.out + " " + NameOf(c) + " " +
                            NameOf(settings);
  ASSERT_EQ(RunCall(p, call, settings), HEED_OK) << heed_last_error() << where;
  Result got;
  got.out = out.Dense();
  got.lse = lse.Dense();
  EXPECT_EQ(Difference(got, RunHeed(c, settings)), "") << where;
  EXPECT_TRUE(out.GuardsAreIntact()) << "out " << where;
  EXPECT_TRUE(lse.GuardsAreIntact()) << "lse " << where;
  EXPECT_EQ(q.Dense(), c.q) << where;
  EXPECT_EQ(k.Dense(), c.k) << where;
  EXPECT_EQ(v.Dense(), c.v) << where;
}

std::vector<Settings> SomeSettings() {
  std::vector<Settings> all;
  for (const std::string& target : TargetNames(/*fused_only=*/false)) {
    Settings settings;
    settings.target = target;
    settings.threads = 2;
    all.push_back(settings);
    settings.pinned = true;
    for (const heed_tile& tile : VariedTiles()) {
      settings.tile = tile;
      all.push_back(settings);
    }
  }
  return all;
}

TEST(Layout, EveryCombinationOfStridesGivesTheBitsOfDense) {
  const Case c = NormalCase(
      MakeProblem(2, 4, 2, 13, 53, 24, 17, HEED_CAUSAL_BOTTOM_RIGHT));
  const char* names[] = {"dense", "token_major", "padded", "backwards",
                         "batch_inner"};
  Settings settings;
  for (const char* q : names) {
    for (const char* k : names) {
      for (const char* v : names) {
        ExpectLayoutsGiveDenseBits(c, {q, k, v, names[(q[0] + v[0]) % 5]},
                                   settings);
      }
    }
  }
}

TEST(Layout, EveryTargetAndTileHonoursStridesAndGuards) {
  for (const int64_t dim : {1, 15, 64, 80}) {
    const Case c = NormalCase(
        MakeProblem(2, 3, 1, 21, 101, dim, dim, HEED_CAUSAL_BOTTOM_RIGHT));
    for (const Settings& settings : SomeSettings()) {
      ExpectLayoutsGiveDenseBits(
          c, {"padded", "token_major", "backwards", "padded"}, settings);
      ExpectLayoutsGiveDenseBits(c, {"dense", "dense", "dense", "dense"},
                                 settings);
    }
  }
}

TEST(Layout, StrideZeroBroadcastsAnInput) {
  const heed_problem p = MakeProblem(2, 4, 2, 9, 50, 16, 8);
  Case c = NormalCase(p);
  // One head and batch of k and v, one token of q.
  for (int64_t head = 0; head < 4; ++head) {
    std::copy_n(c.k.begin(), 50 * 16, c.k.begin() + head * 50 * 16);
    std::copy_n(c.v.begin(), 50 * 8, c.v.begin() + head * 50 * 8);
  }
  for (int64_t row = 0; row < 2 * 4 * 9; ++row) {
    std::copy_n(c.q.begin(), 16, c.q.begin() + row * 16);
  }
  Result got;
  heed_call call = DenseCall(c, &got);
  call.q = {c.q.data(), 0, 0, 0, 1};
  call.k = {c.k.data(), 0, 0, 16, 1};
  call.v = {c.v.data(), 0, 0, 8, 1};
  ASSERT_EQ(RunCall(p, call, {}), HEED_OK) << heed_last_error();
  EXPECT_EQ(Difference(got, RunHeed(c)), "");

  // One key for all, so every row is its value.
  call.k = {c.k.data(), 0, 0, 0, 1};
  call.v = {c.v.data(), 0, 0, 0, 1};
  ASSERT_EQ(RunCall(p, call, {}), HEED_OK) << heed_last_error();
  for (size_t i = 0; i < got.out.size(); ++i) {
    EXPECT_NEAR(got.out[i], c.v[i % 8], 1e-5);
  }
}

TEST(Layout, TensorsMayEndOrBeginAtANoAccessPage) {
  for (const bool fence_after : {true, false}) {
    for (const int64_t len_k : {1, 31, 33, 48, 70, 503}) {
      for (const int64_t dim : {1, 7, 64, 80}) {
        const heed_problem p =
            MakeProblem(1, 2, 1, 5, len_k, dim, dim, HEED_CAUSAL_NONE);
        const Case c = NormalCase(p);
        for (const Settings& settings : SomeSettings()) {
          const Result want = RunHeed(c, settings);
          Result got;
          heed_call call = DenseCall(c, &got);
          FencedBuffer<float> q(c.q, fence_after), k(c.k, fence_after);
          FencedBuffer<float> v(c.v, fence_after), out(got.out, fence_after);
          call.q.data = q.data();
          call.k.data = k.data();
          call.v.data = v.data();
          call.out.data = out.data();
          ASSERT_EQ(RunCall(p, call, settings), HEED_OK) << heed_last_error();
          std::memcpy(got.out.data(), out.data(),
                      got.out.size() * sizeof(float));
          ASSERT_EQ(Difference(got, want), "") << NameOf(c) << NameOf(settings);
        }
      }
    }
  }
}

TEST(Layout, StridesOfAxesWithOneIndexAreNotUsed) {
  const Case c = NormalCase(MakeProblem(1, 1, 1, 1, 20, 1, 1));
  Result got;
  heed_call call = DenseCall(c, &got);
  call.q = {c.q.data(), 1 << 30, -77, INT64_MAX, 5};
  call.out.stride_batch = call.out.stride_head = call.out.stride_token = 0;
  call.out.stride_dim = 9;
  ASSERT_EQ(RunCall(c.problem, call, {}), HEED_OK) << heed_last_error();
  EXPECT_EQ(Difference(got, RunHeed(c)), "");
}

TEST(Layout, LogSumIsOptional) {
  const Case c = NormalCase(MakeProblem(1, 2, 1, 9, 50, 16, 8));
  const Result want = RunHeed(c);
  Result got;
  heed_call call = DenseCall(c, &got);
  call.lse = {};
  ASSERT_EQ(RunCall(c.problem, call, {}), HEED_OK) << heed_last_error();
  EXPECT_TRUE(SameBits(got.out, want.out));
}

}  // namespace
}  // namespace heed::test
