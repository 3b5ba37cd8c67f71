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
#include <functional>

#include "kernels/kernels.h"

namespace heed::test {

// The rows of k or of v by the number of their key: one run, or pages.
struct KeyRows {
  const float* data = nullptr;  // key 0, or the first key of page 0
  int64_t stride = 0;           // elements between keys of the run or page
  // Keys [i * page_size, (i + 1) * page_size) lie in page pages[i]; null: a
  // run.
  const int32_t* pages = nullptr;
  int64_t page_size = 0;
  int64_t page_stride = 0;  // elements between pages

  const float* Key(int64_t key) const;
};

// One row and what it may see. Strides count elements.
struct Row {
  const float* q = nullptr;  // [dim_qk]
  KeyRows k, v;
  size_t dim_qk = 0, dim_v = 0;
  float q_scale = 0;  // scale * log2(e), rounded once
  // The keys that lengths, causal line and window leave; none if begin >= end.
  int64_t begin = 0, end = 0;

  // What it has not is null or 0. Natural units.
  float softcap = 0;
  const float* slope = nullptr;  // of ALiBi
  int64_t position = 0;  // where the row stands among the keys; for ALiBi
  // Boolean mask, 0 hides; an element stands for visible_block keys.
  const uint8_t* visible = nullptr;
  int64_t visible_block = 1;
  const float* added = nullptr;  // additive mask by key; -inf hides
  const float* sink = nullptr;

  bool Sees(int64_t key) const;
};

// Writes out[dim_v] and *lse. `step` is kStep; any other value is another
// program, which the tests use to show that they could tell the difference.
void RowProgram(const Row& row, float* out, float* lse, size_t step = kStep);

// The weight 2^(s - m) with which a visible key of score s enters a row whose
// running maximum is the integer m.
float RowWeight(float s, float m);

// log2 of a positive float, as the row program takes it of a row's sum.
float RowLog2(float x);

// softcap * tanh(s / softcap) of a score s in the log2 domain, softcap in
// natural units.
float RowSoftCap(float s, float softcap);

// scale * log2(e) as one float; a finite scale stays finite.
float QueryScale(const heed_problem& problem);

// Where a row is in its call, and where its results go.
struct RowPlace {
  int64_t batch, head;
  int64_t token;  // within its sequence
  float* out;     // [dim_v]
  float* lse;     // null if it is not wanted
};

// Visits every row of a call: of sequences of their own lengths, as many as
// they have.
void ForEachRow(const heed_problem& problem, const heed_call& call,
                const std::function<void(const RowPlace&)>& visit);

// Row (batch, head, token) of an f32 call, bound to everything that the
// problem's options ask of a call. The arguments must be valid.
Row RowOf(const heed_problem& problem, const heed_call& call, int64_t batch,
          int64_t head, int64_t token);

// The whole call: writes call.out and, if it is wanted, call.lse.
void RowProgramAttention(const heed_problem& problem, const heed_call& call,
                         size_t step = kStep);

}  // namespace heed::test

#endif  // HEED_TESTS_ROW_PROGRAM_H_
