// Public bug reports of other attention libraries as tests: strides, shapes and
// grouped heads. Each test's name begins with the kind and number of its case.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/guarded_tensor.h"
#include "tests/report_case.h"

namespace heed::test {
namespace {

// pytorch#187506: ours refuses, and says what it wants.
TEST(PublicReports, LAY01_AnInnerStrideThatIsNotOneIsRefused) {
  const Case c = GenCase(MakeProblem(1, 2, 2, 16, 16, 8, 8));
  for (int tensor = 0; tensor < 4; ++tensor) {
    Result got, untouched;
    DenseCall(c, &untouched);
    heed_call call = DenseCall(c, &got);
    for (heed_input* x : {&call.q, &call.k, &call.v}) {
      if (tensor != 3 && x != (tensor == 0   ? &call.q
                               : tensor == 1 ? &call.k
                                             : &call.v)) {
        continue;
      }
      x->stride_token = 1;
      x->stride_dim = 16;
    }
    EXPECT_EQ(RunCall(c.problem, call, {}), HEED_INVALID_ARGUMENT);
    EXPECT_NE(std::string(heed_last_error()).find("stride_dim is 16"),
              std::string::npos);
    EXPECT_EQ(Difference(got, untouched), "");
  }
}

// FlagGems#5896
TEST(PublicReports, LAY03_EveryMixOfHeadAndTokenMajorTensorsIsRight) {
  const int64_t heads = 4, len = 33, dim = 64;
  const Case c = GenCase(MakeProblem(1, heads, heads, len, len, dim, dim));
  for (int mix = 0; mix < 8; ++mix) {
    const auto tensor = [&](int bit, const std::vector<float>& dense) {
      const bool token_major = (mix >> bit & 1) != 0;
      GuardedTensor x(
          {1, heads, len, dim},
          {0, token_major ? dim : len * dim, token_major ? heads * dim : dim},
          1e30f);
      x.Set(dense);
      return x;
    };
    const GuardedTensor q = tensor(0, c.q), k = tensor(1, c.k),
                        v = tensor(2, c.v);
    Result got;
    heed_call call = DenseCall(c, &got);
    call.q = q.Input();
    call.k = k.Input();
    call.v = v.Input();
    ASSERT_EQ(RunCall(c.problem, call, {}), HEED_OK) << heed_last_error();
    ExpectReference(c.problem, call, "mix " + std::to_string(mix));
  }
}

// pytorch#112577
TEST(PublicReports, LAY05_SlicesOfAPackedBufferAreRightAndItIsUnchanged) {
  const int64_t batch = 2, len = 17, heads = 3, dim = 8;
  const heed_problem p = MakeProblem(batch, heads, heads, len, len, dim, dim);
  std::vector<float> packed(batch * len * 3 * heads * dim);
  for (size_t n = 0; n < packed.size(); ++n) {
    packed[n] = static_cast<float>(n * 7919 % 1009) / 504.5f - 1;
  }
  const std::vector<float> before = packed;
  const auto slice = [&](int64_t which) -> heed_input {
    return {packed.data() + which * heads * dim, len * 3 * heads * dim, dim,
            3 * heads * dim, 1};
  };
  for (const Settings& settings : EveryKernel()) {
    Case shape = MakeCase(p);
    Result got;
    heed_call call = DenseCall(shape, &got);
    call.q = slice(0);
    call.k = slice(1);
    call.v = slice(2);
    ASSERT_EQ(RunCall(p, call, settings), HEED_OK) << heed_last_error();
    ExpectReference(p, call, NameOf(settings));
    EXPECT_EQ(packed, before);
  }
}

// pytorch#169222. That nothing is read past the end: layout_test.cc.
TEST(PublicReports, LAY07_KeyLengthsOfEveryRemainderAreRight) {
  for (const int64_t len_k : {1, 31, 33, 38, 39, 63, 65, 70, 503}) {
    for (int64_t len_q = 1; len_q <= 8; ++len_q) {
      for (const int64_t dim : {64, 80}) {
        const Case c = GenCase(MakeProblem(1, 1, 1, len_q, len_k, dim, dim));
        Result result;
        const heed_call call = DenseCall(c, &result);
        ASSERT_EQ(RunCall(c.problem, call, {}), HEED_OK);
        ExpectReference(c.problem, call, NameOf(c));
      }
    }
  }
}

// FasterTransformer#89
TEST(PublicReports, LAY09_EveryHeadWidthIsRightAndLeavesItsNeighboursAlone) {
  const int64_t widths[] = {1,   2,   3,   4,   5,   7,   8,   9,   15, 16, 17,
                            24,  31,  32,  33,  37,  48,  63,  65,  72, 80, 96,
                            100, 112, 127, 129, 160, 250, 256, 257, 512};
  for (const int64_t dim_qk : widths) {
    for (const int64_t dim_v : {dim_qk, int64_t{1}, int64_t{37}, int64_t{64}}) {
      const Case c = GenCase(MakeProblem(1, 3, 3, 5, 50, dim_qk, dim_v));
      for (const std::string& target : TargetNames(/*fused_only=*/false)) {
        GuardedTensor out({1, 3, 5, dim_v}, {0, 6 * (dim_v + 2), dim_v + 2},
                          -7e20f);
        Result got;
        heed_call call = DenseCall(c, &got);
        call.out = out.Output();
        Settings settings;
        settings.target = target;
        ASSERT_EQ(RunCall(c.problem, call, settings), HEED_OK)
            << heed_last_error();
        ExpectReference(c.problem, call, NameOf(c) + " " + target);
        ASSERT_TRUE(out.GuardsAreIntact()) << NameOf(c) << " " << target;
      }
    }
  }
}

// oneDNN#692: ours refuses every overlap.
TEST(PublicReports, LAY11_AnOutputOverAnInputIsRefused) {
  Case c = GenCase(MakeProblem(1, 2, 2, 8, 8, 8, 8));
  const Case before = c;
  Result got;
  heed_call call = DenseCall(c, &got);
  for (float* target :
       {c.q.data(), c.v.data(), c.k.data(), c.q.data() + c.q.size() / 2}) {
    call.out.data = target;
    EXPECT_EQ(RunCall(c.problem, call, {}), HEED_INVALID_ARGUMENT);
    EXPECT_NE(std::string(heed_last_error()).find("out"), std::string::npos);
  }
  EXPECT_EQ(c.q, before.q);
  EXPECT_EQ(c.k, before.k);
  EXPECT_EQ(c.v, before.v);
}

// pytorch#141219
TEST(PublicReports, SHP01_NoTokensIsASuccessAndUnequalHeadsAreNot) {
  EXPECT_EQ(
      RunHeed(MakeCase(MakeProblem(7, 9, 7, 0, 0, 7, 7, HEED_CAUSAL_TOP_LEFT)))
          .status,
      HEED_INVALID_ARGUMENT);
  EXPECT_EQ(
      RunHeed(MakeCase(MakeProblem(7, 9, 9, 0, 0, 7, 7, HEED_CAUSAL_TOP_LEFT)))
          .status,
      HEED_OK);
}

// pytorch#139769. Lengths and widths that differ between tensors cannot be
// written down in a heed_problem, which has one of each.
TEST(PublicReports, SHP07_HeadCountsThatDoNotDivideAreRefusedByName) {
  const Case c = MakeCase(MakeProblem(1, 3, 4, 5, 5, 8, 8));
  const Result got = RunHeed(c);
  EXPECT_EQ(got.status, HEED_INVALID_ARGUMENT);
  EXPECT_NE(got.error.find("heads_q is 3"), std::string::npos) << got.error;
}

// onnxruntime#28195
TEST(PublicReports, SHP09_HeadsWiderThan256AreRightForEveryLength) {
  for (int64_t len = 1; len <= 16; ++len) {
    Case c =
        GenCase(MakeProblem(1, 8, 8, len, len, 512, 512, HEED_CAUSAL_TOP_LEFT));
    c.problem.scale_mode = HEED_SCALE_VALUE;
    c.problem.scale = 1;
    for (const std::string& target : TargetNames(/*fused_only=*/false)) {
      Settings settings;
      settings.target = target;
      Result result;
      const heed_call call = DenseCall(c, &result);
      ASSERT_EQ(RunCall(c.problem, call, settings), HEED_OK);
      ExpectReference(c.problem, call, NameOf(c) + target, 4e-5);
    }
  }
}

TEST(PublicReports, SHP11_SizesThatOverflowAreErrors) {
  const heed_problem problems[] = {
      MakeProblem(int64_t{1} << 31, 1, 1, int64_t{1} << 40, 1, 8, 8),
      MakeProblem(1, -1, 1, 4, 4, 8, 8),
      MakeProblem(1, 1, 1, 4, 4, int64_t{1} << 62, 8)};
  for (const heed_problem& problem : problems) {
    heed_plan* plan = nullptr;
    EXPECT_NE(heed_plan_create(&problem, nullptr, &plan), HEED_OK);
    EXPECT_EQ(plan, nullptr);
  }
  const Case c = GenCase(MakeProblem(2, 2, 2, 4, 4, 8, 8));
  Result got;
  heed_call call = DenseCall(c, &got);
  call.q.stride_batch = call.q.stride_head = call.q.stride_token = INT64_MAX;
  EXPECT_EQ(RunCall(c.problem, call, {}), HEED_INVALID_ARGUMENT);
}

// flash-linear-attention#1029
TEST(PublicReports, GQA01_GroupsThatAreNotWholeAreErrorsBeforeAnyWork) {
  for (const auto& [heads_q, heads_kv] :
       {std::pair<int64_t, int64_t>{33, 2}, {3, 2}, {2, 4}}) {
    const Case c = MakeCase(MakeProblem(1, heads_q, heads_kv, 4, 4, 8, 8));
    Result untouched;
    DenseCall(c, &untouched);
    Result got = RunHeed(c);
    EXPECT_EQ(got.status, HEED_INVALID_ARGUMENT);
    EXPECT_TRUE(SameBits(got.out, untouched.out));
  }
}

// onnxruntime#26674: keys in a cache with room to spare.
TEST(PublicReports, GQA03_ACacheOfGreaterCapacityGivesTheSameBitsEveryTime) {
  const Case c =
      GenCase(MakeProblem(2, 4, 2, 4, 4, 16, 16, HEED_CAUSAL_TOP_LEFT));
  const int64_t capacity = 128;
  GuardedTensor k({2, 2, 4, 16}, {2 * capacity * 16, capacity * 16, 16}, 1e38f);
  GuardedTensor v({2, 2, 4, 16}, {2 * capacity * 16, capacity * 16, 16}, 1e38f);
  k.Set(c.k);
  v.Set(c.v);
  const Result want = RunHeed(c);
  for (int run = 0; run < 50; ++run) {
    for (const int threads : {1, 2, 8}) {
      Settings settings;
      settings.threads = threads;
      Result got;
      heed_call call = DenseCall(c, &got);
      call.k = k.Input();
      call.v = v.Input();
      ASSERT_EQ(RunCall(c.problem, call, settings), HEED_OK);
      ASSERT_EQ(Difference(got, want), "") << run << " " << threads;
    }
  }
}

// openvino#21217
TEST(PublicReports, GQA05_OneKvHeadForSeventyOneIsAsSeventyOneCopies) {
  const Case c = GenCase(MakeProblem(1, 71, 1, 8, 8, 64, 64));
  ExpectEveryKernelRight(c);
  heed_problem p = c.problem;
  p.heads_kv = 71;
  Case copied = MakeCase(p);
  copied.q = c.q;
  for (int64_t head = 0; head < 71; ++head) {
    std::copy(c.k.begin(), c.k.end(), copied.k.begin() + head * 8 * 64);
    std::copy(c.v.begin(), c.v.end(), copied.v.begin() + head * 8 * 64);
  }
  EXPECT_EQ(Difference(RunHeed(c), RunHeed(copied)), "");
}

// quant.cpp#61
TEST(PublicReports, GQA07_EveryQueryHeadReadsItsOwnKvHead) {
  for (const auto& [heads_q, heads_kv] :
       {std::pair<int64_t, int64_t>{9, 3}, {32, 8}, {8, 2}, {8, 1}}) {
    for (const int64_t len_q : {7, 1}) {
      Case c = GenCase(MakeProblem(1, heads_q, heads_kv, len_q, 7, 16, 16));
      for (size_t i = 0; i < c.v.size(); ++i) {
        c.v[i] = static_cast<float>(i / (7 * 16) + 1);
      }
      // Token-major results.
      Result got;
      heed_call call = DenseCall(c, &got);
      call.out.stride_head = 16;
      call.out.stride_token = heads_q * 16;
      ASSERT_EQ(RunCall(c.problem, call, {}), HEED_OK) << heed_last_error();
      for (size_t i = 0; i < got.out.size(); ++i) {
        const int64_t head = static_cast<int64_t>(i) / 16 % heads_q;
        ASSERT_NEAR(got.out[i], head / (heads_q / heads_kv) + 1, 1e-5);
      }
    }
  }
}

// gemma.cpp#608
TEST(PublicReports, KVC07_StridesComeFromTheCacheNotFromALength) {
  for (const int64_t capacity : {int64_t{600}, int64_t{500}}) {
    const Case whole = GenCase(
        MakeProblem(1, 2, 1, capacity, capacity, 8, 8, HEED_CAUSAL_TOP_LEFT));
    const Result want = RunHeed(whole);
    for (const int64_t used : {int64_t{256}, int64_t{257}, capacity}) {
      const heed_problem p =
          MakeProblem(1, 2, 1, 1, used, 8, 8, HEED_CAUSAL_BOTTOM_RIGHT);
      Result got;
      got.out.resize(16);
      heed_call call;
      heed_call_init(&call);
      call.q =
          heed_dense_input(whole.q.data() + (used - 1) * 8, 2, capacity, 8);
      call.k = heed_dense_input(whole.k.data(), 1, capacity, 8);
      call.v = heed_dense_input(whole.v.data(), 1, capacity, 8);
      call.out = heed_dense_output(got.out.data(), 2, 1, 8);
      ASSERT_EQ(RunCall(p, call, {}), HEED_OK) << heed_last_error();
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t row = i / 8 * capacity + used - 1;
        ASSERT_TRUE(SameBits(got.out[i], want.out[row * 8 + i % 8]));
      }
    }
  }
}

}  // namespace
}  // namespace heed::test
