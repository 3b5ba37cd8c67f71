#include "tune/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tune/race.h"
#include "tune/statistics.h"

namespace heed {
namespace {

// Median absolute deviation to standard deviation, of a normal distribution.
constexpr double kMadFactor = 1.4826;
// Standard error of a median over that of a mean, sqrt(pi / 2).
constexpr double kMedianFactor = 1.2533;
constexpr double kWantedHalfWidth = 0.005;
constexpr int kMaxFactor = 16;
constexpr double kSearchDeviation = 0.016;
constexpr int kMaxSearchFactor = 8;

// z with P(|N(0, 1)| > z) = alpha, by bisection.
double NormalQuantile(double alpha) {
  double low = 0, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double z = (low + high) / 2;
    (std::erfc(z / std::sqrt(2.0)) > alpha ? low : high) = z;
  }
  return low;
}

}  // namespace

double Noise::HalfWidth(int of_rounds, double alpha) const {
  if (rounds == 0 || of_rounds <= 0) return 0;
  const double error =
      kMedianFactor * deviation / std::sqrt(static_cast<double>(of_rounds));
  return NormalQuantile(alpha) * error + std::fabs(bias);
}

double Noise::Resolution(double min_gain, int of_rounds, double alpha) const {
  return std::expm1(std::log1p(min_gain) + 2 * HalfWidth(of_rounds, alpha));
}

int Noise::RoundsFactor(int of_rounds, double alpha) const {
  const double ratio =
      (HalfWidth(of_rounds, alpha) - std::fabs(bias)) / kWantedHalfWidth;
  return static_cast<int>(std::clamp(std::ceil(ratio * ratio), 1.0,
                                     static_cast<double>(kMaxFactor)));
}

int Noise::SearchFactor() const {
  const double ratio = deviation / kSearchDeviation;
  return static_cast<int>(std::clamp(std::ceil(ratio * ratio), 1.0,
                                     static_cast<double>(kMaxSearchFactor)));
}

Noise NoiseOf(const std::vector<double>& log_ratios) {
  Noise noise;
  if (log_ratios.empty()) return noise;
  noise.rounds = static_cast<int>(log_ratios.size());
  noise.bias = Median(log_ratios);
  std::vector<double> size, off;
  for (const double ratio : log_ratios) {
    size.push_back(std::fabs(ratio));
    off.push_back(std::fabs(ratio - noise.bias));
  }
  noise.p95 = Quantile(size, 0.95);
  noise.deviation = kMadFactor * Median(off);
  return noise;
}

Noise MeasureNoise(Sampler* sampler, size_t iterations, double deadline,
                   int most, CanaryGauge* gauge,
                   const Rounds::Observer& observe) {
  RoundsOptions options;
  options.iterations = iterations;
  options.deadline = deadline;
  Rounds rounds(sampler, options, gauge, observe);
  for (int i = 0; i < most; ++i) {
    if (!rounds.Run(LatinOrder(2, static_cast<size_t>(i)))) break;
  }
  return NoiseOf(rounds.LogGains(1));
}

std::string NoiseText(const Noise& noise, double min_gain, int rounds,
                      double alpha) {
  if (noise.rounds == 0) return "A/A noise: not measured";
  const double percent = 100 * std::expm1(noise.p95);
  const double smallest = 100 * noise.Resolution(min_gain, rounds, alpha);
  if (!noise.Noisy()) {
    return fmt::format(
        "A/A p95 = {:.1f} %: gains above about {:.1f} % can be "
        "confirmed",
        percent, smallest);
  }
  return fmt::format(
      "noisy machine: A/A p95 = {:.1f} % (> 2 %). Gains below ~{:.0f} % can't "
      "be confirmed; continue anyway, close other programs, or raise --budget.",
      percent, std::ceil(smallest));
}

}  // namespace heed
