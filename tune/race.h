// Which of several ways to do the same work is the fastest: paired racing, then
// a confirmation with fresh rounds.
//
// Selection favours the lucky: of many equal candidates one always looks
// better. So the rounds that selected a candidate are never the ones that judge
// it.
#ifndef HEED_TUNE_RACE_H_
#define HEED_TUNE_RACE_H_

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "tune/noise.h"
#include "tune/rounds.h"
#include "tune/sampler.h"
#include "tune/statistics.h"

namespace heed {

// What a race shares with the races before and after it. All may be null or
// empty.
struct RaceContext {
  CanaryGauge* gauge = nullptr;
  Rounds::Observer observe;
};

struct SearchOptions {
  int rounds = 5;  // of the first heat; later heats have 1.6 times as many
  size_t finalists = 2;  // how many may be left
  size_t iterations = 1;
  double deadline = 0;
};

// How a race went.
struct RaceCounts {
  int rounds = 0, discarded = 0, suspicious = 0;
  size_t samples = 0;
};

struct SearchResult {
  std::vector<size_t> finalists;  // best first; empty if all seemed slower
  RaceCounts counts;
};

// Successive halving (Jamieson and Talwalkar 2016, with factor 3) of the
// candidates 1 to `count` - 1 by the median of their log ratios to the default.
SearchResult Search(Sampler* sampler, size_t count,
                    const SearchOptions& options, const RaceContext& context,
                    std::mt19937_64* random);

struct ConfirmOptions {
  // Rounds after which the intervals are looked at, rising. What is decided at
  // a look stands, so each takes its share of alpha.
  std::vector<int> looks = {40};
  size_t iterations = 1;
  double min_gain = 0.01;  // the interval has to lie above this, and above what
  Noise noise;             // equal candidates did in as many rounds
  double alpha = 0.05;     // over all finalists and looks together
  double deadline = 0;
};

struct Confirmation {
  bool adopted = false;
  size_t winner = 0;  // of the finalists the one with the best lower bound; 0
                      // if there were none
  // ln(default time / winner's time), with an interval that covers at 1 - alpha
  // at every look for all finalists together.
  Interval log_gain{0, 0, 0};
  double demand = 0;  // what its lower end had to exceed
  int rounds = 0;
  RaceCounts counts;
  double default_seconds = 0;  // medians of one iteration
  double winner_seconds = 0;
  std::string reason;  // one line: why nothing was adopted
};

// Whether the winner may yet turn out to gain more than that: it was not
// adopted, and its interval does not say that it never should be.
bool Undecided(const Confirmation& confirmation, double min_gain);

// Races the finalists against the default in fresh rounds, in the orders of a
// Latin square, so that neither place in the round nor a steady drift favours
// anybody. With none of them adopted the default stays.
Confirmation Confirm(Sampler* sampler, const std::vector<size_t>& finalists,
                     const ConfirmOptions& options, const RaceContext& context);

// Whether a candidate is no slower than the default by `max_loss` at 1 - alpha.
struct GuardResult {
  bool holds = false;
  Interval log_gain{0, 0, 0};
  int rounds = 0;
  RaceCounts counts;
};
struct GuardOptions {
  int rounds = 40;
  size_t iterations = 1;
  double max_loss = 0.01, alpha = 0.05;
  double deadline = 0;
};
GuardResult CheckGuard(Sampler* sampler, const GuardOptions& options,
                       const RaceContext& context);

// The k-th order of a Latin square of `count` (Williams 1949: balanced for
// neighbours too if `count` is even; over 2 * count orders if it is odd).
std::vector<size_t> LatinOrder(size_t count, size_t k);

}  // namespace heed

#endif  // HEED_TUNE_RACE_H_
