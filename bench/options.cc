#include "bench/options.h"

#include <heed.h>

#include <CLI/CLI.hpp>

#include "bench/compare.h"
#include "bench/provenance.h"

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
  app.add_flag("--heed_stages", options->stages,
               "print where the time of a prompt goes, stage by stage, on one "
               "thread, instead of running the benchmarks");
  app.add_option("--heed_pairs", options->pairs,
                 "print ratios of things that take turns instead of running "
                 "the benchmarks: options = what options cost; peers = the "
                 "shapes by heed and by other libraries in this process; or "
                 "WITH/BASE,... of shapes and problem strings");
  app.add_option("--heed_compare", options->compare,
                 "BASE,HEAD: two libheed.so that take turns on ten headline "
                 "shapes (or those of --heed_shapes). Exit code 3 if HEAD is "
                 "surely more than 5 % slower, and is again in fresh rounds");
  app.add_option("--heed_json", options->json_file,
                 "also write the table, stages, pairs or comparison as JSON to "
                 "this file");
  app.add_option("--heed_results", options->results_dir,
                 "write bench/<machine key>/benchmarks.json below this folder, "
                 "with --heed_table table.md and table.json, with the others "
                 "stages, pairs, peers or compare .md and .json");
  app.add_option("--heed_rounds", options->rounds,
                 "quiet rounds wanted per row of a table, stage, pair or shape "
                 "compared (default: 40)")
      ->check(CLI::Range(1, 100000));
  app.add_option("--heed_seconds", options->seconds,
                 "time limit of each of those (default: 10)")
      ->check(CLI::Range(0.01, 1e6));
  app.set_version_flag("--heed_version", [] {
    return std::string(heed_version()) + " " + GitCommit();
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    *text = app.help();
    return Parsed::kHelp;
  } catch (const CLI::CallForVersion& version) {
    *text = version.what();
    return Parsed::kVersion;
  } catch (const CLI::ParseError& error) {
    *text = error.what();
    return Parsed::kUsageError;
  }
  const int modes = options->table + options->stages + !options->pairs.empty() +
                    !options->compare.empty();
  if (modes > 1) {
    *text =
        "--heed_table, --heed_stages, --heed_pairs and --heed_compare exclude "
        "each other";
    return Parsed::kUsageError;
  }
  if (modes == 0 && !options->json_file.empty()) {
    *text =
        "--heed_json needs --heed_table, --heed_stages, --heed_pairs or "
        "--heed_compare";
    return Parsed::kUsageError;
  }
  if (!options->compare.empty() && app.count("--heed_shapes") == 0) {
    options->shapes = kHeadlineShapes;
  }
  options->leftover = app.remaining();
  return Parsed::kRun;
}

}  // namespace heed
