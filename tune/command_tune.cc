// `heed tune` and `heed tune run`: options, and what they mean.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tune/budget.h"
#include "tune/commands.h"
#include "tune/shapes_file.h"
#include "tune/tune_plan.h"
#include "tune/tune_session.h"

namespace heed {
namespace {

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
  return ReadShapes(text, &shapes, &why) ? "" : why;
}

std::string CheckPercent(const std::string& text) {
  double fraction = 0;
  if (ParsePercent(text, &fraction)) return "";
  return "'" + text + "' is no percentage (expected e.g. 1%, at most 100%)";
}

void AddRunOptions(CLI::App* app, TuneCommand* command) {
  app->add_option("--effort", command->effort,
                  "estimate (the model alone), quick (8 candidates per shape), "
                  "normal (24) or thorough (48), as far as the budget allows")
      ->check(CLI::IsMember({"estimate", "quick", "normal", "thorough"}))
      ->type_name("")
      ->capture_default_str();
  app->add_option("--budget", command->budget,
                  "Time for everything, e.g. 120s, 2m or 1h (default: quick "
                  "50s, normal 120s, thorough 30m)")
      ->check(Check(CheckDuration))
      ->type_name("TIME");
  app->add_option("--shapes", command->shapes,
                  "Shapes, separated by commas: names that `heed info` "
                  "lists, problem strings, core (the eleven) or all; or the "
                  "path of a JSON file with an array of these")
      ->check(Check(CheckShapes))
      ->type_name("LIST")
      ->capture_default_str();
  app->add_flag("--stale", command->stale,
                "In place of --shapes: what the records for this machine hold "
                "and the library cannot use, e.g. after an upgrade, and what "
                "is quarantined");
  app->add_option("--threads", command->threads,
                  "Tune for this many threads (default: what affinity and "
                  "quota allow)")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  app->add_option("--output", command->output,
                  "Folder for <machine key>/record.json; what the record "
                  "there says of other shapes is kept")
      ->type_name("DIR")
      ->capture_default_str();
  app->add_option("--min-gain", command->min_gain,
                  "Adopt a candidate only if it surely gains more than this")
      ->check(Check(CheckPercent))
      ->type_name("PERCENT")
      ->capture_default_str();
  app->add_option("--seed", command->seed,
                  "Seed of the data and of the order of the samples")
      ->check(CLI::Range(uint64_t{0}, uint64_t{INT64_MAX}))
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--resume", command->resume,
                "Go on with the last run of these options that was killed or "
                "interrupted");
  app->add_flag("--isolate", command->isolate,
                "Try each candidate in a process of its own before it is "
                "timed: one that crashes, hangs or computes something else is "
                "left out");
  app->add_flag("--force", command->force,
                "Replace older entries even where they promise more");
  app->add_flag("--no-wait", command->no_wait,
                "Exit with code 75 if another tuner is measuring, instead of "
                "waiting for it");
  app->add_flag("--dry-run", command->dry_run,
                "Print what would be measured and written, and stop");
  app->add_flag("--json", command->json,
                "Print JSON on stdout, everything else on stderr");
  app->add_flag("--no-progress", command->no_progress,
                "No progress bar and no line per shape");
}

}  // namespace

void AddTuneCommand(CLI::App* app, Action* action) {
  const auto command = std::make_shared<TuneCommand>();
  CLI::App* tune = app->add_subcommand(
      "tune",
      "Measure which configuration is fastest on this machine and write it "
      "down. It replaces the model's choice only where fresh rounds show a "
      "gain at 95 % confidence; none changes a result. Ctrl-C finishes the "
      "shape in hand and keeps what was found, a second one stops at once. "
      "Without a subcommand: run");
  tune->require_subcommand(0, 1);
  AddRunOptions(tune, command.get());
  CLI::App* run = tune->add_subcommand("run", "Measure and publish");
  AddRunOptions(run, command.get());
  const auto act = [command, action, tune, run] {
    for (const char* other : {"--shapes", "--resume"}) {
      // Before `run` or after it. What is left of a stale run is what is stale.
      if (command->stale && tune->count(other) + run->count(other) != 0) {
        throw CLI::ValidationError("--stale excludes " + std::string(other));
      }
    }
    *action = [command] { return RunTune(*command); };
  };
  run->callback(act);
  tune->callback([tune, act] {
    if (tune->get_subcommands().empty()) act();
  });
  AddTuneVerifyCommand(tune, action);
  AddTuneFilesCommands(tune, action);
  AddTuneInstallCommands(tune, action);
  AddTuneReportCommand(tune, action);
  AddTuneStudyCommand(tune, action);
  AddTuneTryCommand(tune, action);
}

}  // namespace heed
