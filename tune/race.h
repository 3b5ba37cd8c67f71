// Which of several ways to do the same work is the fastest: paired racing, then
// a confirmation with fresh rounds. The clock and the work are behind an
// interface, so tests race on simulated machines.
//
// Times of one machine drift by far more than the gains that are looked for, so
// nothing is ever compared but samples of the same round. And selection favours
// the lucky: of many equal candidates one always looks better. So the rounds
// that selected a candidate are never the ones that judge it.
#ifndef HEED_TUNE_RACE_H_
#define HEED_TUNE_RACE_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "tune/statistics.h"

namespace heed {

// Candidate 0 is the default.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // Runs the candidate that many times; returns the seconds it took, > 0.
  virtual double Sample(size_t candidate, size_t iterations) = 0;
  // Seconds on a clock that only moves forward.
  virtual double Now() = 0;
};

// How often a sample repeats the work, and how long it then takes.
struct Pace {
  size_t iterations = 1;
  double seconds = 0;
};

// So often that a sample of the default takes `min_seconds`. Runs it one to
// three times, which is also the warm-up.
Pace FindPace(Sampler* sampler, double min_seconds);

struct SearchOptions {
  int rounds = 5;  // of the first heat; later heats have 1.6 times as many
  size_t finalists = 2;  // how many may be left
  size_t iterations = 1;
  double deadline = 0;  // on the sampler's clock; no round begins that would
                        // end later
};

struct SearchResult {
  std::vector<size_t> finalists;  // best first; empty if all seemed slower
  size_t rounds = 0;
};

// Successive halving (Jamieson and Talwalkar 2016, with factor 3) of the
// candidates 1 to `count` - 1 by the median of their log ratios to the default.
SearchResult Search(Sampler* sampler, size_t count,
                    const SearchOptions& options, std::mt19937_64* random);

struct ConfirmOptions {
  int rounds = 40;  // at most
  size_t iterations = 1;
  double min_gain = 0.01;  // the interval has to lie above this
  double alpha = 0.05;     // over all finalists together
  double deadline = 0;     // as above
};

struct Confirmation {
  bool adopted = false;
  size_t winner = 0;  // of the finalists the one with the best lower bound; 0
                      // if there were none
  // ln(default time / winner's time).
  Interval log_gain{0, 0, 0};
  int rounds = 0;
  double default_seconds = 0;  // medians of one iteration
  double winner_seconds = 0;
};

// Races the finalists against the default in fresh rounds. Adopts the one whose
// interval lies above ln(1 + min_gain); with none the default stays. The number
// of rounds never depends on how the ratios come out.
Confirmation Confirm(Sampler* sampler, const std::vector<size_t>& finalists,
                     const ConfirmOptions& options, std::mt19937_64* random);

}  // namespace heed

#endif  // HEED_TUNE_RACE_H_
