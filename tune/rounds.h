// Paired rounds: the default and its rivals, each sampled once, one right after
// the other. Times of one machine drift by far more than the gains that are
// looked for, so nothing is ever compared but samples of the same round, and a
// round in which the machine was disturbed is run again as a whole.
#ifndef HEED_TUNE_ROUNDS_H_
#define HEED_TUNE_ROUNDS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tune/sampler.h"

namespace heed {

// What became of one round.
struct Round {
  std::vector<size_t> order;    // candidates, as they were sampled
  std::vector<double> seconds;  // of each, of one iteration
  std::vector<double> canary;
  double start = 0, took = 0;
  double steal = 0, pressure = 0;  // shares of the round
  const char* discarded = "";      // why; empty: the round counts
};

// Canaries of a run: the best one is what a quiet machine does.
class CanaryGauge {
 public:
  // Above this multiple of the best, a core is disturbed (KERNELS.md: a busy
  // sibling slows loads, stores and arithmetic by a third and more).
  static constexpr double kQuietFactor = 1.10;

  void Add(double canary);
  bool Quiet(double canary) const { return canary <= kQuietFactor * best_; }
  // Of all that were added, judged by the best of all; 1 without any.
  double QuietShare() const;
  double best() const { return best_; }

 private:
  std::vector<double> all_;
  double best_ = 1e300;
};

struct RoundsOptions {
  size_t iterations = 1;
  double deadline = 0;  // on the sampler's clock; no round begins that would
                        // end later
  // A round is discarded if more of it was stolen, or waited in, than this; if
  // a sample took so many times the round's median; or if a canary was not
  // quiet.
  double max_steal = 0.05, max_pressure = 0.20, max_ratio = 5;
  // But no more than this share of all rounds, for a machine that is never
  // quiet must get an answer too: from wider intervals.
  double max_discarded = 0.30;
};

class Rounds {
 public:
  using Observer = std::function<void(const Round&)>;

  // `gauge` may be null: then canaries are not looked at. `observe` may be
  // empty.
  Rounds(Sampler* sampler, const RoundsOptions& options, CanaryGauge* gauge,
         Observer observe);

  // Rounds in this order until one counts; false if that would end too late, or
  // if the clock does not work. A sample is predicted to last as long as the
  // candidate's mean so far, which for the first round is nothing: that one
  // always runs, if the deadline is not past.
  bool Run(const std::vector<size_t>& order);

  // ln(default / rival) of each round that counts and had both.
  const std::vector<double>& LogGains(size_t rival) const;
  // Median seconds of one iteration; of quiet rounds, if there are several.
  double MedianSeconds(size_t candidate) const;

  int attempts() const { return attempts_; }
  int discarded() const { return discarded_; }
  size_t samples() const { return samples_; }
  // Rounds that count though they were disturbed.
  int suspicious() const { return suspicious_; }

 private:
  struct History {
    double total = 0;  // seconds of whole samples
    size_t count = 0;
    std::vector<double> seconds, quiet_seconds, log_gains;
  };
  History& Of(size_t candidate);
  Round Attempt(const std::vector<size_t>& order);
  const char* Judge(const Round& round) const;
  bool OneTooSlow(const Round& round) const;
  void Keep(const Round& round, bool quiet);

  Sampler* sampler_;
  RoundsOptions options_;
  CanaryGauge* gauge_;
  Observer observe_;
  std::vector<History> history_;
  int attempts_ = 0, discarded_ = 0, suspicious_ = 0;
  size_t samples_ = 0;
};

}  // namespace heed

#endif  // HEED_TUNE_ROUNDS_H_
