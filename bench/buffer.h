// Blocks of memory that the kernel may back with huge pages.
//
// NumPy and PyTorch allocate large tensors on huge pages where the system
// allows it; so do the benchmarks, for the tensors and for the read probe
// alike, or page walks would be measured in place of the kernels.
#ifndef HEED_BENCH_BUFFER_H_
#define HEED_BENCH_BUFFER_H_

#include <cstddef>
#include <memory>

namespace heed {

struct FreeDeleter {
  void operator()(void* pointer) const;
};
using Bytes = std::unique_ptr<char[], FreeDeleter>;
using Floats = std::unique_ptr<float[], FreeDeleter>;

// `count` elements, not initialised, aligned to 64 bytes at least. Throw
// std::bad_alloc.
Bytes AllocateBytes(size_t count);
Floats AllocateFloats(size_t count);

}  // namespace heed

#endif  // HEED_BENCH_BUFFER_H_
