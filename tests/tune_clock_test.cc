// Clocks that stand still, run backwards or jump, and machines that are stolen
// from: what cannot be measured is not adopted.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tune/noise.h"
#include "tune/race.h"
#include "tune/statistics.h"
#include "tune/weather.h"

namespace heed {
namespace {

// Samples as a test wants them.
class ScriptedMachine : public Sampler {
 public:
  using Script = Timed (*)(size_t candidate, size_t sample, double* now);
  explicit ScriptedMachine(Script script) : script_(script) {}

  Timed Sample(size_t candidate, size_t) override {
    return script_(candidate, samples_++, &now_);
  }
  double Now() override { return now_; }
  Disturbance Disturbed() override {
    return {stolen_ ? now_ : 0, pressed_ ? now_ : 0};
  }

  bool stolen_ = false, pressed_ = false;
  size_t samples_ = 0;

 private:
  Script script_;
  double now_ = 0;
};

Confirmation ConfirmOn(ScriptedMachine* machine, int rounds = 40) {
  ConfirmOptions options;
  options.looks = {rounds};
  options.deadline = 1e9;
  CanaryGauge gauge;
  RaceContext context;
  context.gauge = &gauge;
  return Confirm(machine, {1}, options, context);
}

TEST(Clock, ThatStandsStillEndsAndAdoptsNothing) {
  ScriptedMachine machine([](size_t, size_t, double*) { return Timed{0, 0}; });
  EXPECT_LE(FindPace(&machine, 1e-3).iterations, 1000000u);
  const Confirmation result = ConfirmOn(&machine);
  EXPECT_FALSE(result.adopted);
  EXPECT_EQ(result.rounds, 0);
  EXPECT_LT(machine.samples_, 200u);
}

TEST(Clock, ThatRunsBackwardsNowAndThenLosesThoseRoundsOnly) {
  // Every seventh sample comes out negative or not a number.
  ScriptedMachine machine([](size_t candidate, size_t sample, double* now) {
    const double took = candidate == 0 ? 1.1e-3 : 1e-3;
    *now += took;
    if (sample % 7 == 3) return Timed{-1, 0};
    if (sample % 7 == 5) {
      return Timed{std::numeric_limits<double>::quiet_NaN(), 0};
    }
    return Timed{took, 0};
  });
  const Confirmation result = ConfirmOn(&machine);
  EXPECT_TRUE(result.adopted);
  EXPECT_EQ(result.rounds, 40);
  EXPECT_GT(result.counts.discarded, 10);
  EXPECT_NEAR(result.log_gain.median, std::log(1.1), 1e-9);
}

TEST(Clock, ThatJumpsAheadEndsTheRaceAtItsDeadline) {
  ScriptedMachine machine([](size_t, size_t sample, double* now) {
    *now += sample == 20 ? 1e12 : 1e-3;
    return Timed{1e-3, 0};
  });
  const Confirmation result = ConfirmOn(&machine);
  EXPECT_FALSE(result.adopted);
  EXPECT_LT(result.rounds, 40);
}

TEST(Rounds, ThatWereStolenAreRunAgainButNotForEver) {
  const auto even = [](size_t, size_t, double* now) {
    *now += 1e-3;
    return Timed{1e-3, 0};
  };
  for (const bool stolen : {true, false}) {
    ScriptedMachine machine(even);
    machine.stolen_ = stolen;
    machine.pressed_ = !stolen;
    const Confirmation result = ConfirmOn(&machine);
    EXPECT_EQ(result.rounds, 40);
    // The cap: three in ten, and one.
    EXPECT_GT(result.counts.discarded, 10);
    EXPECT_LE(result.counts.discarded, 20);
    EXPECT_EQ(result.counts.suspicious, 40);
  }
}

TEST(Rounds, WithASlowCanaryAreRunAgain) {
  ScriptedMachine machine([](size_t candidate, size_t sample, double* now) {
    // For four samples of twenty a neighbour slows everything.
    const bool slow = sample % 20 >= 16;
    const double took = (candidate == 0 ? 1.1e-3 : 1e-3) * (slow ? 1.5 : 1);
    *now += took;
    return Timed{took, slow ? 1.5 : 1.0};
  });
  const Confirmation result = ConfirmOn(&machine);
  EXPECT_EQ(result.rounds, 40);
  EXPECT_GT(result.counts.discarded, 5);
  EXPECT_EQ(result.counts.suspicious, 0);
}

TEST(Rounds, LinearDriftCancelsExactly) {
  // Every sample takes one microsecond longer than the one before it.
  ScriptedMachine machine([](size_t, size_t sample, double* now) {
    const double took = 1e-3 + 1e-6 * static_cast<double>(sample);
    *now += took;
    return Timed{took, 0};
  });
  const Confirmation result = ConfirmOn(&machine);
  // Ratios of neighbours alternate in sign; the middle two are the smallest.
  EXPECT_NEAR(result.log_gain.median, 0, 2e-5);
  EXPECT_LT(result.log_gain.low, 0);
  EXPECT_GT(result.log_gain.high, 0);
}

TEST(LatinOrders, PutEveryoneEverywhereEquallyOften) {
  for (size_t count = 2; count <= 6; ++count) {
    const size_t orders = 2 * count;
    std::vector<std::vector<int>> at(count, std::vector<int>(count));
    std::vector<std::vector<int>> before(count, std::vector<int>(count));
    for (size_t k = 0; k < orders; ++k) {
      const std::vector<size_t> order = LatinOrder(count, k);
      ASSERT_EQ(order.size(), count);
      for (size_t place = 0; place < count; ++place) {
        ++at[order[place]][place];
        if (place != 0) ++before[order[place - 1]][order[place]];
      }
    }
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = 0; b < count; ++b) {
        EXPECT_EQ(at[a][b], 2) << count;
        EXPECT_EQ(before[a][b], a == b ? 0 : 2) << count;
      }
    }
  }
}

TEST(NoiseTest, WidensTheDemandAndSaysSo) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, 0.03);
  std::vector<double> ratios;
  for (int i = 0; i < 500; ++i) ratios.push_back(normal(random));
  const Noise noise = NoiseOf(ratios);
  EXPECT_NEAR(noise.deviation, 0.03, 0.004);
  EXPECT_NEAR(noise.p95, 0.059, 0.008);
  EXPECT_TRUE(noise.Noisy());
  EXPECT_GT(noise.HalfWidth(80, 0.0125), 0.008);
  EXPECT_LT(noise.HalfWidth(80, 0.0125), 0.02);
  EXPECT_EQ(
      NoiseText(noise, 0.01, 80, 0.0125).rfind("noisy machine: A/A p95", 0),
      0u);
  EXPECT_EQ(NoiseOf({}).HalfWidth(80, 0.05), 0);
  EXPECT_EQ(NoiseText(Noise{}, 0.01, 80, 0.05), "A/A noise: not measured");
}

TEST(Weather, ReadsWhatLinuxWrites) {
  const Disturbance d = ParseDisturbance(
      "cpu  10 20 30 40 50 60 70 850 0 0\ncpu0 1 2 3 4 5 6 7 8\n",
      "some avg10=1.00 avg60=0.50 avg300=0.10 total=2500000\nfull ...\n", 100);
  EXPECT_DOUBLE_EQ(d.steal, 8.5);
  EXPECT_DOUBLE_EQ(d.pressure, 2.5);
  for (const char* text : {"", "cpu", "cpu a b", "intr 3", "some", "total="}) {
    const Disturbance none = ParseDisturbance(text, text, 100);
    EXPECT_EQ(none.steal, 0) << text;
    EXPECT_EQ(none.pressure, 0) << text;
  }
}

}  // namespace
}  // namespace heed
