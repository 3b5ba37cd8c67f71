// The tuner's double reference against values that can be told by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tune/reference.h"

namespace heed {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

heed_problem Problem(int64_t len_q, int64_t len_k, int causal) {
  heed_problem problem;
  heed_problem_init(&problem);
  problem.batch = problem.heads_q = problem.heads_kv = 1;
  problem.len_q = len_q;
  problem.len_k = len_k;
  problem.dim_qk = problem.dim_v = 1;
  problem.dtype = HEED_F32;
  problem.causal = causal;
  problem.scale_mode = HEED_SCALE_VALUE;
  problem.scale = 1;
  return problem;
}

struct Row {
  double out, lse;
};

Row Compute(const heed_problem& problem, const std::vector<float>& q,
            const std::vector<float>& k, const std::vector<float>& v,
            int64_t token) {
  const ReferenceInputs inputs{q.data(), k.data(), v.data(), 0};
  Row row;
  ReferenceAttentionRow(problem, inputs, 0, 0, token, &row.out, &row.lse);
  return row;
}

TEST(TuneReference, WeighsByTheSoftmax) {
  const Row row = Compute(Problem(1, 2, HEED_CAUSAL_NONE), {1},
                          {0, static_cast<float>(std::log(3.0))}, {4, 8}, 0);
  EXPECT_NEAR(row.out, 7, 1e-6);  // weights 1/4 and 3/4
  EXPECT_NEAR(row.lse, std::log(4.0), 1e-6);
}

TEST(TuneReference, EmptyRowsAreZeroAndInvisibleKeysAreNotTouched) {
  // Bottom right, 3 queries, 2 keys: row 0 sees none, row 1 one, row 2 both.
  const heed_problem problem = Problem(3, 2, HEED_CAUSAL_BOTTOM_RIGHT);
  const std::vector<float> q = {1, 1, 1}, k = {2, kNan}, v = {5, kNan};
  const Row none = Compute(problem, q, k, v, 0);
  EXPECT_EQ(none.out, 0);
  EXPECT_EQ(none.lse, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(Compute(problem, q, k, v, 1).out, 5);
  EXPECT_TRUE(std::isnan(Compute(problem, q, k, v, 2).out));
}

TEST(TuneReference, ComparisonSeesWhatIsWrong) {
  const heed_problem problem = Problem(1, 1, HEED_CAUSAL_NONE);
  const float q = 1, k = 1, v = 3;
  const ReferenceInputs inputs{&q, &k, &v, 0};
  const float right = 3, off = 3.5f, lse = 1;
  EXPECT_EQ(CompareWithReference(problem, inputs, &right, &lse).out, 0);
  EXPECT_EQ(CompareWithReference(problem, inputs, &right, &lse).lse, 0);
  EXPECT_EQ(CompareWithReference(problem, inputs, &off, nullptr).out, 0.5);
  EXPECT_TRUE(
      std::isinf(CompareWithReference(problem, inputs, &kNan, nullptr).out));
  const float bad = kNan;
  const ReferenceInputs visible_nan{&q, &bad, &v, 0};
  EXPECT_EQ(CompareWithReference(problem, visible_nan, &kNan, nullptr).out, 0);
}

}  // namespace
}  // namespace heed
