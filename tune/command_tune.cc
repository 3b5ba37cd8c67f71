// `heed tune`: measures, publishes, reports.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "runtime/record_files.h"
#include "runtime/targets.h"
#include "runtime/tile_model.h"
#include "tune/budget.h"
#include "tune/candidates.h"
#include "tune/commands.h"
#include "tune/interrupt.h"
#include "tune/progress.h"
#include "tune/report.h"
#include "tune/staged_file.h"
#include "tune/tuner.h"

namespace heed {
namespace {

struct TuneCommand {
  std::string budget = "120s";
  std::string shapes = "core";
  std::string output = "results/tuning";
  std::string effort = "normal";
  std::string min_gain = "1%";
  int threads = 0;
  uint64_t seed = 1;
  bool dry_run = false, json = false, no_progress = false;
  std::string command_line;
};

// "1%", "1.5" and "1 %" are percentages.
bool ParsePercent(const std::string& text, double* fraction) {
  char* end = nullptr;
  const double percent = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  *fraction = percent / 100;
  return end != text.c_str() && (unit.empty() || unit == "%" || unit == " %") &&
         percent >= 0 && percent <= 100;
}

// Turns a parser into a check of CLI11, so that a wrong value is wrong usage.
template <class Parse>
CLI::Validator Check(Parse parse) {
  return CLI::Validator(
      [parse](const std::string& text) { return parse(text); }, "", "value");
}

std::string CheckDuration(const std::string& text) {
  double seconds = 0;
  std::string why;
  return ParseDuration(text, &seconds, &why) ? "" : why;
}

std::string CheckShapes(const std::string& text) {
  std::vector<NamedProblem> shapes;
  std::string why;
  return ParseShapeList(text, &shapes, &why) ? "" : why;
}

std::string CheckPercent(const std::string& text) {
  double fraction = 0;
  if (ParsePercent(text, &fraction)) return "";
  return "'" + text + "' is no percentage (expected e.g. 1%, at most 100%)";
}

TuneOptions OptionsOf(const TuneCommand& command, const Machine& machine) {
  TuneOptions options;
  std::string why;  // the parsers have accepted all of this before
  ParseShapeList(command.shapes, &options.shapes, &why);
  ParseDuration(command.budget, &options.budget_seconds, &why);
  ParsePercent(command.min_gain, &options.min_gain);
  options.threads = command.threads > 0 ? command.threads : machine.threads;
  options.seed = command.seed;
  for (const Effort& effort : Efforts()) {
    if (command.effort == effort.name) options.effort = effort;
  }
  return options;
}

TuneMachine OpenMachine() {
  TuneMachine machine;
  machine.machine = ThisMachine();
  machine.target = RunnableTargets().front();
  machine.probes = GetProbes(machine.target);
  return machine;
}

// Fails now rather than after minutes: the folder can be written, and a record
// that lies there can be read, since it is going to be merged with.
bool CheckOutput(const TuneCommand& command, const std::string& machine_key,
                 std::string* why) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(command.output) / machine_key;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    *why = fmt::format("{}: {} (--output DIR writes elsewhere)",
                       folder.string(), error.message());
    return false;
  }
  StagedFile probe;
  if (!probe.Open((folder / "writable").string(), why)) return false;
  const std::string path = (folder / "record.json").string();
  Record record;
  if (fs::exists(path, error) && !ReadRecordFile(path, &record, why)) {
    *why = fmt::format(
        "{}: {}; move the file away or choose another folder with --output",
        path, *why);
    return false;
  }
  return true;
}

// Everything but the measuring; writes nothing.
void DryRun(const TuneOptions& options, const TuneCommand& command,
            const TuneMachine& machine) {
  double sum = 0;
  fmt::print("{:<22} {:>6} {:>8}  {:<24} {}\n", "shape", "tiles", "wanted",
             "default tile", "problem");
  for (const NamedProblem& shape : options.shapes) {
    const Kernels kernels = KernelsFor(machine, shape.problem);
    const Tile tile =
        ModelTile(shape.problem, kernels, machine.machine, options.threads);
    const size_t tiles = TileCandidates(shape.problem, kernels, machine.machine,
                                        tile, options.effort.candidates)
                             .size();
    const double wanted =
        WantedSeconds(shape.problem, options.effort, machine.peaks);
    sum += wanted;
    fmt::print("{:<22} {:>6} {:>6.1f} s  {:<24} {}\n", shape.name, tiles,
               wanted, ToString(tile), shape.text);
  }
  fmt::print(
      "would take {} at full effort, is given {}; would write {}/{}/"
      "record.json\n",
      DurationText(sum), DurationText(options.budget_seconds), command.output,
      MachineKey(machine.machine));
}

void PrintBanner(std::FILE* stream, const TuneOptions& options,
                 const TuneMachine& machine) {
  const Machine& m = machine.machine;
  fmt::print(
      stream, "heed {} on {} ({}, {} threads, caches {}+{} KB from {})\n",
      heed_version(), MachineKey(m), machine.probes.target, options.threads,
      m.l1d.bytes >> 10, m.l2.bytes >> 10, m.cache_source);
  fmt::print(stream, "{} shapes, effort {}, at most {}\n",
             options.shapes.size(), options.effort.name,
             DurationText(options.budget_seconds));
  std::fflush(stream);
}

std::string HowToUse(const std::string& path, const std::string& output) {
  return fmt::format(
      "wrote {}\nTo use it: HEED_TUNE_PATH={} or copy {} to "
      "~/.config/heed/tuning; `heed info` shows what is in use\n",
      path, output, std::filesystem::path(path).parent_path().string());
}

// In the order in which the shapes were asked for.
void SortAsAsked(const TuneOptions& options, std::vector<TunedShape>* results) {
  const auto place = [&options](const TunedShape& tuned) {
    size_t i = 0;
    while (i < options.shapes.size() &&
           options.shapes[i].text != tuned.shape.text) {
      ++i;
    }
    return i;
  };
  std::stable_sort(results->begin(), results->end(),
                   [&place](const TunedShape& a, const TunedShape& b) {
                     return place(a) < place(b);
                   });
}

int Measure(const TuneOptions& options, const TuneCommand& command,
            double start, TuneMachine* machine) {
  // With --json, stdout belongs to the JSON.
  std::FILE* const people = command.json ? stderr : stdout;
  PrintBanner(people, options, *machine);
  CatchInterrupts();
  machine->peaks =
      MeasurePeaks(machine->probes, machine->machine, options.threads);
  Progress progress(
      people,
      command.no_progress ? Progress::Style::kNone : Progress::StyleFor(people),
      options.shapes.size(), start);
  std::vector<TunedShape> results;
  std::string path, why;
  bool told = false;
  TuneEvents events;
  events.begin = [&](size_t index, const NamedProblem& shape, double left) {
    progress.Begin(index, shape.name, MonotonicSeconds(), left);
  };
  events.tick = [&] {
    if (Interrupted() && !told) {
      told = true;
      progress.Note("finishing this shape; Ctrl-C again to stop at once");
    }
    progress.Tick(MonotonicSeconds());
  };
  events.end = [&](size_t, const TunedShape& tuned, std::string* reason) {
    progress.End(ShapeLine(tuned));
    const Record record = MakeRecord(*machine, command.command_line, results);
    return record.entries.empty() ||
           WriteRecordFile(command.output, record, &path, reason);
  };
  events.stop = Interrupted;
  if (!TuneShapes(options, start, machine, events, &results, &why)) {
    return FailCommand("tune", why);
  }
  SortAsAsked(options, &results);
  // Ended by the signal only if it left something undone.
  const bool interrupted =
      Interrupted() && results.size() < options.shapes.size();
  if (path.empty() && !interrupted) {
    return FailCommand(
        "tune", fmt::format("no shape could be tuned ({}); nothing was written",
                            results.empty() ? "there is none"
                                            : results.front().skipped));
  }
  fmt::print(people, "\n{}", ReportTable(*machine, results));
  if (!path.empty()) fmt::print(people, "{}", HowToUse(path, command.output));
  fmt::print(people, "took {} of {}\n",
             DurationText(MonotonicSeconds() - start),
             DurationText(options.budget_seconds));
  if (command.json) {
    fmt::print("{}\n",
               ReportJson(MakeRecord(*machine, command.command_line, results),
                          path, results, interrupted));
  }
  return interrupted ? kInterrupted : kDone;
}

int RunTune(const TuneCommand& command) {
  const double start = MonotonicSeconds();
  TuneMachine machine = OpenMachine();
  std::string why;
  const TuneOptions options = OptionsOf(command, machine.machine);
  if (command.dry_run) {
    machine.peaks =
        MeasurePeaks(machine.probes, machine.machine, options.threads);
    DryRun(options, command, machine);
    return kDone;
  }
  if (!CheckOutput(command, MachineKey(machine.machine), &why)) {
    return FailCommand("tune", why);
  }
  return Measure(options, command, start, &machine);
}

}  // namespace

void AddTuneCommand(CLI::App* app, const std::string& command_line,
                    Action* action) {
  const auto command = std::make_shared<TuneCommand>();
  command->command_line = command_line;
  CLI::App* tune = app->add_subcommand(
      "tune",
      "Measure which tiles are fastest on this machine and write them down. A "
      "tile replaces the model's choice only where fresh rounds show a gain at "
      "95 % confidence; no tile changes a result. Ctrl-C finishes the shape in "
      "hand and keeps what was found");
  tune->add_option("--budget", command->budget,
                   "Time for everything, e.g. 120s, 2m or 1h")
      ->check(Check(CheckDuration))
      ->type_name("TIME")
      ->capture_default_str();
  tune->add_option("--shapes", command->shapes,
                   "Shapes, separated by commas: names that `heed info` "
                   "lists, problem strings, core (the eleven) or all")
      ->check(Check(CheckShapes))
      ->type_name("LIST")
      ->capture_default_str();
  tune->add_option("--threads", command->threads,
                   "Tune for this many threads (default: what affinity and "
                   "quota allow)")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  tune->add_option("--output", command->output,
                   "Folder for <machine key>/record.json; what the record "
                   "there says of other shapes is kept")
      ->type_name("DIR")
      ->capture_default_str();
  tune->add_option("--effort", command->effort,
                   "Most tiles per shape and rounds of confirmation: quick 8 "
                   "and 40, normal 24 and 80, thorough 48 and 120, as far as "
                   "the budget allows")
      ->check(CLI::IsMember({"quick", "normal", "thorough"}))
      ->type_name("")
      ->capture_default_str();
  tune->add_option("--seed", command->seed,
                   "Seed of the data and of the order of the samples")
      ->type_name("N")
      ->capture_default_str();
  tune->add_option("--min-gain", command->min_gain,
                   "Adopt a tile only if it surely gains more than this")
      ->check(Check(CheckPercent))
      ->type_name("PERCENT")
      ->capture_default_str();
  tune->add_flag("--dry-run", command->dry_run,
                 "Print what would be measured and written, and stop");
  tune->add_flag("--json", command->json,
                 "Print JSON on stdout, everything else on stderr");
  tune->add_flag("--no-progress", command->no_progress,
                 "No progress bar and no line per shape");
  tune->callback(
      [command, action] { *action = [command] { return RunTune(*command); }; });
}

}  // namespace heed
