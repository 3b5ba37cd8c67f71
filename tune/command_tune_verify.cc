// `heed tune verify`: measures again whether what was adopted is still no worse
// than the default.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/problem.h"
#include "tune/attention_work.h"
#include "tune/budget.h"
#include "tune/commands.h"
#include "tune/interrupt.h"
#include "tune/measure_lock.h"
#include "tune/merge_records.h"
#include "tune/publish.h"
#include "tune/record_option.h"
#include "tune/report.h"
#include "tune/shape_tuner.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRounds = 40;

struct VerifyOptions {
  std::string record, budget = "60s";
  uint64_t seed = 2;
  bool json = false, no_wait = false;
};

struct Verdict {
  std::string skipped;  // why there is none
  Gain gain;
  bool worse = false;
};

// Fresh rounds of the default and the entry's configuration, with new data.
Verdict VerifyEntry(const RecordEntry& entry, uint64_t seed, double end,
                    Canary* canary, CanaryGauge* gauge) {
  Verdict verdict;
  heed_problem problem;
  if (ParseProblem(entry.problem, &problem) != HEED_OK ||
      ValidateProblem(problem) != HEED_OK) {
    verdict.skipped = "'" + entry.problem + "' is no problem string";
    return verdict;
  }
  const auto tensors =
      AttentionTensors::Create(problem, seed, &verdict.skipped);
  if (tensors == nullptr) return verdict;
  AttentionWork work(problem, tensors.get(), {entry.shape_class.threads, {}},
                     canary);
  if (!work.Add({entry.default_target, entry.default_config},
                &verdict.skipped) ||
      !work.Add({entry.target, entry.config}, &verdict.skipped)) {
    return verdict;
  }
  ConfirmOptions options;
  options.looks = {kRounds};
  options.iterations = FindPace(&work, kMinSampleSeconds).iterations;
  options.deadline = end;
  RaceContext context;
  context.gauge = gauge;
  const Confirmation result = Confirm(&work, {1}, options, context);
  if (static_cast<size_t>(result.rounds) < RoundsNeeded(options.alpha)) {
    verdict.skipped = "too few rounds within the budget";
    return verdict;
  }
  const Interval& gain = result.log_gain;
  verdict.gain = {std::exp(gain.median), std::exp(gain.low),
                  std::exp(gain.high)};
  verdict.worse = gain.high < 0;
  return verdict;
}

class Verification {
 public:
  Verification(const VerifyOptions& options, std::string path, Record record)
      : options_(options), path_(std::move(path)), record_(std::move(record)) {}

  int Run() {
    MeasureLock lock;
    const int taken = TakeLock("tune verify", !options_.no_wait, &lock);
    if (taken != kDone) return taken;
    Measure();
    if (worse_ != 0) {
      std::string reason;
      if (!ReplaceRecordFile(path_, record_, &reason,
                             TellNoLocks("tune verify"))) {
        return FailCommand("tune verify", reason, kCannotWrite);
      }
    }
    if (options_.json) {
      fmt::print("{}\n", Json{{"record", path_},
                              {"checked", checked_},
                              {"worse", worse_},
                              {"skipped", skipped_},
                              {"entries", rows_}}
                             .dump(2));
    } else {
      fmt::print("{} checked, {} worse than the default{}, {} skipped\n",
                 checked_, worse_, worse_ == 0 ? "" : " and quarantined",
                 skipped_);
    }
    if (Interrupted()) return kInterrupted;
    return worse_ == 0 ? kDone : kFailed;
  }

 private:
  void Measure() {
    std::string why;
    double budget = 60;
    ParseDuration(options_.budget, &budget, &why);
    std::vector<RecordEntry*> adopted;
    for (RecordEntry& entry : record_.entries) {
      if (entry.decision == Decision::kAdopted) adopted.push_back(&entry);
    }
    const TuneMachine machine = OpenMachine();
    Canary canary(machine.probes);
    CanaryGauge gauge;
    const double end = MonotonicSeconds() + budget;
    for (size_t i = 0; i < adopted.size() && !Interrupted(); ++i) {
      const double now = MonotonicSeconds();
      const double share =
          (end - now) / static_cast<double>(adopted.size() - i);
      Tell(adopted[i], VerifyEntry(*adopted[i], options_.seed, now + share,
                                   &canary, &gauge));
    }
  }

  void Tell(RecordEntry* entry, const Verdict& verdict) {
    const std::string name = ToString(entry->shape_class);
    std::string said = verdict.skipped;
    if (said.empty()) {
      ++checked_;
      said = GainText(verdict.gain);
      if (verdict.worse) {
        ++worse_;
        entry->decision = Decision::kQuarantined;
        entry->reason = "verified on " + UtcNow() + ": " + said;
        said += "  worse: quarantined";
      }
    } else {
      ++skipped_;
      said = "skipped: " + said;
    }
    rows_.push_back({{"class", name},
                     {"recorded", entry->gain.median},
                     {"gain", verdict.gain.median},
                     {"gain_low", verdict.gain.low},
                     {"gain_high", verdict.gain.high},
                     {"worse", verdict.worse},
                     {"skipped", verdict.skipped}});
    if (!options_.json) {
      fmt::print("{:<48} recorded {:<24} now {}\n", name, GainText(entry->gain),
                 said);
      std::fflush(stdout);
    }
  }

  const VerifyOptions options_;
  const std::string path_;
  Record record_;
  Json rows_ = Json::array();
  size_t checked_ = 0, worse_ = 0, skipped_ = 0;
};

int Verify(const VerifyOptions& options) {
  const std::string path = FindRecordPath(options.record);
  Record record;
  const int code = ReadRecordOrFail("tune verify", path, &record);
  if (code != kDone) return code;
  if (record.machine_key != MachineKey(ThisMachine())) {
    return FailCommand("tune verify",
                       path + " was written for " + record.machine_key +
                           ", this machine is " + MachineKey(ThisMachine()) +
                           "; run: heed tune",
                       kBadData);
  }
  CatchInterrupts();
  return Verification(options, path, std::move(record)).Run();
}

}  // namespace

void AddTuneVerifyCommand(CLI::App* tune, Action* action) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* verify = tune->add_subcommand(
      "verify",
      "Measure again what was adopted against the default, 40 fresh rounds "
      "each. What is surely worse is quarantined: the library then uses the "
      "default. Exit code 1 if there was any");
  verify
      ->add_option("--record", options->record,
                   "File or folder (default: results/tuning)")
      ->type_name("PATH");
  verify->add_option("--budget", options->budget, "Time for everything")
      ->check(CLI::Validator(
          [](const std::string& text) {
            double seconds = 0;
            std::string why;
            return ParseDuration(text, &seconds, &why) ? "" : why;
          },
          "", "duration"))
      ->type_name("TIME")
      ->capture_default_str();
  verify->add_option("--seed", options->seed, "Seed of the data")
      ->type_name("N")
      ->capture_default_str();
  verify->add_flag("--json", options->json, "Print JSON");
  verify->add_flag("--no-wait", options->no_wait,
                   "Exit with code 75 if another tuner is measuring");
  verify->callback(
      [options, action] { *action = [options] { return Verify(*options); }; });
}

}  // namespace heed
