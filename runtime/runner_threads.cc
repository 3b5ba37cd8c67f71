#include "runtime/runner_threads.h"

#include <system_error>
#include <thread>
#include <vector>

namespace heed {

void RunOnThreads(size_t count, void (*task)(void*, size_t), void* task_ctx) {
  if (count == 0) return;
  std::vector<std::thread> threads;
  threads.reserve(count - 1);
  size_t started = 1;
  try {
    for (; started < count; ++started) {
      threads.emplace_back(task, task_ctx, started);
    }
  } catch (const std::system_error&) {
    // As many as there are.
  }
  task(task_ctx, 0);
  for (size_t i = started; i < count; ++i) task(task_ctx, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace heed
