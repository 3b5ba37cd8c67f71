#include "bench/interleaved.h"

#include <algorithm>
#include <chrono>

#include "tune/statistics.h"

namespace heed {
namespace {

constexpr int kFewestRounds = 3;
// A sample never holds more calls than this, however short they are.
constexpr int kMostCalls = 1 << 20;

}  // namespace

double Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double TimeCalls(const std::function<void()>& call, int calls) {
  const double begin = Now();
  for (int i = 0; i < calls; ++i) call();
  return (Now() - begin) / calls;
}

int CallsFor(const std::function<void()>& call, double seconds) {
  int calls = 1;
  while (calls * TimeCalls(call, calls) < seconds && calls < kMostCalls) {
    calls *= 2;
  }
  return calls;
}

std::vector<Round> Interleave(const RoundsWanted& wanted, Roof* roof,
                              const std::function<void()>& call) {
  const int calls = CallsFor(call, kSampleSeconds);
  std::vector<Round> rounds;
  int quiet = 0;
  const double start = Now();
  while (rounds.size() < kFewestRounds ||
         (quiet < wanted.quiet && Now() - start < wanted.seconds)) {
    Round round;
    if (wanted.read) round.read = roof->Read().rate();
    round.fma = roof->Fma().rate();
    round.canary_before = roof->CanaryRate();
    round.seconds = TimeCalls(call, calls);
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
    if (summary.min_seconds == 0 || round.seconds < summary.min_seconds) {
      summary.min_seconds = round.seconds;
    }
    if (IsQuiet(round, best_canary)) {
      seconds.push_back(round.seconds);
    } else {
      ++summary.dropped;
    }
  }
  summary.kept = static_cast<int>(seconds.size());
  if (!seconds.empty()) summary.median_seconds = Median(seconds);
  return summary;
}

}  // namespace heed
