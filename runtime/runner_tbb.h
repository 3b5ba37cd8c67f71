// The default runner: oneTBB in the caller's arena. Knows nothing of attention.
#ifndef HEED_RUNTIME_RUNNER_TBB_H_
#define HEED_RUNTIME_RUNNER_TBB_H_

#include "runtime/include/heed.h"

namespace heed {

// Runs each index as one task. Throws what TBB throws (std::bad_alloc).
heed_runner TbbRunner();

// Threads that can be at work in the caller's arena at once.
int ArenaConcurrency();

}  // namespace heed

#endif  // HEED_RUNTIME_RUNNER_TBB_H_
