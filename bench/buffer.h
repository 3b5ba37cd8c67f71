// A block of floats that the kernel may back with huge pages.
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
using Floats = std::unique_ptr<float[], FreeDeleter>;

// `count` floats, not initialised, aligned to 64 bytes at least. Throws
// std::bad_alloc.
Floats AllocateFloats(size_t count);

}  // namespace heed

#endif  // HEED_BENCH_BUFFER_H_
