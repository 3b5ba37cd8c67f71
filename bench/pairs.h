// `heed_bench --heed_pairs`: what an option costs, as a ratio of two problems
// that take turns.
#ifndef HEED_BENCH_PAIRS_H_
#define HEED_BENCH_PAIRS_H_

#include <string>
#include <vector>

#include "bench/bench_context.h"
#include "bench/options.h"
#include "bench/pair_rounds.h"
#include "bench/provenance.h"
#include "tune/shapes.h"

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
