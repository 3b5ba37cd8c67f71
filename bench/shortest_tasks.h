// The shortest time of each task of a call: what the call would take if nobody
// disturbed it.
//
// On a shared machine no call of a second has the core to itself from end to
// end, but each of its thousand tasks has in one call or another. (The best
// calls of two suites of one hour were 66 and 43 % of the peak for one shape.)
// Says nothing of what passes between tasks, nor of threads that wait for the
// last one: the times of whole calls do.
#ifndef HEED_BENCH_SHORTEST_TASKS_H_
#define HEED_BENCH_SHORTEST_TASKS_H_

#include <functional>

#include "runtime/plan.h"

namespace heed {

// Makes `call`, which runs the plan, for `seconds` and 16 times at least, and
// returns the sum of each task's shortest time over the threads that share
// them, in seconds: row blocks, and the copies they read. 0 for plans that
// decode. The plan is as it was on return. One at a time in a process.
double ShortestTasks(heed_plan* plan, double seconds,
                     const std::function<void()>& call);

}  // namespace heed

#endif  // HEED_BENCH_SHORTEST_TASKS_H_
