// `heed_bench --heed_pairs`: what an option costs, as a ratio of two problems
// that take turns.
//
// Each round runs base, with, with, base, so that a drift of the machine's
// speed weighs on both alike; its ratio is of the two sums, and the ratio of
// the two base calls is the noise (A/A) that a difference has to exceed.
#ifndef HEED_BENCH_PAIRS_H_
#define HEED_BENCH_PAIRS_H_

#include <string>
#include <vector>

#include "bench/bench_context.h"
#include "bench/options.h"
#include "bench/provenance.h"
#include "tune/shapes.h"
#include "tune/statistics.h"

namespace heed {

// `with` against `base`.
struct ProblemPair {
  std::string name;
  NamedProblem with, base;
};

// "options", the pairs that show what each option costs, or a comma-separated
// list of WITH/BASE, each a standard shape or a problem string. On failure
// returns false and says which item is wrong in one line.
bool ParsePairs(const std::string& list, std::vector<ProblemPair>* pairs,
                std::string* why);

struct PairRound {
  double base_seconds[2] = {0, 0};  // of one call
  double with_seconds[2] = {0, 0};
  double canary_before = 0;  // elements per second, slowest thread
  double canary_after = 0;
};

struct PairRow {
  ProblemPair pair;
  std::string target;
  int threads = 1;
  double flop_ratio = 0;  // of the visible pairs' arithmetic
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

// As MeasureTable().
bool MeasurePairs(const BenchOptions& options,
                  const std::vector<ProblemPair>& pairs, BenchContext* context,
                  std::vector<PairRow>* rows, std::string* why);

// Pure.
std::string PairsMarkdown(const Provenance& provenance,
                          const std::vector<PairRow>& rows);
std::string PairsJson(const Provenance& provenance,
                      const std::vector<PairRow>& rows);

}  // namespace heed

#endif  // HEED_BENCH_PAIRS_H_
