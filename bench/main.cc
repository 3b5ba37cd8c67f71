// heed_bench: Google Benchmark programs, or the interleaved table.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/attention_peers.h"
#include "bench/bench_context.h"
#include "bench/compare.h"
#include "bench/options.h"
#include "bench/pairs.h"
#include "bench/provenance.h"
#include "bench/register.h"
#include "bench/stages.h"
#include "bench/table.h"
#include "runtime/plan.h"
#include "tune/staged_file.h"

namespace heed {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kSlower = 3 };

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

// Where a measurement's two faces go beside standard output. Files are opened
// before the minutes of measuring, so that a wrong path is known at once; they
// appear at their places afterwards, all together.
class ResultFiles {
 public:
  // `name`.md and `name`.json in the results folder, and the JSON file asked
  // for, each if there is one.
  bool Open(const BenchOptions& options, const std::string& name,
            std::string* why) {
    asked_ = !options.json_file.empty();
    kept_ = !options.results_dir.empty();
    if (asked_ && !asked_json_.Open(options.json_file, why)) return false;
    std::string folder;
    return !kept_ || (MakeFolder(options.results_dir, &folder, why) &&
                      markdown_.Open(folder + "/" + name + ".md", why) &&
                      json_.Open(folder + "/" + name + ".json", why));
  }

  bool Commit(const std::string& markdown, const std::string& json,
              std::string* why) {
    fmt::print("{}", markdown);
    return (!asked_ || asked_json_.Append(json.data(), json.size(), why)) &&
           (!kept_ ||
            (markdown_.Append(markdown.data(), markdown.size(), why) &&
             json_.Append(json.data(), json.size(), why))) &&
           StagedFile::CommitAll({&asked_json_, &markdown_, &json_}, why);
  }

 private:
  bool asked_ = false, kept_ = false;
  StagedFile asked_json_, markdown_, json_;
};

int RunTable(const BenchOptions& options, const Provenance& provenance,
             BenchContext* context) {
  ResultFiles files;
  std::vector<TableRow> rows;
  std::string why;
  if (!files.Open(options, "table", &why) ||
      !MeasureTable(options, context, &rows, &why) ||
      !files.Commit(TableMarkdown(provenance, rows),
                    TableJson(provenance, rows), &why)) {
    return Complain(kFailed, why);
  }
  return kDone;
}

int RunStages(const BenchOptions& options, const Provenance& provenance,
              BenchContext* context) {
  ResultFiles files;
  std::vector<StageRow> rows;
  std::string why;
  if (!files.Open(options, "stages", &why) ||
      !MeasureStages(options, context, &rows, &why) ||
      !files.Commit(StagesMarkdown(provenance, rows),
                    StagesJson(provenance, rows), &why)) {
    return Complain(kFailed, why);
  }
  return kDone;
}

int RunPairs(const BenchOptions& options, const Provenance& provenance,
             BenchContext* context) {
  const bool peers = options.pairs == "peers";
  ResultFiles files;
  std::vector<ProblemPair> pairs;
  std::vector<PairRow> rows;
  std::string why;
  if (!peers && !ParsePairs(options.pairs, &pairs, &why)) {
    return Complain(kUsage, "--heed_pairs: " + why);
  }
  if (!files.Open(options, peers ? "peers" : "pairs", &why) ||
      !(peers ? MeasurePeers(options, context, &rows, &why)
              : MeasurePairs(options, pairs, context, &rows, &why)) ||
      !files.Commit(PairsMarkdown(provenance, rows),
                    PairsJson(provenance, rows), &why)) {
    return Complain(kFailed, why);
  }
  return kDone;
}

int RunCompare(const BenchOptions& options, const Provenance& provenance,
               BenchContext* context) {
  ResultFiles files;
  std::vector<ComparedShape> shapes;
  std::string why;
  if (!files.Open(options, "compare", &why) ||
      !Compare(options, context, &shapes, &why) ||
      !files.Commit(CompareMarkdown(provenance, shapes),
                    CompareJson(provenance, shapes), &why)) {
    return Complain(kFailed, why);
  }
  for (const ComparedShape& shape : shapes) {
    if (Judge(shape) == Verdict::kSlower) return kSlower;
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
  RegisterLookupBenchmarks();
  RegisterMachineBenchmarks(context);
  RegisterMicroBenchmarks(context);
  RegisterAttentionBenchmarks(context);
  RegisterProjectBenchmarks(context);
  RegisterBlockBenchmarks(context);
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
    case Parsed::kVersion:
      fmt::print("{}\n", text);
      return kDone;
    case Parsed::kUsageError:
      return Complain(kUsage, text);
    case Parsed::kRun:
      break;
  }
  const char* const mode = options.table              ? "--heed_table"
                           : options.stages           ? "--heed_stages"
                           : !options.pairs.empty()   ? "--heed_pairs"
                           : !options.compare.empty() ? "--heed_compare"
                                                      : nullptr;
  if (mode != nullptr && !options.leftover.empty()) {
    return Complain(
        kUsage, fmt::format("not used with {}: {}", mode, options.leftover[0]));
  }
  BenchContext context;
  if (!context.Init(options, &text)) return Complain(kUsage, text);
  const Provenance provenance = CollectProvenance(argc, argv);
  if (options.table) return RunTable(options, provenance, &context);
  if (options.stages) return RunStages(options, provenance, &context);
  if (!options.pairs.empty()) return RunPairs(options, provenance, &context);
  if (!options.compare.empty()) {
    return RunCompare(options, provenance, &context);
  }
  return RunBenchmarks(options, provenance, argv[0], &context);
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
