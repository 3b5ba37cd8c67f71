// How a plan's work is cut into tasks, and what its workspace holds.
#ifndef HEED_RUNTIME_PLAN_CUT_H_
#define HEED_RUNTIME_PLAN_CUT_H_

#include <cstddef>

#include "runtime/include/heed.h"
#include "runtime/plan.h"

namespace heed {

// Counts tasks for so many threads. Presumes the plan's problem, kernels and
// tile.
void CutIntoTasks(size_t threads, heed_plan* plan);

// Sizes the workspace for the longest sequences. Fails where it would not fit
// the address space. A tile's copies of k and v that are too large for a ragged
// batch are left to the tasks.
heed_status LayOutWorkspace(heed_plan* plan);

}  // namespace heed

#endif  // HEED_RUNTIME_PLAN_CUT_H_
