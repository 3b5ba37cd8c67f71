// Public bug reports of other attention libraries as tests: rows, causal lines
// and numerics. Each test's name begins with the kind and number of its case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/attention_case.h"
#include "tests/input_families.h"
#include "tests/report_case.h"
#include "tests/special_values.h"

namespace heed::test {
namespace {

// flash-attention#978
TEST(PublicReports, ROW07_LogSumOfAnEmptyRowIsMinusInfinity) {
  const Case cases[] = {
      GenCase(MakeProblem(1, 1, 1, 3, 0, 8, 8)),
      GenCase(MakeProblem(1, 1, 1, 3, 5, 8, 8, HEED_CAUSAL_OFFSET), -3)};
  for (const Case& c : cases) {
    for (const Settings& settings : EveryKernel()) {
      const Result got = RunHeed(c, settings);
      ASSERT_EQ(got.status, HEED_OK) << got.error;
      for (const float x : got.lse) EXPECT_EQ(x, -kInfinity);
      for (const float x : got.out) EXPECT_TRUE(SameBits(x, 0.0f));
    }
  }
}

// pytorch#103082
TEST(PublicReports, CAU01_OneQueryAgainstALongCacheSeesWhatItsAlignmentSays) {
  const Case top_left =
      GenCase(MakeProblem(1, 1, 1, 1, 8, 4, 4, HEED_CAUSAL_TOP_LEFT));
  Case bottom_right = top_left;
  bottom_right.problem.causal = HEED_CAUSAL_BOTTOM_RIGHT;
  Case none = top_left;
  none.problem.causal = HEED_CAUSAL_NONE;
  for (const Settings& settings : EveryKernel()) {
    const Result first = RunHeed(top_left, settings);
    // w * v / w rounds three times.
    for (int d = 0; d < 4; ++d) EXPECT_NEAR(first.out[d], top_left.v[d], 1e-6);
    EXPECT_EQ(
        Difference(RunHeed(bottom_right, settings), RunHeed(none, settings)),
        "");
  }
}

// onnxruntime#29020
TEST(PublicReports, CAU03_BothAlignmentsAreRightForEveryPairOfLengths) {
  for (const int32_t causal :
       {HEED_CAUSAL_TOP_LEFT, HEED_CAUSAL_BOTTOM_RIGHT}) {
    for (const int64_t len_q : {1, 2, 3, 7, 8, 9, 16}) {
      for (int64_t len_k = len_q; len_k <= len_q + 17; ++len_k) {
        const Case c =
            GenCase(MakeProblem(1, 2, 1, len_q, len_k, 8, 8, causal));
        for (const std::string& target : TargetNames(/*fused_only=*/false)) {
          Settings settings;
          settings.target = target;
          Result result;
          const heed_call call = DenseCall(c, &result);
          ASSERT_EQ(RunCall(c.problem, call, settings), HEED_OK);
          ExpectReference(c.problem, call, NameOf(c));
        }
      }
    }
  }
}

// executorch#9105. Ours must be the same bytes, not only near.
TEST(PublicReports, CAU05_ChunkedPrefillIsTheOneShotCall) {
  const int64_t len = 700, chunk = 100, dim = 32;
  const Case whole =
      GenCase(MakeProblem(1, 2, 2, len, len, dim, dim, HEED_CAUSAL_TOP_LEFT));
  const Result want = RunHeed(whole);
  for (const int32_t key_tile : {48, 96, 528}) {
    Settings settings;
    settings.pinned = true;
    settings.tile.key_tile = key_tile;
    Result got = want;
    for (int64_t start = 0; start < len; start += chunk) {
      // The cache holds the keys so far; its capacity is the whole length.
      const heed_problem p = MakeProblem(1, 2, 2, chunk, start + chunk, dim,
                                         dim, HEED_CAUSAL_OFFSET);
      heed_call call;
      heed_call_init(&call);
      call.q = heed_dense_input(whole.q.data() + start * dim, 2, len, dim);
      call.k = heed_dense_input(whole.k.data(), 2, len, dim);
      call.v = heed_dense_input(whole.v.data(), 2, len, dim);
      call.out = heed_dense_output(got.out.data() + start * dim, 2, len, dim);
      call.lse = heed_dense_output(got.lse.data() + start, 2, len, 1);
      call.causal_offset = start;
      ASSERT_EQ(RunCall(p, call, settings), HEED_OK) << heed_last_error();
    }
    EXPECT_EQ(Difference(got, want), "") << key_tile;
  }
}

// flashinfer#4267
TEST(PublicReports, NUM01_LogitsFarBelowAnySentinelStillHaveAMaximum) {
  for (const float level : {-1e4f, -1e5f, -1e6f, -1e7f, -1e8f}) {
    Case c = GenCase(MakeProblem(1, 16, 1, 1, 64, 128, 128));
    std::fill(c.q.begin(), c.q.end(), 1.0f);
    std::fill(c.k.begin(), c.k.end(), level / 128);
    std::fill(c.k.begin(), c.k.begin() + 128, (level + 5000) / 128);
    for (const Settings& settings : EveryKernel()) {
      const Result got = RunHeed(c, settings);
      for (size_t i = 0; i < got.out.size(); ++i) {
        ASSERT_NEAR(got.out[i], c.v[i % 128], 1e-6) << level;
      }
    }
  }
}

// transformers#3181
TEST(PublicReports, NUM03_CausalExclusionIsNotAPenalty) {
  Case c = MakeCase(MakeProblem(1, 1, 1, 2, 2, 1, 1, HEED_CAUSAL_TOP_LEFT));
  c.problem.scale_mode = HEED_SCALE_VALUE;
  c.problem.scale = 1;
  c.q = {-30000, 0};
  c.k = {1, 0};
  c.v = {1, 7};
  for (const Settings& settings : EveryKernel()) {
    EXPECT_EQ(RunHeed(c, settings).out[0], 1.0f) << NameOf(settings);
  }
}

// FasterTransformer#43
TEST(PublicReports, NUM05_LargeLogitsDoNotOverflow) {
  Case c = GenCase(MakeProblem(1, 1, 1, 4, 4, 16, 16));
  for (const float value : {100.0f, 4.717f, 13.23f}) {  // logits 40000, 89, 700
    std::fill(c.q.begin(), c.q.end(), value);
    std::fill(c.k.begin(), c.k.end(), value);
    ExpectEveryKernelRight(c);
  }
}

// onnxruntime#32600
TEST(PublicReports, NUM11_InfiniteKeysDoAsArithmeticSaysOnEveryTarget) {
  const auto make = [](float key, float q_sign) {
    Case c = GenCase(MakeProblem(1, 1, 1, 5, 5, 4, 4, HEED_CAUSAL_TOP_LEFT));
    for (float& x : c.q) x = std::fabs(x) + 0.5f;
    for (size_t i = 0; i < c.q.size(); i += 4) c.q[i] *= q_sign;
    std::fill_n(c.k.begin() + 2 * 4, 4, key);
    return c;
  };
  for (const Settings& settings : EveryKernel()) {
    // A logit of +inf, and one of inf - inf: rows 2 to 4 see it.
    for (const Case& c : {make(kInfinity, 1), make(kInfinity, -1)}) {
      const Result got = RunHeed(c, settings);
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(std::isnan(got.out[i]), i >= 8) << i << NameOf(settings);
      }
    }
    // A logit of -inf alone has no weight.
    const Case without = make(-kInfinity, 1);
    const Result got = RunHeed(without, settings);
    for (const float x : got.out) EXPECT_TRUE(std::isfinite(x));
    Case finite = without;
    std::fill_n(finite.k.begin() + 2 * 4, 4, -1e6f);
    EXPECT_EQ(Difference(got, RunHeed(finite, settings)), "");
  }
}

// attention-gym#131
TEST(PublicReports, NUM13_TenfoldInputsStayWithinTwoThousandths) {
  Case c = MakeCase(MakeProblem(1, 4, 4, 240, 240, 128, 128));
  Random random(13);
  Families().front().fill(&random, &c);
  for (std::vector<float>* x : {&c.q, &c.k, &c.v}) {
    for (float& value : *x) value *= 10;
  }
  Result result;
  const heed_call call = DenseCall(c, &result);
  ASSERT_EQ(RunCall(c.problem, call, {}), HEED_OK);
  ExpectReference(c.problem, call, NameOf(c), 2e-3);
}

// vllm#26599: RunCall() fills the workspace with 0xFF, this with other bytes
// too.
TEST(PublicReports, NUM15_ScratchContentsDoNotMatter) {
  for (const int64_t dim : {16, 64, 256}) {
    for (const int64_t group : {1, 3, 8}) {
      const Case c = GenCase(
          MakeProblem(1, group, 1, 9, 100, dim, dim, HEED_CAUSAL_BOTTOM_RIGHT));
      const Result want = RunHeed(c);
      heed_plan* plan = nullptr;
      ASSERT_EQ(heed_plan_create(&c.problem, nullptr, &plan), HEED_OK);
      const size_t size = heed_plan_workspace_size(plan);
      std::vector<char> memory(size + 64);
      char* aligned =
          memory.data() +
          (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
      for (int poison = 0; poison < 20; ++poison) {
        std::fill_n(aligned, size, static_cast<char>(poison * 13));
        Result got;
        heed_call call = DenseCall(c, &got);
        call.workspace = aligned;
        call.workspace_size = size;
        ASSERT_EQ(heed_plan_run(plan, &call), HEED_OK) << heed_last_error();
        EXPECT_EQ(Difference(got, want), "") << poison;
      }
      heed_plan_destroy(plan);
    }
  }
}

// SKaiNET#860
TEST(PublicReports, FEA03_ScaleZeroIsZeroAndNoScaleIsAnError) {
  Case c = GenCase(MakeProblem(1, 1, 1, 3, 9, 16, 4));
  const Result standard = RunHeed(c);
  c.problem.scale_mode = HEED_SCALE_VALUE;
  c.problem.scale = 0.25;
  EXPECT_EQ(Difference(RunHeed(c), standard), "");
  c.problem.scale = 0;
  for (int64_t d = 0; d < 4; ++d) {
    double mean = 0;
    for (int64_t key = 0; key < 9; ++key) mean += c.v[key * 4 + d] / 9.0;
    EXPECT_NEAR(RunHeed(c).out[d], mean, 1e-6);
  }
  c.problem.scale_mode = 0;
  EXPECT_EQ(RunHeed(c).status, HEED_INVALID_ARGUMENT);
}

// sgl-kernel-xpu#196
TEST(PublicReports, KVC03_SeveralNewTokensOverACacheAreTheLastRowsOfOneCall) {
  const Case whole =
      GenCase(MakeProblem(2, 2, 2, 8, 8, 16, 16, HEED_CAUSAL_TOP_LEFT));
  const Result want = RunHeed(whole);
  const heed_problem p =
      MakeProblem(2, 2, 2, 3, 8, 16, 16, HEED_CAUSAL_BOTTOM_RIGHT);
  Result got = want;
  std::fill(got.out.begin(), got.out.end(), kNan);
  heed_call call;
  heed_call_init(&call);
  call.q = heed_dense_input(whole.q.data() + 5 * 16, 2, 8, 16);
  call.k = heed_dense_input(whole.k.data(), 2, 8, 16);
  call.v = heed_dense_input(whole.v.data(), 2, 8, 16);
  call.out = heed_dense_output(got.out.data() + 5 * 16, 2, 8, 16);
  ASSERT_EQ(RunCall(p, call, {}), HEED_OK) << heed_last_error();
  for (size_t row = 0; row < 32; ++row) {
    for (size_t d = 0; d < 16; ++d) {
      const float x = got.out[row * 16 + d];
      if (row % 8 < 5) {
        ASSERT_TRUE(std::isnan(x));
      } else {
        ASSERT_TRUE(SameBits(x, want.out[row * 16 + d]));
      }
    }
  }
}

// llama.cpp#19209
TEST(PublicReports, KVC05_DecodeIsRightForEveryLengthOfTheCache) {
  for (const int64_t len : {1, 2, 7, 63, 64, 65, 4097}) {
    ExpectEveryKernelRight(GenCase(MakeProblem(1, 8, 2, 1, len, 16, 16)), 1e-6);
  }
}

// tinygrad#3061
TEST(PublicReports, GPT07_AFirstChunkIntoAnEmptyCacheIsCausal) {
  const Case whole =
      GenCase(MakeProblem(1, 2, 2, 8, 8, 16, 16, HEED_CAUSAL_TOP_LEFT));
  const Result want = RunHeed(whole);
  Result got = want;
  std::fill(got.out.begin(), got.out.end(), kNan);
  for (const auto& [start, count] :
       {std::pair<int64_t, int64_t>{0, 5}, {5, 1}, {6, 1}, {7, 1}}) {
    const heed_problem p = MakeProblem(1, 2, 2, count, start + count, 16, 16,
                                       HEED_CAUSAL_BOTTOM_RIGHT);
    heed_call call;
    heed_call_init(&call);
    call.q = heed_dense_input(whole.q.data() + start * 16, 2, 8, 16);
    call.k = heed_dense_input(whole.k.data(), 2, 8, 16);
    call.v = heed_dense_input(whole.v.data(), 2, 8, 16);
    call.out = heed_dense_output(got.out.data() + start * 16, 2, 8, 16);
    ASSERT_EQ(RunCall(p, call, {}), HEED_OK) << heed_last_error();
  }
  EXPECT_TRUE(SameBits(got.out, want.out));
}

}  // namespace
}  // namespace heed::test
