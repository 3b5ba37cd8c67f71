// The frame of a benchmark: roofs and canary before and after the timed loop.
#ifndef HEED_BENCH_MEASURED_H_
#define HEED_BENCH_MEASURED_H_

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "bench/roof.h"

namespace heed {

// What the loop showed, next to what the machine could do.
struct Measured {
  double rate = 0;       // iterations of the state
  double fma_peak = 0;   // the larger of before and after; 0 = not asked for
  double read_peak = 0;  // the same
  double canary = 0;     // the lower of before and after, 1 = quiet
};

enum class Beside { kFma, kFmaAndRead };

// Times `call`, each invocation of which counts as `batch` iterations of
// `state`. The peaks are taken right before and right after, since a shared
// machine's speed does not keep.
template <class Call>
Measured Measure(benchmark::State& state, Roof& roof, Beside beside,
                 size_t batch, Call&& call) {
  using Clock = std::chrono::steady_clock;
  Measured measured;
  const auto peaks = [&] {
    measured.fma_peak = std::max(measured.fma_peak, roof.FmaPeak());
    if (beside == Beside::kFmaAndRead) {
      measured.read_peak = std::max(measured.read_peak, roof.ReadPeak());
    }
  };
  peaks();
  call();  // the read probe has emptied the caches
  const double canary_before = roof.CanaryRate();
  const Clock::time_point begin = Clock::now();
  while (state.KeepRunningBatch(static_cast<int64_t>(batch))) call();
  const Clock::time_point end = Clock::now();
  const double canary_after = roof.CanaryRate();
  peaks();
  measured.rate = static_cast<double>(state.iterations()) /
                  std::chrono::duration<double>(end - begin).count();
  measured.canary = std::min(canary_before, canary_after) / roof.best_canary();
  return measured;
}

}  // namespace heed

#endif  // HEED_BENCH_MEASURED_H_
