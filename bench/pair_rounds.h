// Two things that take turns, and how much longer one of them takes.
//
// Each round runs base, with, with, base, so that a drift of the machine's
// speed weighs on both alike; its ratio is of the two sums, and the ratio of
// the two base calls is the noise (A/A) that a difference has to exceed.
#ifndef HEED_BENCH_PAIR_ROUNDS_H_
#define HEED_BENCH_PAIR_ROUNDS_H_

#include <functional>
#include <string>
#include <vector>

#include "bench/bench_context.h"
#include "bench/options.h"
#include "bench/roof.h"
#include "tune/statistics.h"

namespace heed {

struct PairRound {
  double base_seconds[2] = {0, 0};  // of one call
  double with_seconds[2] = {0, 0};
  double canary_before = 0;  // elements per second, slowest thread
  double canary_after = 0;
};

struct PairRow {
  std::string name;
  std::string with, base;  // what they are: problem strings, libraries
  std::string target;
  int threads = 1;
  double flop_ratio = 1;  // of the visible pairs' arithmetic
  std::string refused;    // why there are no rounds, in one line
  std::vector<PairRound> rounds;
  double best_canary = 0;  // of the whole process
};

// Of the quiet rounds.
struct PairSummary {
  int kept = 0, dropped = 0;
  Interval ratio = {0, 0, 0};                 // with / base; 95 %
  Interval noise = {0, 0, 0};                 // base / base; 95 %
  double min_ratio = 0;                       // of the shortest calls
  double base_seconds = 0, with_seconds = 0;  // medians
};

// Pure.
PairSummary SummarizePair(const PairRow& row);

// Appends rounds to the row until as many as asked for were quiet or the time
// is up; never fewer than an interval needs.
void MeasureRounds(const BenchOptions& options, Roof* roof,
                   const std::function<void()>& base,
                   const std::function<void()>& with, PairRow* row);

// The rows' best canary is the process's, which the last round may have had.
void SetBestCanary(BenchContext* context, std::vector<PairRow>* rows);

}  // namespace heed

#endif  // HEED_BENCH_PAIR_ROUNDS_H_
