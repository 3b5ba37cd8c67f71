#include "bench/options.h"

#include <CLI/CLI.hpp>

namespace heed {

Parsed ParseOptions(int argc, const char* const* argv, BenchOptions* options,
                    std::string* text) {
  CLI::App app{
      "Benchmarks of heed: attention end to end, its micro-kernels, and the "
      "machine it runs on.\nFlags that do not begin with --heed_ are Google "
      "Benchmark's; their list follows."};
  app.name("heed_bench");
  app.allow_extras();
  app.add_option("--heed_shapes", options->shapes,
                 "standard shapes by name, problem strings, core, all "
                 "(default: core)");
  app.add_option("--heed_threads", options->threads,
                 "thread counts (default: 1 and all we may use)")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  app.add_option("--heed_targets", options->targets,
                 "SIMD targets: best, all, or a name (default: best)");
  app.add_flag("--heed_table", options->table,
               "print the canary-gated Markdown table instead of running the "
               "benchmarks");
  app.add_option("--heed_pairs", options->pairs,
                 "print what options cost, as ratios of problems that take "
                 "turns, instead of running the benchmarks: options, or "
                 "WITH/BASE,... of shapes and problem strings");
  app.add_option("--heed_json", options->json_file,
                 "with --heed_table or --heed_pairs: also write the result as "
                 "JSON to this file");
  app.add_option("--heed_results", options->results_dir,
                 "write bench/<machine key>/benchmarks.json below this folder, "
                 "with --heed_table table.md and table.json, with --heed_pairs "
                 "pairs.md and pairs.json");
  app.add_option(
         "--heed_rounds", options->rounds,
         "with --heed_table or --heed_pairs: quiet rounds wanted per row "
         "(default: 40)")
      ->check(CLI::Range(1, 100000));
  app.add_option(
         "--heed_seconds", options->seconds,
         "with --heed_table or --heed_pairs: time limit per row (default: "
         "10)")
      ->check(CLI::Range(0.01, 1e6));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    *text = app.help();
    return Parsed::kHelp;
  } catch (const CLI::ParseError& error) {
    *text = error.what();
    return Parsed::kUsageError;
  }
  if (!options->table && options->pairs.empty() &&
      !options->json_file.empty()) {
    *text = "--heed_json needs --heed_table or --heed_pairs";
    return Parsed::kUsageError;
  }
  if (options->table && !options->pairs.empty()) {
    *text = "--heed_table and --heed_pairs exclude each other";
    return Parsed::kUsageError;
  }
  options->leftover = app.remaining();
  return Parsed::kRun;
}

}  // namespace heed
