// What this machine does to equal candidates: the A/A run that comes first, and
// how it widens what a gain has to exceed.
#ifndef HEED_TUNE_NOISE_H_
#define HEED_TUNE_NOISE_H_

#include <string>
#include <vector>

#include "tune/rounds.h"
#include "tune/sampler.h"

namespace heed {

struct Noise {
  int rounds = 0;  // 0: not measured, no noise is presumed
  double p95 = 0;  // |ln ratio| of one round, exceeded by one in twenty
  // Spread of ln ratio, from its median absolute deviation: what few wild
  // rounds do not move.
  double deviation = 0;
  double bias = 0;  // median ln ratio of the run

  // How far the median of so many rounds of equal candidates strays from 0, on
  // either side, with probability alpha; plus what it strayed here.
  double HalfWidth(int rounds, double alpha) const;
  // A gain (not a logarithm) that can hardly be confirmed in so many rounds.
  double Resolution(double min_gain, int rounds, double alpha) const;
  // Of what is printed: a round's p95 above 2 %.
  bool Noisy() const { return p95 > 0.02; }
  // Factor, 1 to 16, for the rounds of a confirmation, so that intervals are
  // about half a percent wide on either side; and, 1 to 8, for those of a
  // search, so that a median of five is about 1 % off.
  int RoundsFactor(int rounds, double alpha) const;
  int SearchFactor() const;
};

// Of ln ratios of rounds of equal candidates.
Noise NoiseOf(const std::vector<double>& log_ratios);

// Races candidate 0 against candidate 1, which must be its equal, until the
// deadline or for `most` rounds.
Noise MeasureNoise(Sampler* sampler, size_t iterations, double deadline,
                   int most, CanaryGauge* gauge,
                   const Rounds::Observer& observe);

// "A/A p95 = 6.4 % (> 2 %) ..." or "A/A p95 = 1.2 %", one line.
std::string NoiseText(const Noise& noise, double min_gain, int rounds,
                      double alpha);

}  // namespace heed

#endif  // HEED_TUNE_NOISE_H_
