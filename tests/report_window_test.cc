// Public bug reports of other attention libraries as tests: windows, and
// sequences of their own lengths. Each test's name begins with the kind and
// number of its case.
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

heed_problem WithWindow(heed_problem p, int64_t left, int64_t right) {
  p.window = 1;
  p.window_left = left;
  p.window_right = right;
  if (p.causal == HEED_CAUSAL_NONE) p.align = HEED_ALIGN_TOP_LEFT;
  return p;
}

// q = 0 and v the unit matrix: a row of out is the row's weights.
Case WeightsCase(const heed_problem& p) {
  Case c = MakeCase(p);
  for (int64_t i = 0; i < p.len_k; ++i) c.v[i * p.dim_v + i] = 1;
  return c;
}

// onnxruntime#28904
TEST(PublicReports, CAU07_EachSequenceHasItsOwnCausalLine) {
  heed_problem p = MakeProblem(3, 2, 2, 2, 6, 8, 8, HEED_CAUSAL_BOTTOM_RIGHT);
  p.ragged = 1;
  Case c = GenCase(p);
  c.seqused_k = {6, 3, 1};
  ForEveryPath(c, [&](Result* got, const std::string& how) {
    ExpectReference(c, got, how);
    for (int64_t head = 0; head < 2; ++head) {
      // Sequence 2: key 0 stands beside the second token.
      const int64_t row = (2 * 2 + head) * 2;
      EXPECT_EQ(got->lse[row], -kInfinity) << how;
      for (int64_t d = 0; d < 8; ++d) {
        EXPECT_TRUE(SameBits(got->out[row * 8 + d], 0.0f)) << how;
        EXPECT_NEAR(got->out[(row + 1) * 8 + d],
                    c.v[(2 * 2 + head) * 6 * 8 + d], 2e-7)
            << how;
      }
    }
  });
  // The reference's own understanding, in the report's words.
  const int64_t seen[3][2] = {{5, 6}, {2, 3}, {0, 1}};
  std::fill(c.q.begin(), c.q.end(), 0.0f);
  ForEveryPath(c, [&](Result* got, const std::string& how) {
    for (int64_t b = 0; b < 3; ++b) {
      for (int64_t row = 0; row < 4; ++row) {
        const double keys = static_cast<double>(seen[b][row % 2]);
        const float lse = got->lse[b * 4 + row];
        if (keys > 0) {
          EXPECT_NEAR(lse, std::log(keys), 1e-6) << how;
        } else {
          EXPECT_EQ(lse, -kInfinity) << how;
        }
      }
    }
  });
}

// vllm#3385
TEST(PublicReports, CAU09_AWindowOfThreeKeysIsTwoAndItself) {
  for (const int32_t causal :
       {HEED_CAUSAL_NONE, HEED_CAUSAL_TOP_LEFT, HEED_CAUSAL_BOTTOM_RIGHT}) {
    const Case c =
        WeightsCase(WithWindow(MakeProblem(1, 1, 1, 8, 8, 8, 8, causal), 2, 0));
    ForEveryPath(c, [&](Result* got, const std::string& how) {
      for (int64_t i = 0; i < 8; ++i) {
        const int64_t first = std::max<int64_t>(0, i - 2);
        for (int64_t j = 0; j < 8; ++j) {
          const bool sees = first <= j && j <= i;
          const double weight = 1.0 / static_cast<double>(i - first + 1);
          if (sees) {
            EXPECT_NEAR(got->out[i * 8 + j], weight, 1e-7) << how;
          } else {
            EXPECT_EQ(got->out[i * 8 + j], 0.0f) << how;
          }
        }
      }
    });
  }
}

// sglang#33603
TEST(PublicReports, CAU11_ATwoSidedWindowIsNotFullAttention) {
  const Case c =
      WeightsCase(WithWindow(MakeProblem(1, 1, 1, 16, 16, 16, 16), 2, 2));
  ForEveryPath(c, [&](Result* got, const std::string& how) {
    for (int64_t i = 0; i < 16; ++i) {
      const int64_t keys =
          std::min<int64_t>(i + 2, 15) - std::max<int64_t>(i - 2, 0) + 1;
      for (int64_t j = 0; j < 16; ++j) {
        const bool sees = std::abs(i - j) <= 2;
        EXPECT_NEAR(got->out[i * 16 + j],
                    sees ? 1.0 / static_cast<double>(keys) : 0.0,
                    sees ? 1e-7 : 0.0)
            << how;
      }
    }
  });
}

// vllm#27650
TEST(PublicReports, CAU13_NoKeyOutsideTheWindowHasAnyWeight) {
  Case c = GenCase(WithWindow(
      MakeProblem(1, 1, 1, 100, 100, 16, 16, HEED_CAUSAL_TOP_LEFT), 9, 0));
  const Result clean = RunHeed(c);
  std::fill_n(c.v.begin(), 50 * 16, 1e30f);
  ForEveryPath(c, [&](Result* got, const std::string& how) {
    for (size_t i = 59 * 16; i < got->out.size(); ++i) {
      ASSERT_NEAR(got->out[i], clean.out[i], 2e-6) << how;
    }
  });
}

// nntrainer#3989
TEST(PublicReports, CAU15_EveryRowOfAPrefillLongerThanItsWindowIsWritten) {
  const int64_t lengths[][2] = {{20, 8}, {8, 8}, {9, 8}, {623, 512}};
  for (const auto& [len, window] : lengths) {
    const Case c = GenCase(
        WithWindow(MakeProblem(1, 2, 2, len, len, 8, 8, HEED_CAUSAL_TOP_LEFT),
                   window - 1, 0));
    ExpectEveryKernelRight(c);
    for (const int32_t dtype : kStoredDtypes) {
      const StoredCase stored = Store(c, dtype);
      const double rounding = dtype == HEED_F16 ? 0x1p-11 : 0x1p-8;
      ForEveryPath(stored, [&](Result* got, const std::string& how) {
        ExpectReference(stored.widened, got, how, 1e-5 + rounding);
      });
    }
  }
}

// flash-attention#1713
TEST(PublicReports, SHP03_SequencesWithoutQueriesOrKeysAreEmpty) {
  const std::vector<int32_t> starts_k[] = {{0, 100, 200, 300},
                                           {0, 100, 100, 300}};
  for (const std::vector<int32_t>& starts : starts_k) {
    // Sequence 1 has no queries, and the second time no keys; the third time a
    // sequence with queries has none either.
    for (const std::vector<int32_t>& queries :
         {std::vector<int32_t>{0, 150, 150, 300},
          std::vector<int32_t>{0, 100, 200, 300}}) {
      heed_problem p = MakeProblem(3, 2, 2, 150, 200, 64, 64);
      p.ragged = 1;
      Case c = MakeCase(p);
      c.cu_seqlens_q = queries;
      c.cu_seqlens_k = starts;
      c.tokens_first = true;
      SizeInputs(&c);
      const Case filled = GenCase(MakeProblem(1, 2, 2, 300, 300, 64, 64));
      c.q = filled.q;
      c.k = filled.k;
      c.v = filled.v;
      ForEveryPath(c, [&](Result* got, const std::string& how) {
        ExpectReference(c, got, how);
        for (int64_t i = queries[1]; i < queries[2]; ++i) {
          if (starts[1] != starts[2]) continue;
          for (int64_t head = 0; head < 2; ++head) {
            ASSERT_EQ(got->lse[i * 2 + head], -kInfinity) << how;
            ASSERT_TRUE(SameBits(got->out[(i * 2 + head) * 64], 0.0f)) << how;
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace heed::test
