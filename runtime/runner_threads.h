// A runner on threads of its own, made for the run and joined at its end: for
// where no pool can be trusted. Knows nothing of attention.
#ifndef HEED_RUNTIME_RUNNER_THREADS_H_
#define HEED_RUNTIME_RUNNER_THREADS_H_

#include <cstddef>

namespace heed {

// heed_runner::run without its context. Index 0 is this thread's; so are those
// for which the system has no thread. Throws std::bad_alloc, before any starts.
void RunOnThreads(size_t count, void (*task)(void*, size_t), void* task_ctx);

}  // namespace heed

#endif  // HEED_RUNTIME_RUNNER_THREADS_H_
