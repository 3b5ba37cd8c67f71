// A projection of all tokens, cut into tasks for the workers.
#ifndef HEED_RUNTIME_PROJECTION_H_
#define HEED_RUNTIME_PROJECTION_H_

#include <cstddef>

#include "kernels/token_kernels.h"
#include "runtime/include/heed.h"
#include "runtime/packed_matrix.h"

namespace heed {

// Tasks of so many rows and panels; the last ones have the rest. Cannot be
// seen in the result.
struct ProjectionCut {
  size_t rows = 0, row_block = 0, row_blocks = 0;
  size_t panels = 0, panel_block = 0, panel_blocks = 0;

  size_t tasks() const { return row_blocks * panel_blocks; }
};

// For a second-level cache of so many bytes.
ProjectionCut CutProjection(const TokenKernels& kernels,
                            const PackedMatrix& matrix, size_t rows,
                            size_t workers, size_t l2_bytes);

// Floats that a worker needs: for widened panels, and `with_y` for y of a task.
size_t ProjectionFloats(const TokenKernels& kernels, const ProjectionCut& cut,
                        bool with_y);

// What one task computed: rows [row_begin, row_begin + rows) of columns
// [column_begin, column_begin + columns), none of which is padding.
struct ProjectedBlock {
  size_t row_begin, rows;
  size_t column_begin, columns;
  float* y;  // [rows, columns]; may be overwritten
  size_t y_stride;
};

struct ProjectionRun {
  const TokenKernels* kernels;
  const PackedMatrix* matrix;
  ProjectionCut cut;
  const float* x;  // [rows, inputs]
  size_t x_stride;
  // [rows, PackedMatrix::columns()], aligned rows; or null: then each block is
  // handed to finish(), which the worker that computed it calls.
  float* y;
  size_t y_stride;
  void (*finish)(const void* context, const ProjectedBlock& block);
  const void* context;
  // Each worker's ProjectionFloats(), aligned to 64.
  char* slices;
  size_t slice_bytes;
};

heed_status RunProjection(const ProjectionRun& run, const heed_runner& runner,
                          size_t workers);

// Elements between rows of so many floats in scratch: whole lines, but no
// multiple of 4 KB, at which the rows of a tile would share their places in the
// first-level cache.
size_t ScratchStride(size_t floats);

}  // namespace heed

#endif  // HEED_RUNTIME_PROJECTION_H_
