#include "runtime/runner_tbb.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

namespace heed {
namespace {

void Run(void*, size_t count, void (*task)(void*, size_t), void* task_ctx) {
  // Isolated twice over: while it waits, this thread takes none of the caller's
  // other tasks (they could need a lock it holds), and cancelling the caller's
  // task group does not leave rows unwritten.
  tbb::this_task_arena::isolate([&] {
    tbb::task_group_context context(tbb::task_group_context::isolated);
    tbb::parallel_for(
        tbb::blocked_range<size_t>(0, count, 1),
        [&](const tbb::blocked_range<size_t>& range) {
          for (size_t i = range.begin(); i != range.end(); ++i) {
            task(task_ctx, i);
          }
        },
        tbb::simple_partitioner(), context);
  });
}

}  // namespace

heed_runner TbbRunner() { return {Run, nullptr}; }

int ArenaConcurrency() { return tbb::this_task_arena::max_concurrency(); }

}  // namespace heed
