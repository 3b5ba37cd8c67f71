// A matrix of weights in the layout that a target's projections read.
#ifndef HEED_RUNTIME_PACKED_MATRIX_H_
#define HEED_RUNTIME_PACKED_MATRIX_H_

#include <cstddef>
#include <memory>

#include "kernels/token_kernels.h"
#include "runtime/free_memory.h"
#include "runtime/include/heed_block.h"

namespace heed {

// Memory aligned to 64 bytes at least, on huge pages where the system likes:
// with pages of 4 KB a projection of one token waits for page walks. Throws
// std::bad_alloc.
std::unique_ptr<void, FreeMemory> AllocateWeights(size_t bytes);

// Immutable once packed. kernels/token_kernels.h has the layout.
struct PackedMatrix {
  size_t inputs = 0, outputs = 0;
  size_t panels = 0, panel_columns = 0;
  DType dtype = DType::kF32;
  std::unique_ptr<void, FreeMemory> data;
  std::unique_ptr<void, FreeMemory> bias;  // f32 [panels * panel_columns]

  size_t columns() const { return panels * panel_columns; }
};

// Columns [begin, begin + outputs) of the whole are those of a matrix.
struct MatrixPart {
  const heed_matrix* matrix;
  size_t outputs;
};

// Packs parts of the same number of inputs side by side, on `workers` workers
// of the runner. Their type is kept if they agree; else it is f32. Presumes
// valid parts. Throws std::bad_alloc.
heed_status PackMatrix(const MatrixPart* parts, size_t count, size_t inputs,
                       const TokenKernels& kernels, const heed_runner& runner,
                       size_t workers, PackedMatrix* packed);

// A vector of a checkpoint as f32; `value` where there is none.
void CopyVector(const heed_vector& vector, size_t count, float value,
                float* to);

}  // namespace heed

#endif  // HEED_RUNTIME_PACKED_MATRIX_H_
