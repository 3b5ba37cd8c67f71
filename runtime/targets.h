// SIMD targets by name.
#ifndef HEED_RUNTIME_TARGETS_H_
#define HEED_RUNTIME_TARGETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/include/heed.h"

namespace heed {

// SupportedTargets() as a vector: compiled in and runnable here, best first.
std::vector<int64_t> RunnableTargets();

// Their names, separated by spaces.
std::string RunnableTargetNames();

// The kernels of the target called `name` (null: the best), or Fail() with the
// names there are.
heed_status FindTarget(const char* name, DType dtype, Kernels* kernels);

}  // namespace heed

#endif  // HEED_RUNTIME_TARGETS_H_
