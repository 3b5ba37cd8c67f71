// What the machine can do at this moment: the measures that attention is
// divided by, and the canary that says whether it has the machine to itself.
//
// All of it on a given number of threads at once, since clock, caches and
// memory are shared. Knows nothing of attention.
#ifndef HEED_BENCH_ROOF_H_
#define HEED_BENCH_ROOF_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/buffer.h"
#include "kernels/probe.h"
#include "runtime/machine.h"

namespace heed {

// Bytes of all last-level caches together: what data must exceed to come from
// memory.
size_t LastLevelBytes(const Machine& machine);

// A buffer for the read probe, larger than 4 times the last level. Made once,
// shared by all roofs.
class ReadBuffer {
 public:
  explicit ReadBuffer(const Machine& machine);
  const float* data();  // allocated and filled at the first use
  size_t count() const { return count_; }

 private:
  size_t count_;
  Floats floats_;
};

// One probe on all threads: from the first thread's start to the last one's
// end.
struct ProbeResult {
  double seconds = 0;
  double work = 0;     // what the probes report, over all threads
  double slowest = 0;  // the lowest work per second of a thread
  bool sound = false;  // the probes did work and their sinks are finite
  double rate() const { return work / seconds; }
};

class Roof {
 public:
  // `buffer` must outlive the roof.
  Roof(int64_t target, int threads, ReadBuffer* buffer);

  const char* target() const { return probes_.target; }
  int threads() const { return threads_; }

  // One probe each; fma and canary take about a millisecond.
  ProbeResult Fma();
  ProbeResult Read();
  ProbeResult Canary();

  // The best of a few fma probes, in floating-point operations per second.
  double FmaPeak();
  // The best of a few reads, in bytes per second.
  double ReadPeak();

  // Elements per second of the slowest thread, and the best ever seen here:
  // their ratio is 1 on a quiet machine.
  double CanaryRate();
  double best_canary() const { return best_canary_; }

 private:
  void Calibrate(ProbeResult (Roof::*probe)(), size_t* amount);

  Probes probes_;
  int threads_;
  ReadBuffer* buffer_;
  size_t fma_iterations_ = 1000;
  size_t canary_repetitions_ = 1;
  std::vector<Floats> canary_;  // one per thread
  double best_canary_ = 0;
};

}  // namespace heed

#endif  // HEED_BENCH_ROOF_H_
