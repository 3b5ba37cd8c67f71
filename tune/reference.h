// Attention in double precision, as plain as it can be written: the truth that
// `heed run --check` and the benchmarks hold results against.
#ifndef HEED_TUNE_REFERENCE_H_
#define HEED_TUNE_REFERENCE_H_

#include <cstddef>
#include <cstdint>

#include "runtime/include/heed.h"

namespace heed {

// Dense inputs of a problem, widened to f32 if its dtype is another; and what
// its options ask for, as in heed_call. With cu_seqlens the batch of a tensor
// is 1 and its len all tokens; with pages [num_pages, heads_kv, page_size,
// dim].
struct ReferenceInputs {
  const float* q;  // [batch, heads_q, len_q, dim_qk]
  const float* k;  // [batch, heads_kv, len_k, dim_qk]
  const float* v;  // [batch, heads_kv, len_k, dim_v]
  int64_t causal_offset =
      0;  // read only if HEED_CAUSAL_OFFSET or _ALIGN_OFFSET
  // Bytes for HEED_MASK_BOOL, else floats; strides count elements, 0
  // broadcasts.
  heed_input mask = {};
  const float* alibi_slopes = nullptr;  // [heads_q]
  const float* sinks = nullptr;         // [heads_q]
  const int32_t* seqused_k = nullptr;
  const int32_t* cu_seqlens_q = nullptr;
  const int32_t* cu_seqlens_k = nullptr;
  const int64_t* causal_offsets = nullptr;
  const int32_t* block_table = nullptr;  // [batch, max_pages]
  int64_t max_pages = 0;
};

// One row's out [dim_v] and lse; the token is counted within its sequence. A
// row that sees no key gives zeros, and -inf or its sink; invisible keys are
// not touched, so what they hold cannot matter; a visible NaN makes the row
// NaN. Allocates len_k doubles.
void ReferenceAttentionRow(const heed_problem& problem,
                           const ReferenceInputs& inputs, int64_t batch,
                           int64_t head, int64_t token, double* out,
                           double* lse);

// How far a result is from the reference. NaN against NaN is 0 apart, NaN
// against a number is infinitely far.
struct ReferenceError {
  double out = 0;  // max |out - reference|
  // The same less what rounding the exact result to the problem's dtype may
  // cost: what the arithmetic is to answer for.
  double out_unrounded = 0;
  double lse = 0;      // max |lse - reference|; 0 if lse was null
  size_t rows = 0;     // rows compared
  double max_abs = 0;  // max |reference out|, to judge `out` by
};

// Compares every `row_step`-th row of dense `out`, as q but dim_v wide, widened
// likewise, and `lse` (may be null). Slow: one thread, 2 *
// (dim_qk + dim_v) double operations per visible pair.
ReferenceError CompareWithReference(const heed_problem& problem,
                                    const ReferenceInputs& inputs,
                                    const float* out, const float* lse,
                                    int64_t row_step = 1);

}  // namespace heed

#endif  // HEED_TUNE_REFERENCE_H_
