// The tuner's double reference against values that can be told by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/special_values.h"
#include "tune/reference.h"

namespace heed {
namespace {

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
  const std::vector<float> q = {1, 1, 1}, k = {2, test::kNan},
                           v = {5, test::kNan};
  const Row none = Compute(problem, q, k, v, 0);
  EXPECT_EQ(none.out, 0);
  EXPECT_EQ(none.lse, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(Compute(problem, q, k, v, 1).out, 5);
  EXPECT_TRUE(std::isnan(Compute(problem, q, k, v, 2).out));
}

// One query of 0 against keys whose values are powers of two: the result tells
// which keys it saw, and with which weights.
struct Options {
  heed_problem problem;
  ReferenceInputs inputs;
  const std::vector<float> q = {0, 0, 0, 0}, k = {0, 0, 0, 0};
  const std::vector<float> v = {1, 2, 4, 8};

  explicit Options(int64_t len_q) : problem(Problem(len_q, 4, 0)) {
    inputs = {q.data(), k.data(), v.data(), 0};
  }
  Row Of(int64_t token, int64_t batch = 0) const {
    Row row;
    ReferenceAttentionRow(problem, inputs, batch, 0, token, &row.out, &row.lse);
    return row;
  }
};

TEST(TuneReference, WindowsReachToBothSidesOfTheRowsPlace) {
  Options o(4);
  o.problem.window = 1;
  o.problem.align = HEED_ALIGN_TOP_LEFT;
  o.problem.window_left = 1;
  o.problem.window_right = 1;
  EXPECT_NEAR(o.Of(0).out, 1.5, 1e-12);
  EXPECT_NEAR(o.Of(1).out, 7.0 / 3, 1e-12);
  o.problem.window_right = -1;
  EXPECT_NEAR(o.Of(2).out, 14.0 / 3, 1e-12);
  o.problem.align = HEED_ALIGN_OFFSET;
  o.inputs.causal_offset = 4;
  EXPECT_EQ(o.Of(0).out, 8);
  EXPECT_EQ(o.Of(2).out, 0);
}

TEST(TuneReference, MasksHideAndAdd) {
  Options o(1);
  const std::vector<uint8_t> bytes = {0, 1, 255, 0};
  o.problem.mask = HEED_MASK_BOOL;
  o.inputs.mask.data = bytes.data();
  EXPECT_NEAR(o.Of(0).out, 3, 1e-12);
  const auto ln2 = static_cast<float>(std::log(2.0));
  const float hidden = -std::numeric_limits<float>::infinity();
  const std::vector<float> added = {hidden, ln2, 0, hidden};
  o.problem.mask = HEED_MASK_F32;
  o.inputs.mask.data = added.data();
  EXPECT_NEAR(o.Of(0).out, 8.0 / 3, 1e-6);
  const std::vector<float> lowest(4, std::numeric_limits<float>::lowest());
  o.inputs.mask.data = lowest.data();
  EXPECT_NEAR(o.Of(0).out, 15.0 / 4, 1e-12);
}

TEST(TuneReference, AlibiAddsWhatTheDistanceSays) {
  Options o(4);
  const auto slope = static_cast<float>(std::log(2.0));
  o.problem.alibi = 1;
  o.problem.align = HEED_ALIGN_TOP_LEFT;
  o.inputs.alibi_slopes = &slope;
  // Weights 2^-2, 2^-1, 1, 2.
  EXPECT_NEAR(o.Of(2).out, (0.25 + 1 + 4 + 16) / 3.75, 1e-6);
}

TEST(TuneReference, SoftCapsComeBeforeTheMask) {
  Options o(1);
  const std::vector<float> q = {1}, k = {1e6f, -1e6f, 0, 0};
  const std::vector<float> added = {0, 2, -1e30f, -1e30f};
  o.inputs.q = q.data();
  o.inputs.k = k.data();
  o.problem.softcap = 1;
  o.problem.mask = HEED_MASK_F32;
  o.inputs.mask.data = added.data();
  EXPECT_NEAR(o.Of(0).out, 1.5, 1e-12);  // scores 1 and -1 + 2
}

TEST(TuneReference, SinksTakeWeightAndAreTheSumOfNothing) {
  Options o(1);
  const auto sink = static_cast<float>(std::log(4.0));
  o.problem.sinks = 1;
  o.inputs.sinks = &sink;
  EXPECT_NEAR(o.Of(0).out, 15.0 / 8, 1e-6);
  EXPECT_NEAR(o.Of(0).lse, std::log(8.0), 1e-6);
  o.problem.causal = HEED_CAUSAL_OFFSET;
  o.inputs.causal_offset = -1;
  EXPECT_EQ(o.Of(0).out, 0);
  EXPECT_EQ(o.Of(0).lse, sink);
}

TEST(TuneReference, SequencesHaveTheirOwnTokens) {
  Options o(3);
  o.problem.batch = 2;
  o.problem.ragged = 1;
  o.problem.causal = HEED_CAUSAL_BOTTOM_RIGHT;
  const std::vector<int32_t> starts_q = {0, 1, 4}, starts_k = {0, 1, 4};
  o.inputs.cu_seqlens_q = starts_q.data();
  o.inputs.cu_seqlens_k = starts_k.data();
  EXPECT_EQ(o.Of(0, 0).out, 1);
  EXPECT_EQ(o.Of(0, 1).out, 2);
  EXPECT_NEAR(o.Of(2, 1).out, 14.0 / 3, 1e-12);
  const std::vector<int32_t> used = {0, 2};
  o.inputs.seqused_k = used.data();
  EXPECT_EQ(o.Of(0, 0).out, 0);
  EXPECT_EQ(o.Of(0, 1).out, 0);
  EXPECT_EQ(o.Of(1, 1).out, 2);
  EXPECT_NEAR(o.Of(2, 1).out, 3, 1e-12);
}

TEST(TuneReference, PagesAreReadThroughTheTable) {
  Options o(1);
  o.problem.len_k = 3;
  o.problem.page_size = 2;
  const std::vector<int32_t> table = {1, 0};
  o.inputs.block_table = table.data();
  o.inputs.max_pages = 2;
  EXPECT_NEAR(o.Of(0).out, (4 + 8 + 1) / 3.0, 1e-12);
}

TEST(TuneReference, ComparisonSeesWhatIsWrong) {
  const heed_problem problem = Problem(1, 1, HEED_CAUSAL_NONE);
  const float q = 1, k = 1, v = 3;
  const ReferenceInputs inputs{&q, &k, &v, 0};
  const float right = 3, off = 3.5f, lse = 1;
  EXPECT_EQ(CompareWithReference(problem, inputs, &right, &lse).out, 0);
  EXPECT_EQ(CompareWithReference(problem, inputs, &right, &lse).lse, 0);
  EXPECT_EQ(CompareWithReference(problem, inputs, &off, nullptr).out, 0.5);
  EXPECT_TRUE(std::isinf(
      CompareWithReference(problem, inputs, &test::kNan, nullptr).out));
  const float bad = test::kNan;
  const ReferenceInputs visible_nan{&q, &bad, &v, 0};
  EXPECT_EQ(
      CompareWithReference(problem, visible_nan, &test::kNan, nullptr).out, 0);
}

}  // namespace
}  // namespace heed
