#include "tune/tune_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/record_files.h"
#include "runtime/targets.h"
#include "tune/commands.h"
#include "tune/interrupt.h"
#include "tune/measure_lock.h"
#include "tune/progress.h"
#include "tune/publish.h"
#include "tune/report.h"
#include "tune/report_data.h"
#include "tune/resume.h"
#include "tune/run_info.h"
#include "tune/shape_tuner.h"
#include "tune/staged_file.h"
#include "tune/stale_entries.h"
#include "tune/tune_plan.h"
#include "tune/weather.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

// Of the A/A run: at most this long, and this share of the budget.
constexpr double kNoiseSeconds = 5;
constexpr double kNoisePart = 0.04;
// A run that ends before this share of its budget says why.
constexpr double kOnTimePart = 0.95;

void PrintBanner(std::FILE* stream, const TuneOptions& options,
                 const TuneMachine& machine) {
  const Machine& m = machine.machine;
  fmt::print(
      stream, "heed {} on {} ({}, {} threads, caches {}+{} KB from {})\n",
      heed_version(), MachineKey(m), machine.probes.target, options.threads,
      m.l1d.bytes >> 10, m.l2.bytes >> 10, m.cache_source);
  fmt::print(stream,
             "{} shapes, effort {} (up to {} candidates each), at most "
             "{}\n",
             options.shapes.size(), options.effort.name,
             options.effort.candidates, DurationText(options.budget_seconds));
  std::fflush(stream);
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

// Everything between the first sample and the last line.
class Session {
 public:
  Session(const TuneCommand& command, TuneOptions options, TuneMachine machine)
      : command_(command),
        options_(std::move(options)),
        machine_(std::move(machine)),
        key_(MachineKey(machine_.machine)),
        folder_(command.output + "/" + key_),
        people_(command.json ? stderr : stdout) {
    // What is of no use must not stay because it promised more.
    publish_.force = command.force || command.stale;
  }

  int Run() {
    std::string why;
    const int lock = TakeLock("tune", !command_.no_wait, &lock_);
    if (lock != kDone) return lock;
    start_ = MonotonicSeconds();
    before_ = ReadDisturbance();
    if (!Open(&why)) return FailCommand("tune", why, kCannotWrite);
    PrintBanner(people_, options_, machine_);
    machine_.peaks =
        MeasurePeaks(machine_.probes, machine_.machine, options_.threads);
    if (!options_.shapes.empty() && !MeasureNoise()) {
      return kFailed;
    }
    return Tune();
  }

 private:
  // The journal, and what a run before this one had finished.
  bool Open(std::string* why) {
    Resumed resumed;
    if (command_.resume) {
      resumed = FindUnfinished(folder_, options_, key_);
      if (resumed.path.empty()) {
        fmt::print(people_, "nothing to resume; starting anew\n");
      } else {
        fmt::print(
            people_, "resuming {}: {} of {} classes are done{}\n",
            resumed.run_id, resumed.entries.size(), options_.shapes.size(),
            resumed.damaged == 0
                ? ""
                : fmt::format(", {} damaged lines left out", resumed.damaged));
      }
    }
    options_.run_id = resumed.path.empty() ? NewRunId() : resumed.run_id;
    options_.first_class = resumed.classes;
    done_ = resumed.entries;
    asked_ = options_.shapes;
    options_.shapes = NotYetDone(asked_, done_, options_.threads);
    const std::string path =
        resumed.path.empty()
            ? folder_ + "/journal-" + options_.run_id + ".jsonl"
            : resumed.path;
    journal_ = Journal::Open(path, why);
    if (journal_ == nullptr) return false;
    run_ = BeginRun(options_, ArgumentsOf(command_, options_));
    if (resumed.path.empty()) journal_->Write(RunLine(options_, key_, run_));
    journal_->Flush();
    return true;
  }

  bool MeasureNoise() {
    std::string why;
    const double seconds =
        std::min(kNoiseSeconds, kNoisePart * options_.budget_seconds);
    if (!MeasureMachineNoise(options_, seconds, journal_.get(), &machine_,
                             &why)) {
      FailCommand("tune", why);
      return false;
    }
    const int rounds = options_.effort.looks.back();
    const double alpha = AlphaOfOne(options_.effort);
    demand_ =
        std::log1p(options_.min_gain) + machine_.noise.HalfWidth(rounds, alpha);
    fmt::print(people_, "{}heed tune: {}\n", "",
               NoiseText(machine_.noise, options_.min_gain, rounds, alpha));
    std::fflush(people_);
    return true;
  }

  Record RecordSoFar() {
    UpdateRun(machine_, results_, demand_, before_, MonotonicSeconds() - start_,
              &run_);
    Record record = MakeRecord(machine_, run_, results_);
    for (const RecordEntry& entry : done_) record.entries.push_back(entry);
    return record;
  }

  bool Publish(std::string* why) {
    const Record record = RecordSoFar();
    return record.entries.empty() ||
           WriteRecordFile(command_.output, record, &path_, why, publish_);
  }

  int Tune() {
    Progress progress(people_,
                      command_.no_progress ? Progress::Style::kNone
                                           : Progress::StyleFor(people_),
                      options_.shapes.size(), start_);
    bool told = false;
    TuneEvents events;
    events.begin = [&](size_t index, const NamedProblem& shape, double left) {
      progress.Begin(index, shape.name, MonotonicSeconds(), left);
    };
    events.phase = [&](const std::string& what) { progress.Phase(what); };
    events.tick = [&] {
      if (Interrupted() && !told) {
        told = true;
        progress.Note("finishing this shape; Ctrl-C again to stop at once");
      }
      progress.Tick(MonotonicSeconds());
    };
    events.end = [&](size_t, const TunedShape& tuned, std::string* reason) {
      progress.End(ShapeLine(tuned));
      for (const std::string& rejected : tuned.rejected) {
        progress.Note("  left out: " + rejected);
      }
      return Publish(reason);
    };
    events.stop = Interrupted;
    events.all_done = [&] { all_done_ = true; };
    std::string why;
    if (!TuneShapes(options_, start_, journal_.get(), &machine_, events,
                    &results_, &why) ||
        (options_.shapes.empty() && !Publish(&why))) {
      return FailCommand("tune", why, kCannotWrite);
    }
    return Finish();
  }

  int Finish() {
    SortAsAsked(options_, &results_);
    // Ended by the signal only if it left something undone.
    const bool interrupted =
        Interrupted() && results_.size() < options_.shapes.size();
    journal_->Write(EndLine(interrupted));
    journal_->Flush();
    if (path_.empty() && !interrupted) {
      return FailCommand(
          "tune",
          fmt::format(
              "no shape could be tuned ({}); nothing was written",
              results_.empty() ? "there is none" : results_.front().skipped));
    }
    fmt::print(people_, "\n{}", ReportTable(machine_, results_));
    if (!path_.empty()) WriteSummary();
    const double took = MonotonicSeconds() - start_;
    fmt::print(people_, "took {} of {}{}\n", DurationText(took),
               DurationText(options_.budget_seconds),
               all_done_ && took < kOnTimePart * options_.budget_seconds
                   ? ": all planned rounds done"
                   : "");
    if (interrupted) {
      fmt::print(people_,
                 "the rest: heed tune run {} (with the options of this run)\n",
                 command_.stale ? "--stale" : "--resume");
    }
    if (command_.json) {
      fmt::print("{}\n",
                 ReportJson(RecordSoFar(), path_, results_, interrupted));
    }
    bool faulty = false;
    for (const TunedShape& tuned : results_) {
      faulty = faulty || !tuned.rejected.empty();
    }
    return interrupted ? kInterrupted : faulty ? kFailed : kDone;
  }

  // The journal's gist, to be kept beside the record.
  void WriteSummary() {
    const std::string summary = folder_ + "/summary.md";
    ReportData data;
    std::string why;
    StagedFile file;
    if (LoadReport(path_, {journal_->path()}, &data, &why)) {
      const std::string text = ReportMarkdown(data);
      if (!file.Open(summary, &why) ||
          !file.Append(text.data(), text.size(), &why) ||
          !StagedFile::CommitAll({&file}, &why)) {
        fmt::print(stderr, "heed tune: no summary: {}\n", why);
      }
    }
    fmt::print(people_,
               "wrote {}\nand {}\nNext: heed tune report --record {} --out "
               "report.html; heed tune install --from {}; heed tune verify\n",
               path_, summary, path_, command_.output);
  }

  const TuneCommand command_;
  TuneOptions options_;
  TuneMachine machine_;
  const std::string key_, folder_;
  std::FILE* const people_;
  MeasureLock lock_;
  PublishOptions publish_ = TellNoLocks("tune");
  std::unique_ptr<Journal> journal_;
  RecordRun run_;
  std::vector<NamedProblem> asked_;
  std::vector<RecordEntry> done_;
  std::vector<TunedShape> results_;
  std::string path_;
  Disturbance before_;
  double start_ = 0, demand_ = 0;
  bool all_done_ = false;  // more time would have changed nothing
};

// The shapes of `heed tune run --stale`, with a line for each; with none the
// run is done. kDone, or the exit code after saying why.
int TakeStaleShapes(const TuneCommand& command, const Machine& machine,
                    TuneOptions* options) {
  StaleShapes stale;
  std::string why;
  if (!FindStaleShapes(command.output, machine, options->threads, &stale,
                       &why)) {
    return FailCommand("tune", why, kBadData);
  }
  std::FILE* const people = command.json ? stderr : stdout;
  for (const std::string& line : stale.lines) fmt::print(people, "{}\n", line);
  options->shapes = stale.shapes;
  if (stale.shapes.empty() && command.json) {
    fmt::print("{}\n", ReportJson(Record{}, "", {}, /*interrupted=*/false));
  }
  return kDone;
}

}  // namespace

int RunTune(const TuneCommand& command) {
  TuneMachine machine = OpenMachine();
  TuneOptions options = OptionsOf(command, machine.machine);
  if (command.stale) {
    const int found = TakeStaleShapes(command, machine.machine, &options);
    if (found != kDone || options.shapes.empty()) return found;
  }
  const bool estimate = options.effort.looks.empty();
  if (command.dry_run || estimate) {
    if (!estimate) {
      machine.peaks =
          MeasurePeaks(machine.probes, machine.machine, options.threads);
    }
    PrintPlan(options, command, machine, !estimate);
    return kDone;
  }
  std::string why;
  const int output =
      CheckOutput(command.output, MachineKey(machine.machine), &why);
  if (output != kDone) return FailCommand("tune", why, output);
  CatchInterrupts();
  return Session(command, options, std::move(machine)).Run();
}

}  // namespace heed
