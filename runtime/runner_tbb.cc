#include "runtime/runner_tbb.h"

#include <pthread.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <atomic>

#include "runtime/runner_threads.h"

namespace heed {
namespace {

// fork() copies the thread that calls it and no other. oneTBB does not notice:
// in the child it waits for no worker, but never has one again, and a lock that
// another thread held stays taken. So children leave it alone.
std::atomic<bool> after_fork{false};

void NoteFork() { after_fork.store(true, std::memory_order_relaxed); }

void Run(void*, size_t count, void (*task)(void*, size_t), void* task_ctx) {
  if (after_fork.load(std::memory_order_relaxed)) {
    return RunOnThreads(count, task, task_ctx);
  }
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

heed_runner TbbRunner() {
  // Once, before a plan of ours can have started oneTBB's threads. If it fails
  // for want of memory, a child is as it would be without us.
  static const int noting = pthread_atfork(nullptr, nullptr, NoteFork);
  static_cast<void>(noting);
  return {Run, nullptr};
}

int ArenaConcurrency() {
  if (after_fork.load(std::memory_order_relaxed)) return kNoArena;
  return tbb::this_task_arena::max_concurrency();
}

std::string TbbVersion() {
  return std::to_string(TBB_VERSION_MAJOR) + "." +
         std::to_string(TBB_VERSION_MINOR);
}

}  // namespace heed
