#include "tune/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tune/storage.h"

namespace heed {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Keys [0, n) are visible to the token.
int64_t VisibleKeys(const heed_problem& problem, int64_t causal_offset,
                    int64_t token) {
  switch (problem.causal) {
    case HEED_CAUSAL_TOP_LEFT:
      causal_offset = 0;
      break;
    case HEED_CAUSAL_BOTTOM_RIGHT:
      causal_offset = problem.len_k - problem.len_q;
      break;
    case HEED_CAUSAL_OFFSET:
      // Beyond these every row sees all keys or none; within them the sum below
      // cannot overflow.
      causal_offset =
          std::max(-problem.len_q - 1, std::min(causal_offset, problem.len_k));
      break;
    default:
      return problem.len_k;
  }
  return std::max<int64_t>(0,
                           std::min(problem.len_k, token + causal_offset + 1));
}

double Scale(const heed_problem& problem) {
  if (problem.scale_mode == HEED_SCALE_VALUE) return problem.scale;
  if (problem.dim_qk == 0) return 1;
  return 1 / std::sqrt(static_cast<double>(problem.dim_qk));
}

double Distance(double got, double want) {
  if (std::isnan(got) && std::isnan(want)) return 0;
  if (got == want) return 0;
  const double distance = std::fabs(got - want);
  return std::isnan(distance) ? kInfinity : distance;
}

}  // namespace

void ReferenceAttentionRow(const heed_problem& problem,
                           const ReferenceInputs& inputs, int64_t batch,
                           int64_t head, int64_t token, double* out,
                           double* lse) {
  const int64_t head_kv = head / (problem.heads_q / problem.heads_kv);
  const int64_t kv = batch * problem.heads_kv + head_kv;
  const int64_t dim_qk = problem.dim_qk, dim_v = problem.dim_v;
  const int64_t row = (batch * problem.heads_q + head) * problem.len_q + token;
  const float* q = inputs.q + row * dim_qk;
  const float* k = inputs.k + kv * problem.len_k * dim_qk;
  const float* v = inputs.v + kv * problem.len_k * dim_v;
  const int64_t keys = VisibleKeys(problem, inputs.causal_offset, token);
  std::fill(out, out + dim_v, 0.0);
  *lse = -kInfinity;
  if (keys == 0) return;

  const double scale = Scale(problem);
  std::vector<double> weights(static_cast<size_t>(keys));
  double max = -kInfinity;
  for (int64_t j = 0; j < keys; ++j) {
    double dot = 0;
    for (int64_t d = 0; d < dim_qk; ++d) {
      dot += static_cast<double>(q[d]) * static_cast<double>(k[j * dim_qk + d]);
    }
    weights[j] = scale * dot;
    max = std::max(max, weights[j]);
  }
  double sum = 0;
  for (int64_t j = 0; j < keys; ++j) {
    weights[j] = std::exp(weights[j] - max);
    sum += weights[j];
  }
  for (int64_t j = 0; j < keys; ++j) {
    for (int64_t c = 0; c < dim_v; ++c) {
      out[c] += weights[j] * static_cast<double>(v[j * dim_v + c]);
    }
  }
  for (int64_t c = 0; c < dim_v; ++c) out[c] /= sum;
  *lse = max + std::log(sum);
}

ReferenceError CompareWithReference(const heed_problem& problem,
                                    const ReferenceInputs& inputs,
                                    const float* out, const float* lse,
                                    int64_t row_step) {
  ReferenceError error;
  const int64_t rows = problem.batch * problem.heads_q * problem.len_q;
  std::vector<double> want(static_cast<size_t>(problem.dim_v));
  for (int64_t row = 0; row < rows; row += row_step) {
    const int64_t token = row % problem.len_q;
    const int64_t head = row / problem.len_q % problem.heads_q;
    const int64_t batch = row / problem.len_q / problem.heads_q;
    double want_lse = 0;
    ReferenceAttentionRow(problem, inputs, batch, head, token, want.data(),
                          &want_lse);
    for (int64_t c = 0; c < problem.dim_v; ++c) {
      const double got = out[row * problem.dim_v + c];
      const double distance = Distance(got, want[c]);
      error.out = std::max(error.out, distance);
      error.out_unrounded = std::max(
          error.out_unrounded,
          distance - StorageRounding(problem.dtype) * std::fabs(want[c]));
      error.max_abs = std::max(error.max_abs, std::fabs(want[c]));
    }
    if (lse != nullptr) {
      error.lse = std::max(error.lse, Distance(lse[row], want_lse));
    }
    ++error.rows;
  }
  return error;
}

}  // namespace heed
