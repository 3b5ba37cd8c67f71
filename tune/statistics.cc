#include "tune/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed {

double Median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  if (n % 2 == 1) return values[n / 2];
  return values[n / 2 - 1] / 2 + values[n / 2] / 2;
}

double Quantile(std::vector<double> values, double part) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(part * static_cast<double>(values.size()));
  const auto last = static_cast<double>(values.size()) - 1;
  return values[static_cast<size_t>(std::clamp(rank - 1, 0.0, last))];
}

double BinomialHalfCdf(size_t k, size_t n) {
  // Through logarithms, since 2^-n is not a double for large n.
  const double dn = static_cast<double>(n);
  double sum = 0;
  double log_choose = 0;
  for (size_t i = 0; i <= std::min(k, n); ++i) {
    sum += std::exp(log_choose - dn * std::log(2.0));
    const double di = static_cast<double>(i);
    log_choose += std::log(dn - di) - std::log(di + 1);
  }
  return std::min(sum, 1.0);
}

Interval MedianInterval(std::vector<double> values, double alpha) {
  const double infinity = std::numeric_limits<double>::infinity();
  Interval interval{-infinity, Median(values), infinity};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  // The median is below x(r) only if fewer than r values are below it.
  size_t r = 0;
  while (2 * (r + 1) <= n && 2 * BinomialHalfCdf(r, n) <= alpha) ++r;
  if (r == 0) return interval;
  interval.low = values[r - 1];
  interval.high = values[n - r];
  return interval;
}

size_t RoundsNeeded(double alpha) {
  size_t n = 2;
  while (2 * BinomialHalfCdf(0, n) > alpha) ++n;
  return n;
}

double PercentMore(double log_gain) { return 100 * std::expm1(log_gain); }

}  // namespace heed
