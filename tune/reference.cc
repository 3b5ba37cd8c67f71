#include "tune/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tune/storage.h"

namespace heed {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A finite number that a change to base 2 would make infinite saturates.
constexpr double kLargestLogit =
    std::numeric_limits<float>::max() * 0.69314718055994530942;

double Saturate(double x) {
  return std::isnan(x) ? x : std::clamp(x, -kLargestLogit, kLargestLogit);
}

// Where batch element's tokens are: its own lengths, and the flat index of its
// first token in the one run, or -1 where the batch is an axis.
struct Sequence {
  int64_t len_q, len_k;
  int64_t first_q = -1, first_k = -1;
  int64_t offset = 0;  // token 0 of q stands at this key
};

Sequence SequenceOf(const heed_problem& problem, const ReferenceInputs& inputs,
                    int64_t batch) {
  Sequence s = {problem.len_q, problem.len_k};
  const bool ragged = problem.ragged != 0;
  if (ragged && inputs.cu_seqlens_q != nullptr) {
    s.first_q = inputs.cu_seqlens_q[batch];
    s.len_q = inputs.cu_seqlens_q[batch + 1] - s.first_q;
  }
  if (ragged && inputs.cu_seqlens_k != nullptr) {
    s.first_k = inputs.cu_seqlens_k[batch];
    s.len_k = inputs.cu_seqlens_k[batch + 1] - s.first_k;
  }
  if (ragged && inputs.seqused_k != nullptr) s.len_k = inputs.seqused_k[batch];
  const int32_t align =
      problem.causal == HEED_CAUSAL_NONE ? problem.align : problem.causal;
  switch (align) {
    case HEED_ALIGN_BOTTOM_RIGHT:
      s.offset = s.len_k - s.len_q;
      break;
    case HEED_ALIGN_OFFSET:
      s.offset = ragged && inputs.causal_offsets != nullptr
                     ? inputs.causal_offsets[batch]
                     : inputs.causal_offset;
      // No sum of it and a length overflows.
      s.offset = std::clamp(s.offset, INT64_MIN / 4, INT64_MAX / 4);
      break;
    default:
      break;
  }
  return s;
}

// One row of the problem, which tells what it sees.
struct RowView {
  const heed_problem& problem;
  const ReferenceInputs& inputs;
  Sequence sequence;
  int64_t batch, head, token;

  // Keys beyond the row's own place; negative before it.
  int64_t Distance(int64_t key) const { return key - token - sequence.offset; }
  int64_t MaskIndex(int64_t key) const {
    const int64_t block_q = std::max(problem.mask_block_q, 1);
    const int64_t block_k = std::max(problem.mask_block_k, 1);
    return batch * inputs.mask.stride_batch + head * inputs.mask.stride_head +
           token / block_q * inputs.mask.stride_token + key / block_k;
  }
  double Added(int64_t key) const {
    if (problem.mask == HEED_MASK_NONE || problem.mask == HEED_MASK_BOOL) {
      return 0;
    }
    return static_cast<const float*>(inputs.mask.data)[MaskIndex(key)];
  }
  bool Sees(int64_t key) const;
  // Index of the key in a dense tensor of [.., heads_kv, .., 1].
  int64_t KeyIndex(int64_t key) const;
  double Score(const float* q, int64_t key) const;
};

bool RowView::Sees(int64_t key) const {
  const int64_t distance = Distance(key);
  if (problem.causal != HEED_CAUSAL_NONE && distance > 0) return false;
  if (problem.window != 0) {
    const int64_t left = problem.window_left, right = problem.window_right;
    if (left >= 0 && distance < -left) return false;
    if (right >= 0 && distance > right) return false;
  }
  if (problem.mask == HEED_MASK_BOOL) {
    return static_cast<const uint8_t*>(inputs.mask.data)[MaskIndex(key)] != 0;
  }
  return Added(key) != -kInfinity;
}

int64_t RowView::KeyIndex(int64_t key) const {
  const int64_t kv_head = head / (problem.heads_q / problem.heads_kv);
  if (problem.page_size > 0) {
    const int64_t page =
        inputs.block_table[batch * inputs.max_pages + key / problem.page_size];
    return (page * problem.heads_kv + kv_head) * problem.page_size +
           key % problem.page_size;
  }
  if (sequence.first_k >= 0) {
    const int64_t tokens = inputs.cu_seqlens_k[problem.batch];
    return kv_head * tokens + sequence.first_k + key;
  }
  return (batch * problem.heads_kv + kv_head) * problem.len_k + key;
}

double ScaleOf(const heed_problem& problem) {
  if (problem.scale_mode == HEED_SCALE_VALUE) return problem.scale;
  if (problem.dim_qk == 0) return 1;
  return 1 / std::sqrt(static_cast<double>(problem.dim_qk));
}

double RowView::Score(const float* q, int64_t key) const {
  const float* k = inputs.k + KeyIndex(key) * problem.dim_qk;
  double dot = 0;
  for (int64_t d = 0; d < problem.dim_qk; ++d) {
    dot += static_cast<double>(q[d]) * static_cast<double>(k[d]);
  }
  const double raw = ScaleOf(problem) * dot;
  double s = raw;
  if (problem.softcap > 0) {
    s = problem.softcap * std::tanh(s / problem.softcap);
  }
  if (problem.alibi != 0) {
    s += static_cast<double>(inputs.alibi_slopes[head]) *
         static_cast<double>(Distance(key));
  }
  s += Saturate(Added(key));
  return std::isfinite(raw) ? Saturate(s) : s;
}

// Index of the row in a dense tensor of [.., heads_q, .., 1].
int64_t QueryIndex(const heed_problem& problem, const ReferenceInputs& inputs,
                   const RowView& row) {
  if (row.sequence.first_q >= 0) {
    const int64_t tokens = inputs.cu_seqlens_q[problem.batch];
    return row.head * tokens + row.sequence.first_q + row.token;
  }
  return (row.batch * problem.heads_q + row.head) * problem.len_q + row.token;
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
  const RowView row = {problem, inputs, SequenceOf(problem, inputs, batch),
                       batch,   head,   token};
  const int64_t dim_v = problem.dim_v;
  const double sink = problem.sinks != 0 ? inputs.sinks[head] : -kInfinity;
  const float* q = inputs.q + QueryIndex(problem, inputs, row) * problem.dim_qk;
  std::fill(out, out + dim_v, 0.0);
  *lse = sink;

  std::vector<int64_t> keys;
  std::vector<double> weights;
  double max = Saturate(sink);
  if (sink == -kInfinity) max = -kInfinity;
  for (int64_t j = 0; j < row.sequence.len_k; ++j) {
    if (!row.Sees(j)) continue;
    keys.push_back(j);
    weights.push_back(row.Score(q, j));
    max = std::max(max, weights.back());
  }
  if (keys.empty()) return;
  double sum = sink == -kInfinity ? 0 : std::exp(Saturate(sink) - max);
  for (size_t j = 0; j < keys.size(); ++j) {
    const float* v = inputs.v + row.KeyIndex(keys[j]) * dim_v;
    const double weight = std::exp(weights[j] - max);
    sum += weight;
    for (int64_t c = 0; c < dim_v; ++c) {
      out[c] += weight * static_cast<double>(v[c]);
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
  std::vector<double> want(static_cast<size_t>(problem.dim_v));
  int64_t count = 0;
  const auto compare = [&](const RowView& place) {
    if (count++ % row_step != 0) return;
    double want_lse = 0;
    ReferenceAttentionRow(problem, inputs, place.batch, place.head, place.token,
                          want.data(), &want_lse);
    const int64_t row = QueryIndex(problem, inputs, place);
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
  };
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const Sequence sequence = SequenceOf(problem, inputs, batch);
    for (int64_t head = 0; head < problem.heads_q; ++head) {
      for (int64_t token = 0; token < sequence.len_q; ++token) {
        compare({problem, inputs, sequence, batch, head, token});
      }
    }
  }
  return error;
}

}  // namespace heed
