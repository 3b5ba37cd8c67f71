#include "bench/interleaved.h"

#include <algorithm>
#include <chrono>

#include "tune/statistics.h"

namespace heed {
namespace {

constexpr int kFewestRounds = 3;
constexpr double kSampleSeconds = 2e-3;
// A sample never holds more calls than this, however short they are.
constexpr int kMostCalls = 1 << 20;

double TimeCalls(const std::function<void()>& call, int calls) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) call();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(end - begin).count();
}

// How many calls fill a sample.
int CallsPerSample(const std::function<void()>& call) {
  int calls = 1;
  while (TimeCalls(call, calls) < kSampleSeconds && calls < kMostCalls) {
    calls *= 2;
  }
  return calls;
}

}  // namespace

std::vector<Round> Interleave(const RoundsWanted& wanted, Roof* roof,
                              const std::function<void()>& call) {
  const int calls = CallsPerSample(call);
  std::vector<Round> rounds;
  int quiet = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  };
  while (rounds.size() < kFewestRounds ||
         (quiet < wanted.quiet && passed() < wanted.seconds)) {
    Round round;
    if (wanted.read) round.read = roof->Read().rate();
    round.fma = roof->Fma().rate();
    round.canary_before = roof->CanaryRate();
    round.seconds = TimeCalls(call, calls) / calls;
    round.canary_after = roof->CanaryRate();
    rounds.push_back(round);
    // By the best so far; Summarize() decides, by the best of the process.
    if (IsQuiet(round, roof->best_canary())) ++quiet;
  }
  return rounds;
}

bool IsQuiet(const Round& round, double best_canary) {
  return std::min(round.canary_before, round.canary_after) * kCanarySlack >=
         best_canary;
}

Summary Summarize(const std::vector<Round>& rounds, double best_canary) {
  Summary summary;
  std::vector<double> seconds;
  for (const Round& round : rounds) {
    summary.fma = std::max(summary.fma, round.fma);
    summary.read = std::max(summary.read, round.read);
    if (IsQuiet(round, best_canary)) {
      seconds.push_back(round.seconds);
    } else {
      ++summary.dropped;
    }
  }
  summary.kept = static_cast<int>(seconds.size());
  if (!seconds.empty()) {
    summary.median_seconds = Median(seconds);
    summary.min_seconds = *std::min_element(seconds.begin(), seconds.end());
  }
  return summary;
}

}  // namespace heed
