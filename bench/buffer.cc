#include "bench/buffer.h"

#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace heed {

void FreeDeleter::operator()(void* pointer) const { std::free(pointer); }

namespace {

void* Allocate(size_t wanted) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t alignment = wanted < kHugePage ? 64 : kHugePage;
  // aligned_alloc wants a multiple of the alignment, and more than nothing.
  const size_t bytes = (wanted / alignment + 1) * alignment;
  void* const pointer = std::aligned_alloc(alignment, bytes);
  if (pointer == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  // A hint; where huge pages are off the result is merely slower.
  if (alignment == kHugePage) madvise(pointer, bytes, MADV_HUGEPAGE);
#endif
  return pointer;
}

}  // namespace

Bytes AllocateBytes(size_t count) {
  return Bytes(static_cast<char*>(Allocate(count)));
}

Floats AllocateFloats(size_t count) {
  return Floats(static_cast<float*>(Allocate(count * sizeof(float))));
}

}  // namespace heed
