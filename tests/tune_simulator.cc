#include "tests/tune_simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tune/budget.h"
#include "tune/shape_tuner.h"

namespace heed::test {
namespace {

constexpr double kForEver = 1e12;

const Effort& Normal() {
  for (const Effort& effort : Efforts()) {
    if (std::string(effort.name) == "normal") return effort;
  }
  return Efforts().front();
}

}  // namespace

const char* NameOf(NoiseKind kind) {
  switch (kind) {
    case NoiseKind::kNone:
      return "none";
    case NoiseKind::kGaussian:
      return "gaussian 1 %";
    case NoiseKind::kLogNormal:
      return "log-normal 10 %";
    case NoiseKind::kBimodal:
      return "bimodal";
    case NoiseKind::kDrift:
      return "drift";
    case NoiseKind::kSpikes:
      return "spikes";
    case NoiseKind::kTrace:
      return "recorded trace";
  }
  return "";
}

const std::vector<TracePoint>& NoiseTrace() {
  static const std::vector<TracePoint> trace = [] {
    std::vector<TracePoint> points;
    std::ifstream file(HEED_TESTS_DATA_DIR "/noise_trace.txt");
    for (std::string line; std::getline(file, line);) {
      TracePoint point{};
      if (std::sscanf(line.c_str(), "%lf %lf", &point.time, &point.canary) ==
          2) {
        points.push_back(point);
      }
    }
    return points;
  }();
  EXPECT_GT(trace.size(), 2000u) << "no tests/data/noise_trace.txt";
  return trace;
}

SimulatedMachine::SimulatedMachine(std::vector<double> seconds, NoiseKind kind,
                                   uint64_t seed)
    : seconds_(std::move(seconds)), kind_(kind), random_(seed) {
  if (kind_ == NoiseKind::kTrace) place_ = random_() % NoiseTrace().size();
}

Timed SimulatedMachine::Sample(size_t candidate, size_t iterations) {
  ++samples_;
  double factor = std::exp(0.001 * Normal());
  double canary = std::exp(0.005 * Normal());
  switch (kind_) {
    case NoiseKind::kNone:
      break;
    case NoiseKind::kGaussian:
      factor = std::max(0.5, 1 + 0.01 * Normal());
      break;
    case NoiseKind::kLogNormal:
      factor = std::exp(0.1 * Normal());
      canary = std::exp(0.03 * Normal());
      break;
    case NoiseKind::kBimodal:
      factor = std::exp(0.005 * Normal());
      if (now_ >= block_end_) {
        slow_ = !slow_;
        block_end_ =
            now_ + 0.02 + 0.4 * static_cast<double>(random_() % 1000) / 1000;
      }
      if (slow_) {
        factor *= 1.4;
        canary *= 1.4;
      }
      break;
    case NoiseKind::kDrift:
      factor =
          (1 + 0.2 * std::fmod(now_, 10.0) / 10) * std::exp(0.005 * Normal());
      break;
    case NoiseKind::kSpikes:
      factor = std::exp(0.005 * Normal());
      if (random_() % 100 == 0) factor *= 10;
      break;
    case NoiseKind::kTrace: {
      const TracePoint& point = NoiseTrace()[place_++ % NoiseTrace().size()];
      factor = point.time;
      canary = point.canary;
      break;
    }
  }
  const double took =
      seconds_[candidate] * static_cast<double>(iterations) * factor;
  now_ += took;
  return {took, 5e-10 * canary};
}

Noise SimulatedNoise(NoiseKind kind, uint64_t seed) {
  SimulatedMachine machine({1e-3, 1e-3}, kind, seed);
  CanaryGauge gauge;
  return MeasureNoise(&machine, 1, kForEver, 500, &gauge, {});
}

SimulatedResult TuneSimulated(const SimulatedClass& what, const Noise& noise) {
  const Effort& effort = Normal();
  std::mt19937_64 random(what.seed);
  CanaryGauge gauge;
  RaceContext context;
  context.gauge = &gauge;
  SimulatedResult result;
  SimulatedMachine machine(what.seconds, what.kind, random());
  SearchOptions search;
  search.rounds = effort.search_rounds * noise.SearchFactor();
  search.deadline = kForEver;
  const SearchResult found =
      Search(&machine, what.seconds.size(), search, context, &random);
  ConfirmOptions confirm = PlannedConfirm(effort, noise);
  confirm.deadline = kForEver;
  result.confirmation = Confirm(&machine, found.finalists, confirm, context);
  const size_t best = result.confirmation.winner;
  if (what.more_rounds > 0 &&
      Undecided(result.confirmation, confirm.min_gain)) {
    confirm.looks = {what.more_rounds};
    confirm.alpha = kMoreAlpha;
    result.confirmation = Confirm(&machine, {best}, confirm, context);
  }
  result.samples = machine.samples();
  result.adopted = result.confirmation.adopted;
  const size_t winner = result.confirmation.winner;
  for (int guard = 0; guard < 2 && result.adopted; ++guard) {
    const std::vector<double>& seconds =
        what.guard_seconds.empty() ? what.seconds : what.guard_seconds;
    SimulatedMachine other({seconds[0], seconds[winner]}, what.kind, random());
    GuardOptions options;
    options.rounds = effort.looks.front() * RoundsFactor(effort, noise);
    options.deadline = kForEver;
    result.adopted = CheckGuard(&other, options, context).holds;
    result.samples += other.samples();
  }
  if (result.adopted) result.pick = winner;
  return result;
}

}  // namespace heed::test
