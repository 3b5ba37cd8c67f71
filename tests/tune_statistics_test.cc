// The tuner's statistics against known values and simulated data.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tune/statistics.h"

namespace heed {
namespace {

std::vector<double> OneTo(int n) {
  std::vector<double> values;
  // Not in order, since nobody promises that.
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

TEST(Statistics, MedianIsTheMiddle) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Median({7}), 7);
  EXPECT_TRUE(std::isnan(Median({})));
}

TEST(Statistics, BinomialCdfHasTheKnownValues) {
  EXPECT_DOUBLE_EQ(BinomialHalfCdf(0, 1), 0.5);
  EXPECT_NEAR(BinomialHalfCdf(0, 6), 1.0 / 64, 1e-15);
  EXPECT_NEAR(BinomialHalfCdf(2, 5), 0.5, 1e-12);
  EXPECT_NEAR(BinomialHalfCdf(5, 20), 0.020694732666015625, 1e-12);
  EXPECT_NEAR(BinomialHalfCdf(10, 10), 1, 1e-12);
}

TEST(Statistics, IntervalHasTheTabledRanks) {
  // Ranks of the 95 % interval: Conover, table of the quantile test.
  const struct {
    int n, low, high;
  } rows[] = {{6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {20, 6, 15}, {40, 14, 27}};
  for (const auto& row : rows) {
    const Interval interval = MedianInterval(OneTo(row.n), 0.05);
    EXPECT_EQ(interval.low, row.low) << row.n;
    EXPECT_EQ(interval.high, row.high) << row.n;
  }
}

TEST(Statistics, TooFewValuesGiveNoInterval) {
  EXPECT_EQ(RoundsNeeded(0.05), 6u);
  EXPECT_EQ(RoundsNeeded(0.025), 7u);
  for (int n = 0; n < 6; ++n) {
    const Interval interval = MedianInterval(OneTo(n), 0.05);
    EXPECT_TRUE(std::isinf(interval.low) && interval.low < 0) << n;
    EXPECT_TRUE(std::isinf(interval.high) && interval.high > 0) << n;
  }
}

TEST(Statistics, ManyValuesDoNotUnderflow) {
  const Interval interval = MedianInterval(OneTo(5000), 0.05);
  EXPECT_NEAR(interval.low, 2431, 2);
  EXPECT_NEAR(interval.high, 2570, 2);
}

// The share of simulated data sets whose interval holds the true median.
template <class Draw>
double Coverage(int n, double truth, Draw draw) {
  constexpr int kDataSets = 4000;
  int covered = 0;
  for (int set = 0; set < kDataSets; ++set) {
    std::vector<double> values;
    for (int i = 0; i < n; ++i) values.push_back(draw());
    const Interval interval = MedianInterval(values, 0.05);
    covered += interval.low <= truth && truth <= interval.high;
  }
  return static_cast<double>(covered) / kDataSets;
}

TEST(Statistics, IntervalCoversWhateverTheNoise) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(0.3, 1);
  std::lognormal_distribution<double> skewed(0, 1);  // median 1
  std::cauchy_distribution<double> wild(-2, 1);      // has no mean
  for (const int n : {6, 12, 40, 80}) {
    // 4000 sets put the standard error at 0.35 %; exact coverage is >= 95 %.
    EXPECT_GE(Coverage(n, 0.3, [&] { return normal(random); }), 0.938) << n;
    EXPECT_GE(Coverage(n, 1, [&] { return skewed(random); }), 0.938) << n;
    EXPECT_GE(Coverage(n, -2, [&] { return wild(random); }), 0.938) << n;
  }
}

}  // namespace
}  // namespace heed
