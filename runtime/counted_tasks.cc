#include "runtime/counted_tasks.h"

#include <algorithm>
#include <atomic>

#include "runtime/error.h"

namespace heed {
namespace {

struct Counted {
  size_t tasks;
  CountedTask run;
  const void* context;
  alignas(64) std::atomic<size_t> next{0};  // written by every worker
};

void TakeTasks(void* context, size_t worker) {
  Counted& counted = *static_cast<Counted*>(context);
  // Relaxed: the runner's return orders what tasks write.
  for (size_t task; (task = counted.next.fetch_add(
                         1, std::memory_order_relaxed)) < counted.tasks;) {
    counted.run(counted.context, worker, task);
  }
}

}  // namespace

heed_status RunCounted(const heed_runner& runner, size_t workers, size_t tasks,
                       CountedTask run, const void* context) {
  workers = std::min(workers, tasks);
  if (workers <= 1) {
    for (size_t task = 0; task < tasks; ++task) run(context, 0, task);
    return HEED_OK;
  }
  Counted counted{tasks, run, context};
  runner.run(runner.runner_ctx, workers, TakeTasks, &counted);
  const size_t taken = counted.next.load(std::memory_order_relaxed);
  if (taken >= tasks) return HEED_OK;
  return Fail(HEED_INTERNAL,
              "the runner returned with %zu of %zu tasks never started",
              tasks - taken, tasks);
}

}  // namespace heed
