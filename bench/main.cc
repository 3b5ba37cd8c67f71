// heed_bench: Google Benchmark programs, or the interleaved table.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/bench_context.h"
#include "bench/options.h"
#include "bench/provenance.h"
#include "bench/register.h"
#include "bench/table.h"
#include "runtime/plan.h"
#include "tune/staged_file.h"

namespace heed {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

int Complain(ExitCode code, const std::string& what) {
  fmt::print(stderr, "heed_bench: {}\n", what);
  return code;
}

// How the plans of these shapes came by their tiles: "exact 9, model 2".
std::string Tiers(const BenchContext& context) {
  std::map<std::string, int> count;
  for (const NamedProblem& problem : context.problems()) {
    for (const int threads : context.threads()) {
      const PlanPointer plan =
          MakePlan(problem.problem, context.targets()[0].name, threads);
      ++count[plan == nullptr ? "unsupported" : TierName(plan->choice.tier)];
    }
  }
  std::string text;
  for (const auto& [tier, plans] : count) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", tier, plans);
  }
  return text;
}

// Makes <results>/bench/<machine key> and returns it.
bool MakeFolder(const std::string& results, std::string* folder,
                std::string* why) {
  *folder = results + "/bench/" + MachineKey(ThisMachine());
  std::error_code error;
  std::filesystem::create_directories(*folder, error);
  if (error) *why = *folder + ": " + error.message();
  return !error;
}

int RunTable(const BenchOptions& options, const Provenance& provenance,
             BenchContext* context) {
  // Files are opened before the minutes of measuring, so that a wrong path is
  // known at once; they appear at their places afterwards, all together.
  StagedFile asked_json, markdown_file, json_file;
  std::string why;
  if (!options.json_file.empty() && !asked_json.Open(options.json_file, &why)) {
    return Complain(kFailed, why);
  }
  if (!options.results_dir.empty()) {
    std::string folder;
    if (!MakeFolder(options.results_dir, &folder, &why) ||
        !markdown_file.Open(folder + "/table.md", &why) ||
        !json_file.Open(folder + "/table.json", &why)) {
      return Complain(kFailed, why);
    }
  }
  std::vector<TableRow> rows;
  if (!MeasureTable(options, context, &rows, &why)) {
    return Complain(kFailed, why);
  }
  const std::string markdown = TableMarkdown(provenance, rows);
  const std::string json = TableJson(provenance, rows);
  fmt::print("{}", markdown);
  if ((!options.json_file.empty() &&
       !asked_json.Append(json.data(), json.size(), &why)) ||
      (!options.results_dir.empty() &&
       (!markdown_file.Append(markdown.data(), markdown.size(), &why) ||
        !json_file.Append(json.data(), json.size(), &why))) ||
      !StagedFile::CommitAll({&asked_json, &markdown_file, &json_file}, &why)) {
    return Complain(kFailed, why);
  }
  return kDone;
}

int RunBenchmarks(const BenchOptions& options, const Provenance& provenance,
                  const char* program, BenchContext* context) {
  for (const auto& [name, value] : provenance) {
    // Google Benchmark prints its own date.
    if (name != "date") benchmark::AddCustomContext("heed_" + name, value);
  }
  benchmark::AddCustomContext("heed_tiers", Tiers(*context));
  std::vector<std::string> words = options.leftover;
  words.insert(words.begin(), program);
  if (!options.results_dir.empty()) {
    std::string folder, why;
    if (!MakeFolder(options.results_dir, &folder, &why)) {
      return Complain(kFailed, why);
    }
    words.push_back("--benchmark_out_format=json");
    words.push_back("--benchmark_out=" + folder + "/benchmarks.json");
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  benchmark::Initialize(&argc, argv.data());
  if (benchmark::ReportUnrecognizedArguments(argc, argv.data())) return kUsage;
  RegisterMachineBenchmarks(context);
  RegisterMicroBenchmarks(context);
  RegisterAttentionBenchmarks(context);
  const size_t matched = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return matched == 0 || context->failed() ? kFailed : kDone;
}

int Main(int argc, char** argv) {
  BenchOptions options;
  std::string text;
  switch (ParseOptions(argc, argv, &options, &text)) {
    case Parsed::kHelp:
      fmt::print("{}\n", text);
      std::fflush(stdout);
      benchmark::PrintDefaultHelp();
      return kDone;
    case Parsed::kUsageError:
      return Complain(kUsage, text);
    case Parsed::kRun:
      break;
  }
  if (options.table && !options.leftover.empty()) {
    return Complain(kUsage,
                    "not used with --heed_table: " + options.leftover[0]);
  }
  BenchContext context;
  if (!context.Init(options, &text)) return Complain(kUsage, text);
  const Provenance provenance = CollectProvenance(argc, argv);
  return options.table ? RunTable(options, provenance, &context)
                       : RunBenchmarks(options, provenance, argv[0], &context);
}

}  // namespace
}  // namespace heed

int main(int argc, char** argv) {
  try {
    return heed::Main(argc, argv);
  } catch (const std::exception& error) {
    return heed::Complain(heed::kFailed, error.what());
  }
}
