// Public bug reports of other attention libraries as tests: the 16-bit halves
// of their cases. Each test's name begins with the kind and number of its case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/guarded_tensor.h"
#include "tests/report_case.h"
#include "tests/special_values.h"
#include "tests/stored_case.h"

namespace heed::test {
namespace {

// What rounding to the dtype may add to |got - want| <= x * (1 + |want|).
double RoundingOf(int32_t dtype) {
  return dtype == HEED_F16 ? 0x1p-11 : 0x1p-8;
}

// Runs the call and compares it with the definition on the stored values.
void ExpectStoredReference(const StoredCase& c, const Settings& settings,
                           double tolerance = 1e-5) {
  const Result stored = RunStored(c, settings);
  ASSERT_EQ(stored.status, HEED_OK) << stored.error;
  Result result;
  const heed_call call = DenseCall(c.widened, &result);
  std::copy(stored.out.begin(), stored.out.end(), result.out.begin());
  std::copy(stored.lse.begin(), stored.lse.end(), result.lse.begin());
  ExpectReference(c.widened.problem, call,
                  NameOf(c.widened) + " " + NameOf(settings),
                  tolerance + RoundingOf(c.problem.dtype));
}

// onnxruntime#32600
TEST(PublicReports, NUM11_InfiniteF16KeysDoAsArithmeticSaysOnEveryTarget) {
  for (const int32_t dtype : kStoredDtypes) {
    for (const float q_sign : {1.0f, -1.0f}) {
      Case plain =
          GenCase(MakeProblem(1, 1, 1, 5, 5, 4, 4, HEED_CAUSAL_TOP_LEFT));
      for (float& x : plain.q) x = std::fabs(x) + 0.5f;
      for (size_t i = 0; i < plain.q.size(); i += 4) plain.q[i] *= q_sign;
      std::fill_n(plain.k.begin() + 2 * 4, 4, kInfinity);
      const StoredCase c = Store(plain, dtype);
      for (const Settings& settings : EveryKernel()) {
        const Result got = RunStored(c, settings);
        ASSERT_EQ(got.status, HEED_OK) << got.error;
        // Rows 2 to 4 see the key.
        for (int i = 0; i < 20; ++i) {
          EXPECT_EQ(std::isnan(got.out[i]), i >= 8) << i << NameOf(settings);
        }
      }
    }
    // A logit of -inf alone has no weight.
    Case plain =
        GenCase(MakeProblem(1, 1, 1, 5, 5, 4, 4, HEED_CAUSAL_TOP_LEFT));
    for (float& x : plain.q) x = std::fabs(x) + 0.5f;
    std::fill_n(plain.k.begin() + 2 * 4, 4, -kInfinity);
    const StoredCase infinite = Store(plain, dtype);
    std::fill_n(plain.k.begin() + 2 * 4, 4, -6e4f);
    const StoredCase finite = Store(plain, dtype);
    for (const Settings& settings : EveryKernel()) {
      EXPECT_EQ(Difference(RunStored(infinite, settings),
                           RunStored(finite, settings)),
                "");
    }
  }
}

// llama.cpp#13975: a sum of 80000 is infinite in f16.
TEST(PublicReports, NUM07_LongContextsDoNotOverflowF16) {
  for (const int32_t dtype : kStoredDtypes) {
    Case plain = GenCase(MakeProblem(1, 1, 1, 1, 40000, 32, 32));
    std::fill(plain.q.begin(), plain.q.end(), 0.0f);
    std::fill(plain.v.begin(), plain.v.end(), 2.0f);
    const StoredCase c = Store(plain, dtype);
    for (const Settings& settings : EveryKernel()) {
      for (const float x : RunStored(c, settings).out) {
        ASSERT_EQ(x, 2.0f) << NameOf(settings);
      }
    }
  }
}

// attention-gym#131
TEST(PublicReports, NUM13_TenfoldSixteenBitInputsAreAsGoodAsTheirRounding) {
  Case plain = GenCase(MakeProblem(1, 2, 2, 240, 240, 128, 128));
  for (std::vector<float>* x : {&plain.q, &plain.k, &plain.v}) {
    for (float& value : *x) value *= 10;
  }
  for (const int32_t dtype : kStoredDtypes) {
    ExpectStoredReference(Store(plain, dtype), {}, 2e-3);
  }
}

// pytorch#169222. That nothing is read past the end: dtype_test.cc.
TEST(PublicReports, LAY07_SixteenBitKeyLengthsOfEveryRemainderAreRight) {
  for (const int32_t dtype : kStoredDtypes) {
    for (const int64_t len_k : {1, 31, 33, 38, 39, 63, 65, 70, 503}) {
      for (int64_t len_q = 1; len_q <= 8; ++len_q) {
        for (const int64_t dim : {64, 80}) {
          ExpectStoredReference(
              Store(GenCase(MakeProblem(1, 1, 1, len_q, len_k, dim, dim)),
                    dtype),
              {});
        }
      }
    }
  }
}

// FasterTransformer#89
TEST(PublicReports, LAY09_EverySixteenBitHeadWidthIsRightBetweenItsGuards) {
  const int64_t widths[] = {1,   2,   3,   4,   5,   7,   8,   9,   15, 16, 17,
                            24,  31,  32,  33,  37,  48,  63,  65,  72, 80, 96,
                            100, 112, 127, 129, 160, 250, 256, 257, 512};
  for (const int32_t dtype : kStoredDtypes) {
    for (const int64_t dim_qk : widths) {
      for (const int64_t dim_v : {dim_qk, int64_t{1}, int64_t{37}}) {
        const StoredCase c =
            Store(GenCase(MakeProblem(1, 3, 3, 5, 50, dim_qk, dim_v)), dtype);
        ExpectStoredReference(c, {});
        for (const std::string& target : TargetNames(/*fused_only=*/false)) {
          Settings settings;
          settings.target = target;
          GuardedWords out({1, 3, 5, dim_v}, {0, 6 * (dim_v + 2), dim_v + 2},
                           0x7BCD);
          Result got;
          std::vector<uint16_t> dense;
          heed_call call = StoredCall(c, &dense, &got.lse);
          call.out = out.Output();
          ASSERT_EQ(RunCall(c.problem, call, settings), HEED_OK)
              << heed_last_error();
          got.out = ValuesOf(dtype, out.Dense());
          ASSERT_EQ(
              Difference(got, Rounded(RunHeed(c.widened, settings), dtype)), "")
              << NameOf(c.widened) << " " << target;
          ASSERT_TRUE(out.GuardsAreIntact()) << NameOf(c.widened) << target;
        }
      }
    }
  }
}

// nntrainer#3989, without its window: no row is left unwritten.
TEST(PublicReports, CAU15_EveryRowOfAPrefillIsWritten) {
  for (const int32_t dtype : kStoredDtypes) {
    for (const int64_t len : {8, 9, 20, 623}) {
      const StoredCase c = Store(
          GenCase(MakeProblem(1, 2, 2, len, len, 8, 8, HEED_CAUSAL_TOP_LEFT)),
          dtype);
      for (const Settings& settings : EveryKernel()) {
        const Result got = RunStored(c, settings);
        for (const float x : got.out) ASSERT_TRUE(std::isfinite(x));
        for (const float x : got.lse) ASSERT_TRUE(std::isfinite(x));
      }
      ExpectStoredReference(c, {});
    }
  }
}

// onnxruntime#28195
TEST(PublicReports, SHP09_SixteenBitHeadsWiderThan256AreRightForEveryLength) {
  for (const int32_t dtype : kStoredDtypes) {
    for (int64_t len = 1; len <= 16; ++len) {
      Case plain = GenCase(
          MakeProblem(1, 8, 8, len, len, 512, 512, HEED_CAUSAL_TOP_LEFT));
      plain.problem.scale_mode = HEED_SCALE_VALUE;
      plain.problem.scale = 1;
      const StoredCase c = Store(plain, dtype);
      for (const std::string& target : TargetNames(/*fused_only=*/false)) {
        Settings settings;
        settings.target = target;
        ExpectStoredReference(c, settings, 4e-5);
      }
    }
  }
}

// pytorch#141219
TEST(PublicReports, SHP01_NoTokensInF16IsASuccessAndUnequalHeadsAreNot) {
  for (const int32_t dtype : kStoredDtypes) {
    for (const int64_t heads_kv : {7, 9}) {
      const Case plain = MakeCase(
          MakeProblem(7, 9, heads_kv, 0, 0, 7, 7, HEED_CAUSAL_TOP_LEFT));
      EXPECT_EQ(RunStored(Store(plain, dtype)).status,
                heads_kv == 9 ? HEED_OK : HEED_INVALID_ARGUMENT);
    }
  }
}

}  // namespace
}  // namespace heed::test
