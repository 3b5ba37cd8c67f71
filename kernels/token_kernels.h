// What kernels/ offers to an attention block beside attention: norms,
// projections and RoPE of tokens, as data.
//
// No threads, no allocation, nothing here fails. The chains of operations are
// those of runtime/include/heed_block.h. This header knows no ISA.
#ifndef HEED_KERNELS_TOKEN_KERNELS_H_
#define HEED_KERNELS_TOKEN_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace heed {

// Inputs of a projection that make one chain; their sums are added up in order.
// Part of the bits. 256 inputs of a panel of 16 columns are 16 KB: they stay in
// the L1 while rows pass by. A chain of 256 errs less than one of all inputs,
// and costs one addition in 256.
constexpr size_t kInputChunk = 256;

// Interleaved chains of a norm's sums. Part of the bits.
constexpr size_t kSumChains = 16;

// Rows [0, rows) of y = bias + x w, for panels [panel_begin, panel_end) of w.
//
// w is packed: chunks of kInputChunk inputs (the last has the rest), in each
// chunk its panels of panel_columns outputs, in each panel input by input a run
// of panel_columns elements. Columns beyond the matrix are zero.
struct ProjectTask {
  const float* x;  // [rows, inputs]
  size_t x_stride;
  size_t rows, inputs;  // both at least 1
  const void* w;        // all of it, of the function's type, aligned to 64
  size_t panels;        // of w
  const float* bias;    // [panels * panel_columns], aligned to 64
  size_t panel_begin, panel_end;
  // [rows, (panel_end - panel_begin) * panel_columns], all of which is written:
  // the column at 0 is the first of panel_begin. Also holds sums between
  // chunks. Aligned to a vector, and so are its rows.
  float* y;
  size_t y_stride;
  float* scratch;  // [kInputChunk * panel_columns], aligned to 64
};

enum class NormKind { kNone, kLayer, kRms };

// y = the norm of one token x [width]; kNone copies. y may be x.
struct NormTask {
  NormKind kind;
  size_t width;
  float eps;
  const float* gain;  // [width]
  const float* bias;  // [width]
};

struct TokenKernels {
  const char* target;
  size_t lanes;
  bool fused;            // as in Kernels
  size_t row_multiple;   // rows that are computed together
  size_t panel_columns;  // a multiple of lanes
  // By type of w, in the order of DType.
  void (*project[3])(const ProjectTask& task);
  void (*norm)(const NormTask& task, const float* x, float* y);
  // Turns pairs i of head [.., 2 * pairs) by the angle of cosine c[i] and sine
  // s[i]: elements 2i and 2i + 1, or i and i + pairs.
  void (*turn_interleaved)(const float* c, const float* s, size_t pairs,
                           float* head);
  void (*turn_halves)(const float* c, const float* s, size_t pairs,
                      float* head);
  // y = x + y, n elements.
  void (*add)(const float* x, size_t n, float* y);
};

// The table for one of SupportedTargets(). Cheap; not cached.
TokenKernels GetTokenKernels(int64_t target);

}  // namespace heed

#endif  // HEED_KERNELS_TOKEN_KERNELS_H_
