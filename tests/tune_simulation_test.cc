// What the tuner promises, on machines whose truth is known: no false adoption,
// power, coverage, the same decisions for the same seed. Fewer classes than it
// promises; HEED_FULL_SIMULATION=1 runs them all (minutes).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "tests/tune_simulator.h"

namespace heed::test {
namespace {

constexpr size_t kCandidates = 24;

int Scaled(int few, int many) {
  return std::getenv("HEED_FULL_SIMULATION") != nullptr ? many : few;
}

// Times of candidates that are all the default's equal, but for one.
std::vector<double> OneBetter(double gain, uint64_t seed, size_t* best) {
  std::vector<double> seconds(kCandidates, 1e-3);
  *best = 1 + seed % (kCandidates - 1);
  seconds[*best] = 1e-3 / (1 + gain);
  return seconds;
}

class Simulation : public ::testing::TestWithParam<NoiseKind> {};

TEST_P(Simulation, AdoptsNothingAmongEquals) {
  // Samples that scatter by 10 % need so many rounds that few classes must do.
  const bool costly = GetParam() == NoiseKind::kLogNormal;
  const int classes = costly ? Scaled(20, 2000) : Scaled(400, 10000);
  int adopted = 0;
  Noise noise;
  for (int i = 0; i < classes; ++i) {
    // A run measures its noise once for all its classes.
    if (i % 20 == 0) {
      noise = SimulatedNoise(GetParam(), static_cast<uint64_t>(i) + 100000);
    }
    SimulatedClass what;
    what.seconds.assign(kCandidates, 1e-3);
    what.kind = GetParam();
    what.seed = static_cast<uint64_t>(i) + 1;
    adopted += TuneSimulated(what, noise).adopted;
  }
  EXPECT_EQ(adopted, 0) << "of " << classes;
}

TEST_P(Simulation, FindsWhatIsThere) {
  const struct {
    double gain, power;
  } rows[] = {{0.03, 0.80}, {0.05, 0.95}, {0.10, 0.99}};
  const int classes = Scaled(60, 1000);
  for (const auto& row : rows) {
    // Samples that scatter by 10 % hide 3 and 5 %: the demand is widened, and
    // the tuner says so.
    if (GetParam() == NoiseKind::kLogNormal && row.gain < 0.10) continue;
    int found = 0;
    Noise noise;
    for (int i = 0; i < classes; ++i) {
      if (i % 20 == 0) {
        noise = SimulatedNoise(GetParam(), static_cast<uint64_t>(i) + 7000);
      }
      size_t best = 0;
      SimulatedClass what;
      what.seed = static_cast<uint64_t>(i) + 1;
      what.seconds = OneBetter(row.gain, what.seed, &best);
      what.kind = GetParam();
      const SimulatedResult result = TuneSimulated(what, noise);
      found += result.adopted && result.pick == best;
    }
    RecordProperty("power_" + std::to_string(std::lround(100 * row.gain)),
                   found);
    EXPECT_GE(found, row.power * classes)
        << "+" << 100 * row.gain << " %: " << found << " of " << classes;
  }
}

TEST_P(Simulation, IntervalsCoverTheTruth) {
  const int sets = Scaled(1000, 10000);
  const double truth = std::log(1.04);
  int covered = 0;
  for (int i = 0; i < sets; ++i) {
    SimulatedMachine machine({1e-3, 1e-3 / 1.04}, GetParam(),
                             static_cast<uint64_t>(i) + 1);
    ConfirmOptions options;
    options.looks = {40};
    options.deadline = 1e12;
    CanaryGauge gauge;
    RaceContext context;
    context.gauge = &gauge;
    const Interval interval = Confirm(&machine, {1}, options, context).log_gain;
    covered += interval.low <= truth && truth <= interval.high;
  }
  // 1000 sets put the standard error at 0.7 %.
  EXPECT_GE(covered, (sets == 1000 ? 0.93 : 0.94) * sets);
}

INSTANTIATE_TEST_SUITE_P(Noise, Simulation, ::testing::ValuesIn(kAllNoise),
                         [](const auto& info) {
                           std::string name;
                           for (const char c :
                                std::string(NameOf(info.param))) {
                             if (std::isalnum(static_cast<unsigned char>(c))) {
                               name += c;
                             }
                           }
                           return name;
                         });

// Times of 24 candidates along a line of tiles.
std::vector<double> Surface(const char* kind) {
  std::vector<double> seconds(kCandidates);
  const std::string name = kind;
  for (size_t i = 0; i < kCandidates; ++i) {
    const double x = static_cast<double>(i);
    double slower = 0;
    if (name == "smooth") slower = 0.002 * (x - 9) * (x - 9);
    if (name == "ridge") slower = i == 9 ? 0 : 0.3;
    if (name == "plateau") slower = i >= 6 && i <= 12 ? 0 : 0.1;
    if (name == "two optima") {
      slower = 0.02 * std::min(std::fabs(x - 5), std::fabs(x - 18)) +
               (i > 11 ? 0.01 : 0);
    }
    if (name == "default is best") slower = 0.01 * x;
    seconds[i] = 1e-3 * (1 + slower);
  }
  return seconds;
}

TEST(Surfaces, LoseLittleWhateverTheShapeAndTheNoise) {
  for (const char* surface :
       {"smooth", "ridge", "plateau", "two optima", "default is best"}) {
    const std::vector<double> seconds = Surface(surface);
    const double best = *std::min_element(seconds.begin(), seconds.end());
    for (const NoiseKind kind :
         {NoiseKind::kGaussian, NoiseKind::kBimodal, NoiseKind::kDrift,
          NoiseKind::kSpikes, NoiseKind::kTrace}) {
      std::vector<double> regrets;
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        SimulatedClass what;
        what.seconds = seconds;
        what.kind = kind;
        what.seed = seed;
        const SimulatedResult result =
            TuneSimulated(what, SimulatedNoise(kind, seed));
        regrets.push_back(seconds[result.pick] / best - 1);
        // Never below the default.
        EXPECT_LE(seconds[result.pick], seconds[0]) << surface;
      }
      EXPECT_LE(Median(regrets), 0.015) << surface << ", " << NameOf(kind);
      EXPECT_LE(Quantile(regrets, 0.95), 0.05)
          << surface << ", " << NameOf(kind);
    }
  }
}

TEST(Simulated, TheSameSeedDecidesTheSame) {
  for (const NoiseKind kind : kAllNoise) {
    size_t best = 0;
    SimulatedClass what;
    what.seconds = OneBetter(0.04, 5, &best);
    what.kind = kind;
    what.seed = 11;
    const Noise noise = SimulatedNoise(kind, 3);
    const SimulatedResult a = TuneSimulated(what, noise);
    const SimulatedResult b = TuneSimulated(what, noise);
    EXPECT_EQ(a.pick, b.pick) << NameOf(kind);
    EXPECT_EQ(a.samples, b.samples) << NameOf(kind);
    EXPECT_EQ(a.confirmation.log_gain.low, b.confirmation.log_gain.low);
    EXPECT_EQ(a.confirmation.log_gain.median, b.confirmation.log_gain.median);
    EXPECT_EQ(a.confirmation.rounds, b.confirmation.rounds);
  }
}

TEST(Simulated, AGainThatAGuardLosesIsNotAdopted) {
  SimulatedClass what;
  what.seconds.assign(8, 1e-3);
  what.seconds[3] = 1e-3 / 1.10;
  what.guard_seconds.assign(8, 1e-3);
  what.guard_seconds[3] = 1e-3 * 1.05;
  what.kind = NoiseKind::kGaussian;
  const Noise noise = SimulatedNoise(what.kind, 1);
  EXPECT_FALSE(TuneSimulated(what, noise).adopted);
  what.guard_seconds[3] = 1e-3;
  EXPECT_TRUE(TuneSimulated(what, noise).adopted);
}

}  // namespace
}  // namespace heed::test
