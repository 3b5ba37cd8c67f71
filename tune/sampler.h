// The clock and the work behind one interface, so that tests race on simulated
// machines.
#ifndef HEED_TUNE_SAMPLER_H_
#define HEED_TUNE_SAMPLER_H_

#include <cstddef>

namespace heed {

struct Timed {
  double seconds = 0;  // not above 0: the clock has failed
  double canary = 0;  // seconds per element of the canary, just before; 0: none
};

// Seconds that the machine has lost to others since some moment: only
// differences count.
struct Disturbance {
  double steal = 0;     // of all processors together, taken by the hypervisor
  double pressure = 0;  // in which some task waited for a processor
};

// Candidate 0 is the default.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // Runs the candidate that many times.
  virtual Timed Sample(size_t candidate, size_t iterations) = 0;
  // Seconds on a clock that should only move forward.
  virtual double Now() = 0;
  virtual Disturbance Disturbed() { return {}; }
};

// How often a sample repeats the work, and how long it then takes.
struct Pace {
  size_t iterations = 1;
  double seconds = 0;
};

// So often that a sample of the default takes `min_seconds`. Runs it one to
// three times, which is also the warm-up.
Pace FindPace(Sampler* sampler, double min_seconds);

}  // namespace heed

#endif  // HEED_TUNE_SAMPLER_H_
