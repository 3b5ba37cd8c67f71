// Measures of the machine, not of heed: what the CPU could do at best, to
// divide by.
//
// Each probe does a fixed amount of work and reports it; the caller holds the
// clock.
#ifndef HEED_KERNELS_PROBE_H_
#define HEED_KERNELS_PROBE_H_

#include <cstddef>
#include <cstdint>

namespace heed {

struct Probes {
  const char* target;
  // Independent f32 multiply-adds on all registers, nothing else; returns the
  // floating-point operations done (2 per lane and multiply-add). `sink` keeps
  // the compiler honest.
  double (*fma)(size_t iterations, float* sink);
  // Reads floats [0, count) once; returns the bytes read.
  double (*read)(const float* data, size_t count, float* sink);
  // The canary: the softmax step (loads, stores, arithmetic) on a buffer that
  // fits the L1. It slows down when a neighbour shares the core, which the fma
  // probe hardly does. `buffer` holds kCanaryFloats floats, aligned to 64.
  // Returns the elements done.
  double (*canary)(float* buffer, size_t repetitions);
};

constexpr size_t kCanaryFloats = 4096;

// `target` is one of SupportedTargets().
Probes GetProbes(int64_t target);

// Of the Highway that heed was compiled with, e.g. "1.0.3".
const char* HighwayVersion();

}  // namespace heed

#endif  // HEED_KERNELS_PROBE_H_
