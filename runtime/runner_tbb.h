// The default runner: oneTBB in the caller's arena. Knows nothing of attention.
#ifndef HEED_RUNTIME_RUNNER_TBB_H_
#define HEED_RUNTIME_RUNNER_TBB_H_

#include <limits>
#include <string>

#include "runtime/include/heed.h"

namespace heed {

// Runs each index as one task. Throws what TBB throws (std::bad_alloc). In the
// child of a process that had it and then forked, it runs on threads of its
// own.
heed_runner TbbRunner();

// Threads that can be at work in the caller's arena at once; kNoArena in such a
// child.
int ArenaConcurrency();
constexpr int kNoArena = std::numeric_limits<int>::max();

// Of the oneTBB that heed was compiled with, e.g. "2021.8".
std::string TbbVersion();

}  // namespace heed

#endif  // HEED_RUNTIME_RUNNER_TBB_H_
