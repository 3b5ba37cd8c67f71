// The race on simulated machines: what it adopts, what it leaves alone, and
// that it keeps its deadlines.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tune/race.h"

namespace heed {
namespace {

// A machine whose candidates take known times, disturbed by noise per sample
// and by two slow states that whole stretches of time share.
class NoisyMachine : public Sampler {
 public:
  NoisyMachine(std::vector<double> seconds, double noise, uint64_t seed)
      : seconds_(std::move(seconds)), noise_(noise), random_(seed) {}

  Timed Sample(size_t candidate, size_t iterations) override {
    ++samples_;
    std::normal_distribution<double> normal(0, 1);
    double took = seconds_[candidate] * static_cast<double>(iterations) *
                  std::exp(noise_ * normal(random_));
    const double drift = 0.1 * std::sin(now_ / 3);
    if (std::fmod(now_, 0.7) > 0.4) took *= 1.3;  // a neighbour wakes up
    if (random_() % 100 == 0) took *= 10;         // a spike
    took *= 1 + drift;
    now_ += took;
    return {took, 0};
  }
  double Now() override { return now_; }

  size_t samples() const { return samples_; }

 private:
  std::vector<double> seconds_;
  double noise_;
  std::mt19937_64 random_;
  double now_ = 0;
  size_t samples_ = 0;
};

Confirmation Race(NoisyMachine* machine, size_t count, uint64_t seed,
                  std::vector<size_t>* finalists = nullptr) {
  std::mt19937_64 random(seed);
  const Pace pace = FindPace(machine, 1e-3);
  SearchOptions search;
  search.iterations = pace.iterations;
  search.deadline = 1e9;
  const SearchResult found = Search(machine, count, search, {}, &random);
  if (finalists != nullptr) *finalists = found.finalists;
  ConfirmOptions confirm;
  confirm.looks = {80};
  confirm.iterations = pace.iterations;
  confirm.deadline = 1e9;
  return Confirm(machine, found.finalists, confirm, {});
}

TEST(Race, AdoptsNothingWhereAllAreEqual) {
  int adopted = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    NoisyMachine machine(std::vector<double>(24, 2e-4), 0.03, seed);
    adopted += Race(&machine, 24, seed).adopted;
  }
  EXPECT_EQ(adopted, 0);
}

TEST(Race, AdoptsNothingWhereTheDefaultIsBest) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::vector<double> seconds(24, 2.1e-4);
    seconds[0] = 2e-4;
    NoisyMachine machine(seconds, 0.05, seed);
    EXPECT_FALSE(Race(&machine, 24, seed).adopted) << seed;
  }
}

TEST(Race, FindsTenPercentAmongMany) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::vector<double> seconds(24, 2e-4);
    const size_t best = 1 + seed % 23;
    seconds[best] = 2e-4 / 1.1;
    NoisyMachine machine(seconds, 0.03, seed);
    std::vector<size_t> finalists;
    const Confirmation result = Race(&machine, 24, seed, &finalists);
    if (!result.adopted) continue;
    // Confirm numbers its candidates as it was given them.
    found += result.winner == best;
    EXPECT_GT(result.log_gain.median, std::log(1.05)) << seed;
    EXPECT_LT(result.log_gain.median, std::log(1.15)) << seed;
  }
  EXPECT_GE(found, 97);
}

TEST(Race, IgnoresAGainBelowTheMinimum) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    NoisyMachine machine({2e-4, 2e-4 / 1.005}, 0.002, seed);
    EXPECT_FALSE(Race(&machine, 2, seed).adopted) << seed;
  }
}

TEST(Race, OnlyTheDefaultIsNoRace) {
  NoisyMachine machine({2e-4}, 0.01, 1);
  const Confirmation result = Race(&machine, 1, 1);
  EXPECT_FALSE(result.adopted);
  EXPECT_EQ(result.winner, 0u);
  EXPECT_GT(result.default_seconds, 0);
  EXPECT_EQ(result.default_seconds, result.winner_seconds);
}

TEST(Race, SameSeedSameDecision) {
  std::vector<double> seconds(12, 2e-4);
  seconds[5] = 1.9e-4;
  NoisyMachine one(seconds, 0.03, 7), two(seconds, 0.03, 7);
  const Confirmation a = Race(&one, 12, 3), b = Race(&two, 12, 3);
  EXPECT_EQ(a.winner, b.winner);
  EXPECT_EQ(a.adopted, b.adopted);
  EXPECT_EQ(a.log_gain.low, b.log_gain.low);
  EXPECT_EQ(one.samples(), two.samples());
}

TEST(Race, DropsTheHopelessAfterThreeRounds) {
  std::vector<double> seconds(24, 2e-3);
  for (size_t i = 4; i < 24; ++i) seconds[i] = 10e-3;
  NoisyMachine machine(seconds, 0.01, 1);
  std::mt19937_64 random(1);
  SearchOptions options;
  options.deadline = 1e9;
  const SearchResult found = Search(&machine, 24, options, {}, &random);
  // Three rounds of 24, of which one may be run again, then only 3 rivals and
  // the default are left.
  EXPECT_LT(machine.samples(),
            static_cast<size_t>(5 * 24 + found.counts.rounds * 6));
}

TEST(Race, KeepsItsDeadlines) {
  NoisyMachine machine(std::vector<double>(24, 0.1), 0.02, 5);
  std::mt19937_64 random(1);
  SearchOptions search;
  search.deadline = 12;
  const SearchResult found = Search(&machine, 24, search, {}, &random);
  EXPECT_GT(found.counts.rounds, 0);
  // A round is predicted by its candidates' mean samples; a spike of ten
  // times one sample is what it may run over.
  EXPECT_LT(machine.Now(), 12 + 2);
  ConfirmOptions confirm;
  confirm.deadline = machine.Now() + 5;
  const double end = confirm.deadline;
  const Confirmation result = Confirm(&machine, {1}, confirm, {});
  EXPECT_GT(result.rounds, 5);
  EXPECT_LT(result.rounds, 40);
  EXPECT_LT(machine.Now(), end + 2);
}

TEST(Race, TooFewRoundsAdoptNothing) {
  NoisyMachine machine({1e-3, 0.5e-3}, 0.001, 1);
  ConfirmOptions options;
  options.deadline = 1e9;
  options.looks = {5};
  EXPECT_FALSE(Confirm(&machine, {1}, options, {}).adopted);
  options.looks = {20};
  EXPECT_TRUE(Confirm(&machine, {1}, options, {}).adopted);
}

}  // namespace
}  // namespace heed
