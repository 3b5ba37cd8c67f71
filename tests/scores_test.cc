// heed_scores(): each stage against the definition in double precision, weights
// against out, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/special_values.h"

namespace heed::test {
namespace {

// Two heads on one kv head, everything at once.
Case FullCase(int64_t len_q, int64_t len_k) {
  heed_problem p =
      MakeProblem(2, 2, 1, len_q, len_k, 24, 8, HEED_CAUSAL_BOTTOM_RIGHT);
  p.softcap = 3.0;
  p.alibi = 1;
  p.sinks = 1;
  p.mask = HEED_MASK_F32;
  p.window = 1;
  p.window_left = 60;
  p.window_right = -1;
  Case c = MakeCase(p);
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  for (std::vector<float>* x : {&c.q, &c.k, &c.v}) {
    for (float& value : *x) value = normal(random);
  }
  c.slopes = {0.25f, 0.01f};
  c.sinks = {0.5f, -2.0f};
  c.mask.len_q = len_q;
  c.mask.room = len_k;
  for (int64_t i = 0; i < len_q * len_k; ++i) {
    c.mask.values.push_back(random() % 5 == 0
                                ? -std::numeric_limits<float>::infinity()
                                : normal(random));
  }
  return c;
}

struct Element {
  int64_t batch, head, i, j;
};

// A score of FullCase() at a stage before the weights.
double Score(const Case& c, const Element& e, heed_score_stage stage) {
  const heed_problem& p = c.problem;
  double dot = 0;
  for (int64_t d = 0; d < p.dim_qk; ++d) {
    const int64_t row = (e.batch * p.heads_q + e.head) * p.len_q + e.i;
    const int64_t key = e.batch * p.len_k + e.j;
    dot +=
        static_cast<double>(c.q[row * p.dim_qk + d]) * c.k[key * p.dim_qk + d];
  }
  double s = dot / std::sqrt(static_cast<double>(p.dim_qk));
  if (stage == HEED_SCORES_SCALED) return s;
  s = p.softcap * std::tanh(s / p.softcap);
  if (stage == HEED_SCORES_CAPPED) return s;
  const int64_t position = e.i + p.len_k - p.len_q;
  if (e.j > position || e.j < position - p.window_left) return -kInfinity;
  s += static_cast<double>(c.slopes[e.head]) * (e.j - position);
  return s + c.mask.values[e.i * p.len_k + e.j];
}

std::vector<float> ScoresOf(const Case& c, heed_score_stage stage) {
  const heed_problem& p = c.problem;
  std::vector<float> scores(
      static_cast<size_t>(p.batch * p.heads_q * p.len_q * p.len_k), 7.0f);
  Result ignored;
  heed_call call = DenseCall(c, &ignored);
  call.v = {};
  call.out = {};
  const heed_output output =
      heed_dense_output(scores.data(), p.heads_q, p.len_q, p.len_k);
  EXPECT_EQ(HEED_OK, heed_scores(&p, nullptr, &call, stage, &output))
      << heed_last_error();
  return scores;
}

template <typename F>
void ForEachElement(const heed_problem& p, const F& f) {
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t h = 0; h < p.heads_q; ++h) {
      for (int64_t i = 0; i < p.len_q; ++i) {
        for (int64_t j = 0; j < p.len_k; ++j) f(Element{b, h, i, j});
      }
    }
  }
}

size_t At(const heed_problem& p, const Element& e) {
  return static_cast<size_t>(
      ((e.batch * p.heads_q + e.head) * p.len_q + e.i) * p.len_k + e.j);
}

TEST(Scores, EachStageIsTheDefinition) {
  for (const int64_t len_q : {1, 5, 70}) {
    const Case c = FullCase(len_q, 131);
    for (const heed_score_stage stage :
         {HEED_SCORES_SCALED, HEED_SCORES_CAPPED, HEED_SCORES_BIASED}) {
      const std::vector<float> scores = ScoresOf(c, stage);
      ForEachElement(c.problem, [&](const Element& e) {
        const double want = Score(c, e, stage);
        const double got = scores[At(c.problem, e)];
        if (want == -kInfinity) {
          ASSERT_EQ(want, got);
        } else {
          // 24 products, their sum and three roundings of the log2 domain.
          ASSERT_NEAR(want, got, 4e-6 * (1 + std::fabs(want))) << stage;
        }
      });
    }
  }
}

TEST(Scores, WeightsAreTheSoftmaxWithItsSink) {
  const Case c = FullCase(70, 131);
  const heed_problem& p = c.problem;
  const std::vector<float> weights = ScoresOf(c, HEED_SCORES_WEIGHTS);
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t h = 0; h < p.heads_q; ++h) {
      for (int64_t i = 0; i < p.len_q; ++i) {
        double sum = std::exp(static_cast<double>(c.sinks[h]));
        for (int64_t j = 0; j < p.len_k; ++j) {
          sum += std::exp(Score(c, {b, h, i, j}, HEED_SCORES_BIASED));
        }
        for (int64_t j = 0; j < p.len_k; ++j) {
          const double want =
              std::exp(Score(c, {b, h, i, j}, HEED_SCORES_BIASED)) / sum;
          const double got = weights[At(p, {b, h, i, j})];
          if (want == 0) {
            ASSERT_EQ(0, got);
          } else {
            ASSERT_NEAR(want, got, 1e-5 * want + 1e-30);
          }
        }
      }
    }
  }
}

TEST(Scores, WeightsOfEmptyRowsAreZeroAndOthersSumToOne) {
  Case c = MakeCase(MakeProblem(1, 1, 1, 6, 4, 8, 8, HEED_CAUSAL_BOTTOM_RIGHT));
  const std::vector<float> weights = ScoresOf(c, HEED_SCORES_WEIGHTS);
  // Row i sees keys 0 to i - 2; all scores are 0.
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      const float want = j <= i - 2 ? 1.0f / static_cast<float>(i - 1) : 0.0f;
      EXPECT_FLOAT_EQ(want, weights[static_cast<size_t>(i * 4 + j)]);
    }
  }
}

TEST(Scores, AreThoseOfEveryStorageType) {
  const float q[2] = {1.5f, -2.0f}, k[4] = {0.5f, 1.0f, 2.0f, -0.25f};
  const uint16_t q16[2][2] = {{0x3E00, 0xC000}, {0x3FC0, 0xC000}};
  const uint16_t k16[2][4] = {{0x3800, 0x3C00, 0x4000, 0xB400},
                              {0x3F00, 0x3F80, 0x4000, 0xBE80}};
  heed_problem p = MakeProblem(1, 1, 1, 1, 2, 2, 1);
  p.scale_mode = HEED_SCALE_VALUE;
  p.scale = 1;
  const void* queries[] = {q, q16[0], q16[1]};
  const void* keys[] = {k, k16[0], k16[1]};
  for (int type = 0; type < 3; ++type) {
    p.dtype = HEED_F32 + type;
    float scores[2] = {};
    heed_call call;
    heed_call_init(&call);
    call.q = heed_dense_input(queries[type], 1, 1, 2);
    call.k = heed_dense_input(keys[type], 1, 2, 2);
    const heed_output output = heed_dense_output(scores, 1, 1, 2);
    ASSERT_EQ(HEED_OK,
              heed_scores(&p, nullptr, &call, HEED_SCORES_SCALED, &output))
        << heed_last_error();
    EXPECT_FLOAT_EQ(-1.25f, scores[0]);
    EXPECT_FLOAT_EQ(3.5f, scores[1]);
  }
}

TEST(Scores, BadArgumentsAreNamedAndNothingIsWritten) {
  Case c = MakeCase(MakeProblem(1, 1, 1, 2, 3, 4, 4));
  Result ignored;
  const heed_call call = DenseCall(c, &ignored);
  std::vector<float> scores(6, 7.0f);
  const heed_output output = heed_dense_output(scores.data(), 1, 2, 3);
  const auto fails = [&](const heed_problem* p, const heed_call* data,
                         int stage, const heed_output* to,
                         const char* message) {
    EXPECT_EQ(HEED_INVALID_ARGUMENT,
              heed_scores(p, nullptr, data,
                          static_cast<heed_score_stage>(stage), to));
    EXPECT_STREQ(message, heed_last_error());
  };
  const heed_problem& p = c.problem;
  fails(nullptr, &call, 1, &output, "problem is NULL; expected an address");
  fails(&p, nullptr, 1, &output, "call is NULL; expected an address");
  fails(&p, &call, 1, nullptr, "scores is NULL; expected an address");
  fails(&p, &call, 0, &output,
        "stage is 0; expected HEED_SCORES_SCALED (1), _CAPPED (2), _BIASED (3) "
        "or _WEIGHTS (4)");
  heed_output bad = output;
  bad.stride_token = 1;
  EXPECT_EQ(HEED_INVALID_ARGUMENT,
            heed_scores(&p, nullptr, &call, HEED_SCORES_SCALED, &bad));
  EXPECT_NE(std::string::npos,
            std::string(heed_last_error()).find("scores overlaps itself"))
      << heed_last_error();
  for (const float score : scores) EXPECT_EQ(7.0f, score);
}

}  // namespace
}  // namespace heed::test
