#include "tests/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "kernels/kernels.h"
#include "tests/row_program.h"
#include "tests/special_values.h"

// The bound. u = 2^-24 is the unit roundoff of float, gamma(n) = n u / (1 - n
// u) bounds the relative error of n roundings in a row (Higham 2002,
// section 3.1). Base-2 scores s_j.
//
//   score     q_scale, q * q_scale, the fused steps of a chain of half the
//             elements (rounded up) and the sum of the two chains round:
//             |ds_j| <= gamma(dim_qk / 2 + 4) sum_d |q_d k_jd| scale log2 e
//   soft cap  its derivative is at most 1, so it passes an error on no larger;
//             its own is kSoftCapError |result| (weight_test.cc sweeps it)
//   ALiBi     slope * log2 e takes two roundings (one is the constant's), the
//             distance two, each at most u times a number of the distance's
//             size or a step's, and the fused add one:
//             4 u |slope| (|distance| + 48) + u |s|
//   mask      bias * log2 e two roundings, the sum one: 3 u |bias| + u |s|
//   weight    2^ds_j from the score, 2e-7 from the polynomial (weight_test.cc
//             sweeps it): relative error e_j <= 2^|ds_j| (1 + 2e-7) - 1
//             What is flushed, or lands in the subnormals, is below 2^-125 of
//             the largest weight.
//   sink      a weight without a value; its score takes two roundings
//   sum       all terms are positive: relative error gamma(n) of n roundings,
//             where a key passes at most a chunk's fused steps and two
//             roundings for each later chunk's merge
//   blend     the same n: absolute error gamma(n) sum_j w_j |v_j|
//   end       two roundings, and two for a sink
// Each of the last three may round in the subnormals too, by 2^-150 before the
// division by a sum of at least one half.
//
// A change of base that would overflow saturates (promise P4): finite masks,
// slopes and sinks go up to FLT_MAX / log2 e, and so do sums of them and a
// finite score.
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

constexpr double kWeightError = 2e-7;
constexpr double kSoftCapError = 1.2e-6;
constexpr double kLargestLogit =
    std::numeric_limits<float>::max() * 0.69314718055994530942;

double ScaleOf(const heed_problem& problem) {
  if (problem.scale_mode == HEED_SCALE_VALUE) return problem.scale;
  const double dim = static_cast<double>(problem.dim_qk);
  return problem.dim_qk == 0 ? 1.0 : 1.0 / std::sqrt(dim);
}

double Saturate(double x) {
  return std::isnan(x) ? x
                       : std::max(-kLargestLogit, std::min(x, kLargestLogit));
}

// A row's place in a call, read from heed.h line by line and not shared with
// the row program.
struct Place {
  int64_t batch, head, kv_head, token;  // token within its sequence
  int64_t used_k;
  double position;  // i + offset; exact in double below 2^53
};

Place PlaceOf(const heed_problem& problem, const heed_call& call, int64_t batch,
              int64_t head, int64_t token) {
  Place place = {
      batch, head,          head / (problem.heads_q / problem.heads_kv),
      token, problem.len_k, 0};
  int64_t len_q = problem.len_q;
  double offset = static_cast<double>(call.causal_offset);
  if (problem.ragged) {
    if (call.cu_seqlens_q) {
      len_q = call.cu_seqlens_q[batch + 1] - call.cu_seqlens_q[batch];
    }
    if (call.cu_seqlens_k) {
      place.used_k = call.cu_seqlens_k[batch + 1] - call.cu_seqlens_k[batch];
    }
    if (call.seqused_k) place.used_k = call.seqused_k[batch];
    if (call.causal_offsets) {
      offset = static_cast<double>(call.causal_offsets[batch]);
    }
  }
  bool top_left = problem.causal == HEED_CAUSAL_TOP_LEFT;
  bool bottom_right = problem.causal == HEED_CAUSAL_BOTTOM_RIGHT;
  if (problem.causal == HEED_CAUSAL_NONE) {
    top_left = problem.align == HEED_ALIGN_TOP_LEFT;
    bottom_right = problem.align == HEED_ALIGN_BOTTOM_RIGHT;
  }
  if (top_left) offset = 0;
  if (bottom_right) offset = static_cast<double>(place.used_k - len_q);
  place.position = static_cast<double>(token) + offset;
  return place;
}

const float* QueryRow(const heed_problem& problem, const heed_call& call,
                      const Place& place) {
  int64_t at = place.head * call.q.stride_head;
  if (problem.ragged && call.cu_seqlens_q) {
    at += (call.cu_seqlens_q[place.batch] + place.token) * call.q.stride_token;
  } else {
    at += place.batch * call.q.stride_batch + place.token * call.q.stride_token;
  }
  return static_cast<const float*>(call.q.data) + at;
}

// The key's row of k or v.
const float* KeyRow(const heed_problem& problem, const heed_call& call,
                    const heed_input& x, const Place& place, int64_t key) {
  int64_t at = place.kv_head * x.stride_head;
  if (problem.page_size > 0) {
    const heed_block_table& table = call.block_table;
    const int32_t page =
        table.data[place.batch * table.stride_batch + key / problem.page_size];
    at += page * x.stride_batch + key % problem.page_size * x.stride_token;
  } else if (problem.ragged && call.cu_seqlens_k) {
    at += (call.cu_seqlens_k[place.batch] + key) * x.stride_token;
  } else {
    at += place.batch * x.stride_batch + key * x.stride_token;
  }
  return static_cast<const float*>(x.data) + at;
}

int64_t MaskElement(const heed_problem& problem, const heed_call& call,
                    const Place& place, int64_t key) {
  int64_t i = place.token, j = key;
  if (problem.mask_block_q > 1) i /= problem.mask_block_q;
  if (problem.mask_block_k > 1) j /= problem.mask_block_k;
  return place.batch * call.mask.stride_batch +
         place.head * call.mask.stride_head + i * call.mask.stride_token + j;
}

// The additive mask; 0 without one.
double Added(const heed_problem& problem, const heed_call& call,
             const Place& place, int64_t key) {
  if (problem.mask != HEED_MASK_F32 && problem.mask != HEED_MASK_DTYPE) {
    return 0;
  }
  return static_cast<const float*>(
      call.mask.data)[MaskElement(problem, call, place, key)];
}

// All of these that are present must hold.
bool IsVisible(const heed_problem& problem, const heed_call& call,
               const Place& place, int64_t key) {
  const double distance = static_cast<double>(key) - place.position;
  if (problem.causal != HEED_CAUSAL_NONE && distance > 0) return false;
  if (problem.window) {
    if (problem.window_left >= 0 &&
        -distance > static_cast<double>(problem.window_left)) {
      return false;
    }
    if (problem.window_right >= 0 &&
        distance > static_cast<double>(problem.window_right)) {
      return false;
    }
  }
  if (problem.mask == HEED_MASK_BOOL) {
    return static_cast<const uint8_t*>(
               call.mask.data)[MaskElement(problem, call, place, key)] != 0;
  }
  return Added(problem, call, place, key) != -kInfinity;
}

// One visible key: its score and how far the float program's may be from it.
struct Logit {
  double score, error;
  const float* v;
};

Logit LogitOf(const heed_problem& problem, const heed_call& call,
              const Place& place, const float* q, int64_t key) {
  const float* k = KeyRow(problem, call, call.k, place, key);
  double dot = 0, magnitude = 0;
  for (int64_t d = 0; d < problem.dim_qk; ++d) {
    const double term = static_cast<double>(q[d]) * k[d];
    dot += term;
    magnitude += std::fabs(term);
  }
  const double scale = ScaleOf(problem);
  double s = scale * dot;
  double error = Gamma(static_cast<double>(problem.dim_qk) / 2 + 4) *
                 magnitude * std::fabs(scale);
  const bool was_finite = std::isfinite(s);
  if (problem.softcap > 0) {
    s = problem.softcap * std::tanh(s / problem.softcap);
    error += kSoftCapError * std::fabs(s);
  }
  if (problem.alibi) {
    const double slope = call.alibi_slopes[place.head];
    const double distance = static_cast<double>(key) - place.position;
    s += slope * distance;
    error += 4 * kUnit * std::fabs(slope) * (std::fabs(distance) + kStep) +
             kUnit * std::fabs(s);
  }
  const double added = Saturate(Added(problem, call, place, key));
  if (added != 0) {
    s += added;
    error += 3 * kUnit * std::fabs(added) + kUnit * std::fabs(s);
  }
  if ((problem.alibi || problem.mask > HEED_MASK_BOOL) && was_finite) {
    s = Saturate(s);
  }
  return {s, error, KeyRow(problem, call, call.v, place, key)};
}

// Of a product, where nothing times anything is nothing.
double Times(double x, double factor) { return x == 0 ? 0 : x * factor; }

}  // namespace

ReferenceRow Reference(const heed_problem& problem, const heed_call& call,
                       int64_t batch, int64_t head, int64_t token) {
  const Place place = PlaceOf(problem, call, batch, head, token);
  const float* q = QueryRow(problem, call, place);
  const auto dim_v = static_cast<size_t>(problem.dim_v);
  const double sink = problem.sinks ? call.sinks[head] : -kInfinity;
  ReferenceRow result;
  result.out.assign(dim_v, 0.0);
  result.out_bound.assign(dim_v, 0.0);
  result.lse = sink;

  std::vector<Logit> logits;
  for (int64_t key = 0; key < place.used_k; ++key) {
    if (IsVisible(problem, call, place, key)) {
      logits.push_back(LogitOf(problem, call, place, q, key));
    }
  }
  if (logits.empty()) return result;
  // The sink is a key without a value, and last.
  const size_t keys = logits.size();
  if (sink != -kInfinity) {
    const double z = Saturate(sink);
    logits.push_back({z, 2 * kUnit * std::fabs(z), nullptr});
  }
  double highest = -kInfinity;
  for (const Logit& logit : logits) highest = std::max(highest, logit.score);

  // Weights, and by how much each may be off before they are divided by their
  // sum; both of weights that are nothing without harm.
  std::vector<double> weights, errors;
  double sum = 0, worst = 0;
  for (const Logit& logit : logits) {
    const double below = logit.score - highest;
    weights.push_back(std::exp(below));
    sum += weights.back();
    const double raised = std::exp(below + logit.error);
    errors.push_back(raised - weights.back() + kWeightError * raised);
  }
  double weight_error = 0;
  for (size_t j = 0; j < logits.size(); ++j) {
    weights[j] /= sum;
    errors[j] /= sum;
    // A weight without importance may be wrong by any factor.
    if (weights[j] > 1e-12) worst = std::max(worst, errors[j] / weights[j]);
    weight_error += errors[j];
  }
  // Roundings of the keys that are passed over are none.
  const double chunks =
      std::ceil(static_cast<double>(place.used_k) / kChunk) + 1;
  const double roundings =
      std::min<double>(static_cast<double>(keys), kChunk) + 2 * chunks + 2;
  const double blend_error = Gamma(roundings);
  const double higher_orders = worst + 2 * blend_error;
  const double inflate =
      higher_orders < 0.5 ? 1 / (1 - higher_orders) : kInfinity;
  result.lse = highest + std::log(sum);
  result.lse_bound = (weight_error + blend_error + 4e-7) * inflate +
                     3 * kUnit * std::fabs(result.lse);

  std::vector<double> magnitude(dim_v, 0.0), shifted(dim_v, 0.0);
  double largest = 0;
  for (size_t j = 0; j < keys; ++j) {
    const float* v = logits[j].v;
    for (size_t c = 0; c < dim_v; ++c) {
      const double value = v[c];
      result.out[c] += weights[j] * value;
      magnitude[c] += weights[j] * std::fabs(value);
      shifted[c] += Times(std::fabs(value), errors[j]);
      largest = std::max(largest, std::fabs(value));
    }
  }
  const double flushed = static_cast<double>(keys) * 0x1p-125 * largest;
  for (size_t c = 0; c < dim_v; ++c) {
    result.out_bound[c] =
        Times(shifted[c] + Times(std::fabs(result.out[c]), weight_error) +
                  (2 * blend_error + 3 * kUnit) * magnitude[c],
              inflate) +
        flushed + (static_cast<double>(keys) + 2 * chunks + 4) * 0x1p-149;
  }
  return result;
}

std::string FirstOutOfBound(const heed_problem& problem, const heed_call& call,
                            int64_t row_step) {
  std::string found;
  int64_t index = 0;
  ForEachRow(problem, call, [&](const RowPlace& row) {
    if (index++ % row_step != 0 || !found.empty()) return;
    const auto check = [&](const char* name, int64_t column, double got,
                           double want, double bound) {
      // An infinite number is its equal and no other.
      if (got == want || (std::isnan(got) && std::isnan(want)) ||
          (std::isfinite(want) && std::fabs(got - want) <= bound) ||
          !found.empty()) {
        return;
      }
      char text[200];
      std::snprintf(text, sizeof(text),
                    "%s of batch %d head %d token %d column %d: got %.9g, want "
                    "%.9g +- %.3g",
                    name, static_cast<int>(row.batch),
                    static_cast<int>(row.head), static_cast<int>(row.token),
                    static_cast<int>(column), got, want, bound);
      found = text;
    };
    const ReferenceRow want =
        Reference(problem, call, row.batch, row.head, row.token);
    if (row.lse != nullptr) check("lse", 0, *row.lse, want.lse, want.lse_bound);
    for (int64_t c = 0; c < problem.dim_v; ++c) {
      check("out", c, row.out[c], want.out[c], want.out_bound[c]);
    }
  });
  return found;
}

}  // namespace heed::test
