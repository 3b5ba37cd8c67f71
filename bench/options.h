// heed_bench's own flags. Everything else on the command line is Google
// Benchmark's.
#ifndef HEED_BENCH_OPTIONS_H_
#define HEED_BENCH_OPTIONS_H_

#include <string>
#include <vector>

namespace heed {

struct BenchOptions {
  std::string shapes = "core";   // as ParseShapeList() takes it
  std::vector<int> threads;      // empty = {1, all}
  std::string targets = "best";  // "best", "all" or a target's name
  bool table = false;            // the interleaved table, not the benchmarks
  bool stages = false;           // where the time of a prompt goes
  std::string pairs;      // "peers", or as ParsePairs() takes it; empty = none
  std::string compare;    // BASE,HEAD; empty = none
  std::string json_file;  // none of the benchmarks; empty = none
  std::string results_dir;            // empty = none
  int rounds = 40;                    // quiet rounds wanted per row
  double seconds = 10;                // time limit per row
  std::vector<std::string> leftover;  // for Google Benchmark, without argv[0]
};

enum class Parsed { kRun, kHelp, kVersion, kUsageError };

// Reads the command line. `text` is the help of heed's own flags, heed's
// version and commit, or one line that says what is wrong.
Parsed ParseOptions(int argc, const char* const* argv, BenchOptions* options,
                    std::string* text);

}  // namespace heed

#endif  // HEED_BENCH_OPTIONS_H_
