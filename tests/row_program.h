// The row program in plain scalar C++: the specification of heed's bits.
//
// One row is one (query token, query head) pair. Every kernel, SIMD target,
// tile, thread count and phase must give these bytes. It knows nothing of the
// kernels but the numbers they share (kernels/row_constants.h). Compiled with
// -ffp-contract=off: std::fma where the program says so, one rounding per
// operation everywhere else.
#ifndef HEED_TESTS_ROW_PROGRAM_H_
#define HEED_TESTS_ROW_PROGRAM_H_

#include <heed.h>

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace heed::test {

// One row and the keys it sees. Strides count elements.
struct Row {
  const float* q;  // [dim_qk]
  const float* k;  // key 0, [len_k, dim_qk]
  const float* v;  // key 0, [len_k, dim_v]
  int64_t k_stride, v_stride;
  size_t dim_qk, dim_v;
  int64_t begin, end;  // visible keys [begin, end); none if begin >= end
  float q_scale;       // scale * log2(e), rounded once
};

// Writes out[dim_v] and *lse. `step` is kStep; any other value is another
// program, which the tests use to show that they could tell the difference.
void RowProgram(const Row& row, float* out, float* lse, size_t step = kStep);

// The weight 2^(s - m) with which a visible key of score s enters a row whose
// running maximum is the integer m.
float RowWeight(float s, float m);

// log2 of a positive float, as the row program takes it of a row's sum.
float RowLog2(float x);

// scale * log2(e) as one float; a finite scale stays finite.
float QueryScale(const heed_problem& problem);

// Row (batch, head, token) of a call.
Row RowOf(const heed_problem& problem, const heed_call& call, int64_t batch,
          int64_t head, int64_t token);

// The whole call: writes call.out and, if it is wanted, call.lse. The arguments
// must be valid.
void RowProgramAttention(const heed_problem& problem, const heed_call& call,
                         size_t step = kStep);

}  // namespace heed::test

#endif  // HEED_TESTS_ROW_PROGRAM_H_
