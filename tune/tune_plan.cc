#include "tune/tune_plan.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "runtime/problem.h"
#include "runtime/record_files.h"
#include "tune/candidates.h"
#include "tune/commands.h"
#include "tune/publish.h"
#include "tune/shapes_file.h"
#include "tune/staged_file.h"

namespace heed {

namespace fs = std::filesystem;

bool ParsePercent(const std::string& text, double* fraction) {
  char* end = nullptr;
  const double percent = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  *fraction = percent / 100;
  return end != text.c_str() && (unit.empty() || unit == "%" || unit == " %") &&
         percent >= 0 && percent <= 100;
}

TuneOptions OptionsOf(const TuneCommand& command, const Machine& machine) {
  TuneOptions options;
  std::string why;  // the parsers have accepted all of this before
  ReadShapes(command.shapes, &options.shapes, &why);
  ParsePercent(command.min_gain, &options.min_gain);
  options.threads = command.threads > 0 ? command.threads : machine.threads;
  options.seed = command.seed;
  if (command.isolate) options.isolate = TrialsByExec;
  for (const Effort& effort : Efforts()) {
    if (command.effort == effort.name) options.effort = effort;
  }
  if (!ParseDuration(
          command.budget.empty() ? options.effort.budget : command.budget,
          &options.budget_seconds, &why)) {
    options.budget_seconds = 0;
  }
  return options;
}

std::vector<std::string> ArgumentsOf(const TuneCommand& command,
                                     const TuneOptions& options) {
  const bool file = command.shapes.find('/') != std::string::npos ||
                    command.shapes.find(".json") != std::string::npos;
  std::vector<std::string> arguments = {
      "run", "--effort", options.effort.name, "--budget",
      fmt::format("{:g}s", options.budget_seconds)};
  if (command.stale) {
    arguments.push_back("--stale");
  } else {
    arguments.insert(arguments.end(),
                     {"--shapes", file ? "FILE" : command.shapes});
  }
  arguments.insert(arguments.end(),
                   {"--threads", std::to_string(options.threads), "--min-gain",
                    fmt::format("{:g}%", 100 * options.min_gain), "--seed",
                    std::to_string(options.seed)});
  if (command.isolate) arguments.push_back("--isolate");
  return arguments;
}

int CheckOutput(const std::string& output, const std::string& machine_key,
                std::string* why) {
  const fs::path folder = fs::path(output) / machine_key;
  std::error_code error;
  fs::create_directories(folder, error);
  StagedFile probe;
  if (error) *why = error.message();
  if (error || !probe.Open((folder / "writable").string(), why)) {
    *why = fmt::format(
        "cannot write {} ({}). Use --output DIR, e.g. --output "
        "~/.config/heed/tuning",
        output, *why);
    return kCannotWrite;
  }
  const std::string path = (folder / "record.json").string();
  Record record;
  if (fs::exists(path, error) && !ReadRecordFile(path, &record, why)) {
    *why = fmt::format(
        "{}: {}; `heed tune doctor --fix` restores the last good one, or move "
        "the file away, or choose another folder with --output",
        path, *why);
    return kBadData;
  }
  if (record.kernel_abi > kKernelAbi) {
    // What was measured would only be set aside in it.
    *why = fmt::format(
        "{}: kernel_abi {} is newer than the library's {}; upgrade the "
        "library, or choose another folder with --output",
        path, record.kernel_abi, kKernelAbi);
    return kBadData;
  }
  return kDone;
}

void PrintPlan(const TuneOptions& options, const TuneCommand& command,
               const TuneMachine& machine, bool measured) {
  double sum = 0;
  fmt::print("{:<22} {:>10} {:>8}  {:<32} {}\n", "shape", "candidates",
             "wanted", "default", "problem");
  for (const NamedProblem& shape : options.shapes) {
    const std::vector<Candidate> candidates = Candidates(
        shape.problem, EqualTargets(KernelDType(shape.problem.dtype)),
        machine.machine, options.threads, options.effort.candidates);
    const double wanted =
        measured ? WantedSeconds(shape.problem, options.effort, machine.peaks)
                 : 0;
    sum += wanted;
    fmt::print("{:<22} {:>10} {:>6.1f} s  {:<32} {}\n", shape.name,
               candidates.size(), wanted, ToString(candidates[0]), shape.text);
  }
  if (!measured) {
    fmt::print(
        "estimate: the model's choice; nothing was measured or written\n");
    return;
  }
  fmt::print("would take {} at full effort, is given {}; would write {}\n",
             DurationText(sum), DurationText(options.budget_seconds),
             RecordPath(command.output, MachineKey(machine.machine)));
}

}  // namespace heed
