// `heed_bench --heed_table`: the interleaved figures of all shapes, as a
// Markdown table for people and as JSON for programs.
#ifndef HEED_BENCH_TABLE_H_
#define HEED_BENCH_TABLE_H_

#include <string>
#include <vector>

#include "bench/bench_context.h"
#include "bench/interleaved.h"
#include "bench/options.h"
#include "bench/provenance.h"

namespace heed {

struct TableRow {
  std::string shape, problem, target;
  int threads = 1;
  std::string tile, tier;       // what the plan chose, and why
  double flops = 0, bytes = 0;  // of one call
  std::vector<Round> rounds;
  double task_seconds = 0;  // of a call, by its shortest tasks; 0: a decode
  double best_canary = 0;   // of the whole process; elements per second
};

// Measures every shape on every target and thread count, and says on stderr
// how far it is. False, and `why` in one line, if a shape cannot be planned or
// its result is wrong.
bool MeasureTable(const BenchOptions& options, BenchContext* context,
                  std::vector<TableRow>* rows, std::string* why);

// Pure.
std::string TableMarkdown(const Provenance& provenance,
                          const std::vector<TableRow>& rows);
std::string TableJson(const Provenance& provenance,
                      const std::vector<TableRow>& rows);

}  // namespace heed

#endif  // HEED_BENCH_TABLE_H_
