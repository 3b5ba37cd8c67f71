// The tuner's statistics: medians, and exact intervals for them from the sign
// test. They assume nothing of the noise but that rounds are independent and as
// likely to fall on one side of the true median as on the other.
#ifndef HEED_TUNE_STATISTICS_H_
#define HEED_TUNE_STATISTICS_H_

#include <cstddef>
#include <vector>

namespace heed {

// The middle value, or the mean of the two middle ones; NaN of nothing.
double Median(std::vector<double> values);

// The value that the share `part` of them does not exceed (nearest rank); NaN
// of nothing.
double Quantile(std::vector<double> values, double part);

struct Interval {
  double low, median, high;
};

// P(X <= k) for X ~ Binomial(n, 1/2).
double BinomialHalfCdf(size_t k, size_t n);

// The confidence interval [x(r), x(n + 1 - r)] of the median, x sorted and r
// counted from 1, with the largest r for which the median lies outside with
// probability <= alpha (Conover, Practical Nonparametric Statistics, 1999,
// section 3.2). [-inf, inf] if even r = 1 does not reach alpha: at alpha 0.05
// that takes 6 values.
Interval MedianInterval(std::vector<double> values, double alpha);

// Rounds that MedianInterval needs to be finite.
size_t RoundsNeeded(double alpha);

// Of a gain, which is the logarithm of a ratio of times: 0.0953 says that the
// default takes 10 % longer.
double PercentMore(double log_gain);

}  // namespace heed

#endif  // HEED_TUNE_STATISTICS_H_
