// Tasks that workers take from a counter until none is left.
#ifndef HEED_RUNTIME_COUNTED_TASKS_H_
#define HEED_RUNTIME_COUNTED_TASKS_H_

#include <cstddef>

#include "runtime/include/heed.h"

namespace heed {

// One task; workers are numbered from 0, and each runs one task at a time.
using CountedTask = void (*)(const void* context, size_t worker, size_t task);

// Runs tasks [0, tasks) on at most `workers` workers of the runner (one: on
// this thread) and returns when all are done. Allocates nothing itself. Fails
// if the runner did not run its workers.
heed_status RunCounted(const heed_runner& runner, size_t workers, size_t tasks,
                       CountedTask run, const void* context);

}  // namespace heed

#endif  // HEED_RUNTIME_COUNTED_TASKS_H_
