// What this machine can do at best, measured: the numbers that results are
// divided by.
#ifndef HEED_TUNE_PEAKS_H_
#define HEED_TUNE_PEAKS_H_

#include <cstddef>
#include <memory>

#include "kernels/probe.h"
#include "runtime/machine.h"

namespace heed {

struct Peaks {
  double fma_gflops_1t = 0;   // f32 multiply-adds, 2 operations each
  double fma_gflops_all = 0;  // on all `threads` at once
  double read_gbs_1t = 0;     // from memory, 1e9 bytes per second
  double read_gbs_all = 0;
};

// Seconds on the monotonic clock.
double MonotonicSeconds();

// Best of several runs of the FMA probe on `threads` threads at once, in
// GFLOP/s of all together. Takes about `seconds`.
double FmaGflops(const Probes& probes, int threads, double seconds);

// Measures everything; takes about a second and four times the machine's L3 (at
// least 64 MB, at most 512 MB) of memory for the time being.
Peaks MeasurePeaks(const Probes& probes, const Machine& machine, int threads);

// Times the canary: how disturbed the core is at this moment.
class Canary {
 public:
  explicit Canary(const Probes& probes);
  // Seconds per element now; some 20 microseconds are spent on it.
  double Sample();

 private:
  struct Free {
    void operator()(float* p) const;
  };
  Probes probes_;
  std::unique_ptr<float[], Free> buffer_;
};

}  // namespace heed

#endif  // HEED_TUNE_PEAKS_H_
