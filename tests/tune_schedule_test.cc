// The schedule on simulated machines with one clock: a budget is used while
// there is something to use it for, and not a round longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/tune_simulator.h"
#include "tune/budget.h"
#include "tune/schedule.h"
#include "tune/shape_tuner.h"

namespace heed::test {
namespace {

// A simulated machine whose time is everybody's.
class OnClock : public Sampler {
 public:
  OnClock(double* clock, SimulatedMachine machine)
      : clock_(clock), machine_(std::move(machine)) {}
  Timed Sample(size_t candidate, size_t iterations) override {
    const Timed timed = machine_.Sample(candidate, iterations);
    *clock_ += timed.seconds;
    return timed;
  }
  double Now() override { return *clock_; }

 private:
  double* clock_;
  SimulatedMachine machine_;
};

// A run of `normal` over classes of 24 candidates, parts of time and alphas as
// the tuner has them.
class SimulatedRun {
 public:
  SimulatedRun(const std::vector<double>& gains, NoiseKind kind, double call)
      : kind_(kind), noise_(SimulatedNoise(kind, 1)), random_(2) {
    for (const Effort& effort : Efforts()) {
      if (std::string(effort.name) == "normal") effort_ = effort;
    }
    for (const double gain : gains) {
      std::vector<double> seconds(24, call);
      seconds[7] = call / (1 + gain);
      classes_.push_back({seconds, {}, 0});
    }
  }

  // How much of `budget` it took; what was guessed is wrong by `guess`.
  double Run(double budget, double guess = 1) {
    std::vector<ScheduledClass> classes;
    for (size_t i = 0; i < classes_.size(); ++i) {
      classes.push_back(
          {guess * (1 + static_cast<double>(i)),
           [this, i](double s) { return Turn(i, s); },
           [this, i](double s) { return More(i, s); },
           [this, i] { return 2 * classes_[i].seconds[0] * kMostMoreRounds; }});
    }
    Schedule schedule;
    schedule.now = [this] { return clock_; };
    schedule.end = budget;
    schedule.least = 0.01 * budget;
    all_done_ = RunSchedule(classes, schedule);
    return clock_ / budget;
  }

  bool all_done() const { return all_done_; }
  int more() const { return more_; }
  size_t adopted() const {
    size_t count = 0;
    for (const Class& c : classes_) count += c.confirmation.adopted;
    return count;
  }

 private:
  struct Class {
    std::vector<double> seconds;
    Confirmation confirmation;
    size_t winner;
  };

  OnClock Machine(const Class& c) {
    return {&clock_, SimulatedMachine(c.seconds, kind_, random_())};
  }

  Outcome Turn(size_t i, double seconds) {
    Class& c = classes_[i];
    OnClock machine = Machine(c);
    CanaryGauge gauge;
    RaceContext context;
    context.gauge = &gauge;
    SearchOptions search;
    search.rounds = effort_.search_rounds * noise_.SearchFactor();
    search.deadline = clock_ + kSearchPart * seconds;
    const double confirm_end = clock_ + kConfirmPart * seconds;
    const SearchResult found =
        Search(&machine, c.seconds.size(), search, context, &random_);
    ConfirmOptions confirm = PlannedConfirm(effort_, noise_);
    confirm.deadline = confirm_end;
    c.confirmation = Confirm(&machine, found.finalists, confirm, context);
    c.winner = c.confirmation.winner;
    if (c.confirmation.rounds == 0) return Outcome::kNoTime;
    return Undecided(c.confirmation, 0.01) ? Outcome::kUndecided
                                           : Outcome::kDecided;
  }

  Outcome More(size_t i, double seconds) {
    ++more_;
    Class& c = classes_[i];
    OnClock machine = Machine(c);
    CanaryGauge gauge;
    RaceContext context;
    context.gauge = &gauge;
    ConfirmOptions confirm;
    confirm.looks = {kMostMoreRounds};
    confirm.noise = noise_;
    confirm.alpha = kMoreAlpha;
    confirm.deadline = clock_ + seconds;
    c.confirmation = Confirm(&machine, {c.winner}, confirm, context);
    return c.confirmation.rounds < kMostMoreRounds &&
                   Undecided(c.confirmation, 0.01)
               ? Outcome::kUndecided
               : Outcome::kDecided;
  }

  const NoiseKind kind_;
  const Noise noise_;
  std::mt19937_64 random_;
  Effort effort_{};
  std::vector<Class> classes_;
  double clock_ = 0;
  bool all_done_ = false;
  int more_ = 0;
};

// Gains that 80 rounds under log-normal noise of 10 % do not decide.
const std::vector<double> kHard = {0.02, 0.03, 0.02, 0.025,
                                   0.03, 0.02, 0.03, 0.02};

TEST(Schedule, UsesTheBudgetWhileSomethingIsUndecided) {
  for (const double guess : {0.1, 1.0, 30.0}) {
    for (const double budget : {60.0, 120.0, 240.0}) {
      SimulatedRun run(kHard, NoiseKind::kLogNormal, 2e-3);
      const double used = run.Run(budget, guess);
      EXPECT_LE(used, 1.001) << budget;
      EXPECT_TRUE(used >= 0.95 || run.all_done()) << budget << " " << used;
    }
  }
}

TEST(Schedule, GivesWhatIsLeftToTheUndecided) {
  double least = 1, most = 0;
  int more = 0, used_up = 0;
  for (int budget = 40; budget <= 160; budget += 20) {
    SimulatedRun run(kHard, NoiseKind::kLogNormal, 2e-3);
    const double used = run.Run(budget);
    more += run.more();
    if (run.all_done()) continue;  // every rival had its kMostMoreRounds
    ++used_up;
    least = std::min(least, used);
    most = std::max(most, used);
  }
  RecordProperty("least_percent", std::lround(100 * least));
  EXPECT_GT(more, 0);
  EXPECT_GT(used_up, 2);
  EXPECT_GE(least, 0.95);
  EXPECT_LE(most, 1.001);
}

TEST(Schedule, EndsEarlyIfEverythingIsDecided) {
  SimulatedRun run({0.10, 0, 0.20, 0}, NoiseKind::kNone, 1e-3);
  EXPECT_LT(run.Run(1000), 0.1);
  EXPECT_TRUE(run.all_done());
  EXPECT_EQ(run.adopted(), 2u);
  EXPECT_EQ(run.more(), 0);
}

TEST(Schedule, NeverRunsOverByMoreThanARound) {
  // Rounds of 24 * 0.1 s; far too little time for all.
  SimulatedRun run(kHard, NoiseKind::kGaussian, 0.1);
  const double budget = 20;
  EXPECT_LE(run.Run(budget), 1 + 25 * 0.1 * 1.1 / budget);
  EXPECT_FALSE(run.all_done());
}

// Turns without machines: who is asked, in which order, for how long.
TEST(Schedule, BeginsAnewWhereTimeWasShortAndStopsWhenTold) {
  double clock = 0;
  std::vector<std::string> log;
  int first_turns = 0;
  const auto take = [&](const std::string& who, double given, double used) {
    log.push_back(who);
    clock += std::min(given, used);
  };
  std::vector<ScheduledClass> classes(3);
  classes[0] = {1,
                [&](double s) {
                  take("a", s, 1);
                  return Outcome::kUndecided;
                },
                [&](double s) {
                  take("a more", s, 1e9);
                  return Outcome::kDecided;
                },
                [] { return 1; }};
  classes[1] = {4,
                [&](double s) {
                  take("b", s, 1);
                  return ++first_turns == 1 ? Outcome::kNoTime
                                            : Outcome::kDecided;
                },
                {},
                {}};
  classes[2] = {1,
                [&](double s) {
                  take("c", s, 1);
                  return Outcome::kDecided;
                },
                {},
                {}};
  Schedule schedule;
  schedule.now = [&clock] { return clock; };
  schedule.end = 20;
  EXPECT_TRUE(RunSchedule(classes, schedule));
  EXPECT_EQ(log, (std::vector<std::string>{"a", "b", "c", "b", "a more"}));
  EXPECT_DOUBLE_EQ(clock, 20);
  log.clear();
  clock = 0;
  schedule.stop = [&log] { return log.size() == 2; };
  EXPECT_FALSE(RunSchedule(classes, schedule));
  EXPECT_EQ(log.size(), 2u);
}

// The bound of a class is that of both stages together.
TEST(Schedule, ASecondLookSpendsAnAlphaOfItsOwn) {
  EXPECT_DOUBLE_EQ(kConfirmAlpha + kMoreAlpha, 0.05);
  for (const Effort& effort : Efforts()) {
    const double looks = static_cast<double>(effort.looks.size());
    EXPECT_LE(AlphaOfOne(effort) * looks * kMaxFinalists + kMoreAlpha,
              0.05 + 1e-12);
  }
}

}  // namespace
}  // namespace heed::test
