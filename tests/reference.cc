#include "tests/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"
#include "tests/row_program.h"

// The bound. u = 2^-24 is the unit roundoff of float, gamma(n) = n u / (1 - n
// u) bounds the relative error of n roundings in a row (Higham 2002,
// section 3.1). Base-2 scores s_j.
//
//   score    q_scale, q * q_scale, the fused steps of a chain of half the
//            elements (rounded up) and the sum of the two chains round:
//            |ds_j| <= gamma(dim_qk / 2 + 4) * sum_d |q_d k_jd| * scale * log2
//            e
//   weight   2^ds_j from the score, 2e-7 from the polynomial (weight_test.cc
//   sweeps it):
//            relative error e_j <= 2^|ds_j| (1 + 2e-7) - 1
//            What is flushed, or lands in the subnormals, is below 2^-125 of
//            the largest weight.
//   sum      all terms are positive: relative error gamma(n) of n roundings,
//   where a key passes
//            at most a chunk's fused steps and two roundings for each later
//            chunk's merge
//   blend    the same n: absolute error gamma(n) * sum_j w_j |v_j|
//   end      two roundings
//
// out = sum w v / sum w moves by at most sum p_j e_j |v_j - out| to first
// order, so
//   |d out| <= (sum_j p_j e_j (|v_j| + |out|) + (2 gamma(n) + 3 u) sum_j p_j
//   |v_j|) / (1 - E)
// where E = max e_j + 2 gamma(n) covers the higher orders. log-sum-exp has
// derivative p_j, so
//   |d lse| <= (sum_j p_j e_j + gamma(n) + 4e-7) / (1 - E) + 3 u |lse|
// with 4e-7 for our log2 of a value at most a few hundred chunks large (its
// exponent is exact).

namespace heed::test {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kWeightError = 2e-7;

double Gamma(double n) { return n * kUnit / (1 - n * kUnit); }

double ScaleOf(const heed_problem& problem) {
  if (problem.scale_mode == HEED_SCALE_VALUE) return problem.scale;
  const double dim = static_cast<double>(problem.dim_qk);
  return problem.dim_qk == 0 ? 1.0 : 1.0 / std::sqrt(dim);
}

}  // namespace

ReferenceRow Reference(const heed_problem& problem, const heed_call& call,
                       int64_t batch, int64_t head, int64_t token) {
  const Row row = RowOf(problem, call, batch, head, token);
  const double infinity = std::numeric_limits<double>::infinity();
  ReferenceRow result;
  result.out.assign(row.dim_v, 0.0);
  result.out_bound.assign(row.dim_v, 0.0);
  result.lse = -infinity;
  if (row.begin >= row.end) return result;

  const size_t keys = static_cast<size_t>(row.end - row.begin);
  const double scale = ScaleOf(problem);
  std::vector<double> scores(keys), weights(keys), errors(keys);
  double highest = -infinity;
  for (size_t j = 0; j < keys; ++j) {
    const float* k =
        row.k + (row.begin + static_cast<int64_t>(j)) * row.k_stride;
    double dot = 0, magnitude = 0;
    for (size_t d = 0; d < row.dim_qk; ++d) {
      const double term = static_cast<double>(row.q[d]) * k[d];
      dot += term;
      magnitude += std::fabs(term);
    }
    scores[j] = scale * dot;
    const double score_error =
        Gamma(row.dim_qk / 2.0 + 4.0) * magnitude * std::fabs(scale);
    errors[j] = std::expm1(score_error + kWeightError);
    highest = std::max(highest, scores[j]);
  }
  double sum = 0;
  for (size_t j = 0; j < keys; ++j) {
    weights[j] = std::exp(scores[j] - highest);
    sum += weights[j];
  }

  const double chunks = std::ceil(static_cast<double>(keys) / kChunk) + 1;
  const double roundings =
      std::min<double>(static_cast<double>(keys), kChunk) + 2 * chunks;
  const double blend_error = Gamma(roundings);
  double weight_error = 0, worst = 0;
  for (size_t j = 0; j < keys; ++j) {
    weights[j] /= sum;
    // A weight without importance may be wrong by any factor.
    if (weights[j] > 1e-12) worst = std::max(worst, errors[j]);
    weight_error += weights[j] * errors[j];
  }
  const double higher_orders = worst + 2 * blend_error;
  const double inflate =
      higher_orders < 0.5 ? 1 / (1 - higher_orders) : infinity;
  result.lse = highest + std::log(sum);
  result.lse_bound = (weight_error + blend_error + 4e-7) * inflate +
                     3 * kUnit * std::fabs(result.lse);

  std::vector<double> magnitude(row.dim_v, 0.0), shifted(row.dim_v, 0.0);
  double largest = 0;
  for (size_t j = 0; j < keys; ++j) {
    const float* v =
        row.v + (row.begin + static_cast<int64_t>(j)) * row.v_stride;
    for (size_t c = 0; c < row.dim_v; ++c) {
      result.out[c] += weights[j] * v[c];
      magnitude[c] += weights[j] * std::fabs(v[c]);
      shifted[c] += weights[j] * errors[j] * std::fabs(v[c]);
      largest = std::max(largest, std::fabs(static_cast<double>(v[c])));
    }
  }
  const double flushed = static_cast<double>(keys) * 0x1p-125 * largest;
  for (size_t c = 0; c < row.dim_v; ++c) {
    result.out_bound[c] =
        (shifted[c] + weight_error * std::fabs(result.out[c]) +
         (2 * blend_error + 3 * kUnit) * magnitude[c]) *
            inflate +
        flushed + static_cast<double>(keys) * 0x1p-149;
  }
  return result;
}

}  // namespace heed::test
