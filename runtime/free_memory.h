#ifndef HEED_RUNTIME_FREE_MEMORY_H_
#define HEED_RUNTIME_FREE_MEMORY_H_

#include <cstdlib>

namespace heed {

// Deletes what std::aligned_alloc gave, for a std::unique_ptr.
struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

}  // namespace heed

#endif  // HEED_RUNTIME_FREE_MEMORY_H_
