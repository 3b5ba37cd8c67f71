#include "bench/pair_rounds.h"

#include <algorithm>
#include <cmath>

#include "bench/interleaved.h"

namespace heed {
namespace {

constexpr double kPairAlpha = 0.05;

bool IsQuiet(const PairRound& round, double best_canary) {
  Round gate;
  gate.canary_before = round.canary_before;
  gate.canary_after = round.canary_after;
  return heed::IsQuiet(gate, best_canary);
}

Interval Exp(const Interval& log) {
  return {std::exp(log.low), std::exp(log.median), std::exp(log.high)};
}

}  // namespace

PairSummary SummarizePair(const PairRow& row) {
  PairSummary summary;
  std::vector<double> ratios, noise, base, with;
  for (const PairRound& round : row.rounds) {
    if (!IsQuiet(round, row.best_canary)) {
      ++summary.dropped;
      continue;
    }
    const double base_sum = round.base_seconds[0] + round.base_seconds[1];
    const double with_sum = round.with_seconds[0] + round.with_seconds[1];
    ratios.push_back(std::log(with_sum / base_sum));
    noise.push_back(std::log(round.base_seconds[1] / round.base_seconds[0]));
    base.insert(base.end(), {round.base_seconds[0], round.base_seconds[1]});
    with.insert(with.end(), {round.with_seconds[0], round.with_seconds[1]});
  }
  summary.kept = static_cast<int>(ratios.size());
  if (ratios.empty()) return summary;
  summary.ratio = Exp(MedianInterval(ratios, kPairAlpha));
  summary.noise = Exp(MedianInterval(noise, kPairAlpha));
  summary.min_ratio = *std::min_element(with.begin(), with.end()) /
                      *std::min_element(base.begin(), base.end());
  summary.base_seconds = Median(base);
  summary.with_seconds = Median(with);
  return summary;
}

void MeasureRounds(const BenchOptions& options, Roof* roof,
                   const std::function<void()>& base,
                   const std::function<void()>& with, PairRow* row) {
  const int base_calls = CallsFor(base, kSampleSeconds);
  const int with_calls = CallsFor(with, kSampleSeconds);
  const double start = Now();
  int quiet = 0;
  while (row->rounds.size() < RoundsNeeded(kPairAlpha) ||
         (quiet < options.rounds && Now() - start < options.seconds)) {
    PairRound round;
    round.canary_before = roof->CanaryRate();
    round.base_seconds[0] = TimeCalls(base, base_calls);
    round.with_seconds[0] = TimeCalls(with, with_calls);
    round.with_seconds[1] = TimeCalls(with, with_calls);
    round.base_seconds[1] = TimeCalls(base, base_calls);
    round.canary_after = roof->CanaryRate();
    row->rounds.push_back(round);
    if (IsQuiet(round, roof->best_canary())) ++quiet;
  }
}

void SetBestCanary(BenchContext* context, std::vector<PairRow>* rows) {
  for (PairRow& row : *rows) {
    row.best_canary = context->BestCanary(row.target, row.threads);
  }
}

}  // namespace heed
