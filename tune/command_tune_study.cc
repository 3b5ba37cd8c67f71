// `heed tune study`, for those who work on the tuner: how much it leaves on the
// table, measured against an exhaustive sweep, and whether it picks the same
// thing twice.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/problem.h"
#include "runtime/tile_model.h"
#include "tune/attention_work.h"
#include "tune/budget.h"
#include "tune/commands.h"
#include "tune/guard_shapes.h"
#include "tune/interrupt.h"
#include "tune/measure_lock.h"
#include "tune/merge_records.h"
#include "tune/shape_tuner.h"
#include "tune/shapes_file.h"
#include "tune/staged_file.h"

namespace heed {
namespace {

// Twelve classes: prefill and decode, three dtypes, causal or not, groups.
constexpr char kTwelve[] =
    "gpt2_short,gpt2_prefill,vit,sd_cross,odd,gemma,decode,decode_batch,"
    "llama8b_prefill_512,gpt2_prefill_f16,decode_f16,decode_batch_bf16";
// Candidates of the sweep: all there are.
constexpr size_t kAll = 1000;

struct StudyOptions {
  std::string shapes = kTwelve, effort = "normal", out = "results/studies";
  std::string budget = "20s";  // of one class and seed
  int rounds = 60, seeds = 3, threads = 0;
};

struct StudyRow {
  std::string name, chosen, oracle;
  size_t candidates = 0;
  Interval regret{0, 0, 0};      // ln(chosen / oracle), fresh rounds
  Interval of_default{0, 0, 0};  // ln(default / oracle)
  int agree = 0, picks = 0;      // of the seeds' picks with the first one
  double worst_apart = 0;        // |ln| between them, fresh rounds
  std::vector<double> held_out;  // ln(default / chosen) on unseen lengths
};

Interval Paired(AttentionWork* work, int rounds) {
  GuardOptions options;
  options.rounds = rounds;
  options.iterations = FindPace(work, kMinSampleSeconds).iterations;
  options.deadline = 1e300;
  return CheckGuard(work, options, {}).log_gain;
}

class Study {
 public:
  Study(const StudyOptions& options, TuneMachine machine)
      : options_(options), machine_(std::move(machine)) {
    for (const Effort& effort : Efforts()) {
      if (options.effort == effort.name) tune_.effort = effort;
    }
    tune_.threads =
        options.threads > 0 ? options.threads : machine_.machine.threads;
    std::string why;
    ReadShapes(options.shapes, &tune_.shapes, &why);
    ParseDuration(options.budget, &seconds_, &why);
    machine_.peaks =
        MeasurePeaks(machine_.probes, machine_.machine, tune_.threads);
    canary_ = std::make_unique<Canary>(machine_.probes);
  }

  int Run() {
    std::string why;
    if (!MeasureMachineNoise(tune_, 5, nullptr, &machine_, &why)) {
      return FailCommand("tune study", why);
    }
    fmt::print("A/A p95 {:.1f} %\n", 100 * machine_.noise.p95);
    for (const NamedProblem& shape : tune_.shapes) {
      if (Interrupted()) break;
      StudyRow row;
      row.name = shape.name;
      if (!One(shape, &row, &why)) {
        fmt::print("{}: skipped: {}\n", shape.name, why);
        continue;
      }
      rows_.push_back(row);
      fmt::print(
          "{:<22} regret {:+.2f} % [{:+.2f}, {:+.2f}]  default {:+.2f} "
          "%  picks {}/{}  {} -> {}\n",
          row.name, PercentMore(row.regret.median), PercentMore(row.regret.low),
          PercentMore(row.regret.high), PercentMore(row.of_default.median),
          row.agree, row.picks, row.chosen, row.oracle);
      std::fflush(stdout);
    }
    return Write();
  }

 private:
  // The pick of the tuner with this seed.
  bool Pick(const NamedProblem& shape, uint64_t seed, Candidate* pick,
            std::string* why) {
    TuneOptions options = tune_;
    options.seed = seed;
    std::mt19937_64 random(seed);
    const TuneEvents events;
    ShapeTuner tuner(options, &machine_, events, shape, 0, nullptr, &random,
                     canary_.get());
    const TunedShape tuned = tuner.Tune(seconds_);
    *why = tuned.skipped;
    *pick = {tuned.entry.target, tuned.entry.config};
    return tuned.skipped.empty();
  }

  // All candidates in random order, round after round.
  bool Sweep(const heed_problem& problem, AttentionTensors* tensors,
             const std::vector<Candidate>& all, size_t* best,
             std::string* why) {
    AttentionWork work(problem, tensors, {tune_.threads, {}}, canary_.get());
    for (const Candidate& candidate : all) {
      if (!work.Add(candidate, why)) return false;
    }
    RoundsOptions limits;
    limits.iterations = FindPace(&work, kMinSampleSeconds).iterations;
    limits.deadline = 1e300;
    Rounds rounds(&work, limits, &machine_.gauge, {});
    std::vector<size_t> order(all.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::mt19937_64 random(7);
    for (int i = 0; i < options_.rounds && !Interrupted(); ++i) {
      std::shuffle(order.begin(), order.end(), random);
      if (!rounds.Run(order)) break;
    }
    *best = 0;
    for (size_t i = 1; i < all.size(); ++i) {
      if (Median(rounds.LogGains(i)) > Median(rounds.LogGains(*best)))
        *best = i;
    }
    return true;
  }

  // ln(a / b), of fresh rounds.
  bool Compare(const heed_problem& problem, AttentionTensors* tensors,
               const Candidate& a, const Candidate& b, Interval* apart,
               std::string* why) {
    if (a == b) {
      *apart = {0, 0, 0};
      return true;
    }
    AttentionWork work(problem, tensors, {tune_.threads, {}}, canary_.get());
    if (!work.Add(a, why) || !work.Add(b, why)) return false;
    *apart = Paired(&work, 2 * options_.rounds);
    return true;
  }

  bool One(const NamedProblem& shape, StudyRow* row, std::string* why) {
    const std::vector<Kernels> targets =
        EqualTargets(KernelDType(shape.problem.dtype));
    std::vector<Candidate> all = Candidates(
        shape.problem, targets, machine_.machine, tune_.threads, kAll);
    std::vector<Candidate> picks(static_cast<size_t>(options_.seeds));
    for (size_t i = 0; i < picks.size(); ++i) {
      if (!Pick(shape, i + 1, &picks[i], why)) return false;
    }
    const heed_problem slice =
        SliceOf(shape.problem, AttainableFlops(machine_.peaks), kSliceSeconds,
                EnoughRows(all[0], tune_.threads));
    const auto tensors = AttentionTensors::Create(slice, 11, why);
    if (tensors == nullptr) return false;
    size_t best = 0;
    if (!Sweep(slice, tensors.get(), all, &best, why)) return false;
    row->candidates = all.size();
    row->chosen = ToString(picks[0]);
    row->oracle = ToString(all[best]);
    if (!Compare(slice, tensors.get(), picks[0], all[best], &row->regret,
                 why) ||
        !Compare(slice, tensors.get(), all[0], all[best], &row->of_default,
                 why)) {
      return false;
    }
    for (size_t i = 1; i < picks.size(); ++i) {
      Interval apart;
      if (!Compare(slice, tensors.get(), picks[0], picks[i], &apart, why)) {
        return false;
      }
      row->agree += std::fabs(apart.median) <= std::log(1.015);
      ++row->picks;
      row->worst_apart = std::max(row->worst_apart, std::fabs(apart.median));
    }
    return HeldOut(shape, picks[0], targets, row, why);
  }

  // Three lengths of the class that no race has seen.
  bool HeldOut(const NamedProblem& shape, const Candidate& pick,
               const std::vector<Kernels>& targets, StudyRow* row,
               std::string* why) {
    std::vector<heed_problem> unseen;
    for (const heed_problem& guard :
         GuardShapes(shape.problem, tune_.threads)) {
      heed_problem between = shape.problem;
      between.len_q = (shape.problem.len_q + 2 * guard.len_q) / 3;
      between.len_k = (shape.problem.len_k + 2 * guard.len_k) / 3;
      unseen.push_back(between);
    }
    for (const heed_problem& whole : unseen) {
      const Candidate usual =
          DefaultCandidate(whole, targets, machine_.machine, tune_.threads);
      Candidate chosen = pick;
      chosen.config.tile = RoundTile(pick.config.tile, whole, targets.front());
      const heed_problem slice =
          SliceOf(whole, AttainableFlops(machine_.peaks), kSliceSeconds,
                  EnoughRows(usual, tune_.threads));
      const auto tensors = AttentionTensors::Create(slice, 13, why);
      Interval apart;
      if (tensors == nullptr ||
          !Compare(slice, tensors.get(), usual, chosen, &apart, why)) {
        return false;
      }
      row->held_out.push_back(apart.median);
    }
    return true;
  }

  std::string Csv() const {
    std::string text =
        "shape,candidates,chosen,oracle,regret_pct,regret_low_pct,"
        "regret_high_pct,default_pct,agree,picks,worst_apart_pct,"
        "held_out_gain_pct\n";
    for (const StudyRow& row : rows_) {
      std::string held_out;
      for (const double gain : row.held_out) {
        held_out += fmt::format("{}{:.3f}", held_out.empty() ? "" : " ",
                                PercentMore(gain));
      }
      text += fmt::format(
          "{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{},{},{:.3f},{}\n", row.name,
          row.candidates, row.chosen, row.oracle,
          PercentMore(row.regret.median), PercentMore(row.regret.low),
          PercentMore(row.regret.high), PercentMore(row.of_default.median),
          row.agree, row.picks, PercentMore(row.worst_apart), held_out);
    }
    return text;
  }

  std::string Summary(const std::string& id) const {
    std::vector<double> regret, of_default, held_out;
    int agree = 0, picks = 0;
    for (const StudyRow& row : rows_) {
      regret.push_back(PercentMore(row.regret.median));
      of_default.push_back(PercentMore(row.of_default.median));
      for (const double gain : row.held_out)
        held_out.push_back(PercentMore(gain));
      agree += row.agree;
      picks += row.picks;
    }
    return fmt::format(
        "# Regret against an interleaved exhaustive sweep\n\n{} on {}, {} "
        "threads, effort {}, {} per class and seed, {} rounds of the sweep; "
        "A/A p95 {:.1f} %, quiet {:.0f} %. Made by `heed tune study`.\n\n| | "
        "median | p95 |\n|---|---|---|\n| regret of the pick | {:.2f} % | "
        "{:.2f} "
        "% |\n| regret of the default | {:.2f} % | {:.2f} % |\n\nOther seeds "
        "picked the same within 1.5 % in {} of {}. On {} lengths that no race "
        "saw, the pick gained a median of {:+.2f} % over the default, {:+.2f} "
        "% "
        "at the worst. Each class: regret.csv.\n",
        id, MachineKey(machine_.machine), tune_.threads, options_.effort,
        options_.budget, options_.rounds, 100 * machine_.noise.p95,
        100 * machine_.gauge.QuietShare(), Median(regret),
        Quantile(regret, 0.95), Median(of_default), Quantile(of_default, 0.95),
        agree, picks, held_out.size(), Median(held_out),
        Quantile(held_out, 0.0));
  }

  int Write() {
    if (rows_.empty()) return FailCommand("tune study", "nothing was measured");
    const std::string id = "oracle-" + UtcDay();
    const std::string folder = options_.out + "/" + id;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    const std::string csv = Csv(), summary = Summary(id);
    StagedFile csv_file, summary_file;
    std::string why;
    if (!csv_file.Open(folder + "/regret.csv", &why) ||
        !csv_file.Append(csv.data(), csv.size(), &why) ||
        !summary_file.Open(folder + "/summary.md", &why) ||
        !summary_file.Append(summary.data(), summary.size(), &why) ||
        !StagedFile::CommitAll({&csv_file, &summary_file}, &why)) {
      return FailCommand("tune study", why, kCannotWrite);
    }
    fmt::print("\n{}\nwrote {}\n", summary, folder);
    return Interrupted() ? kInterrupted : kDone;
  }

  static std::string UtcDay() {
    const std::string now = UtcNow();  // 2026-01-02T...
    return now.substr(0, 4) + now.substr(5, 2) + now.substr(8, 2);
  }

  const StudyOptions options_;
  TuneOptions tune_;
  TuneMachine machine_;
  double seconds_ = 20;
  std::unique_ptr<Canary> canary_;
  std::vector<StudyRow> rows_;
};

int RunStudy(const StudyOptions& options) {
  MeasureLock lock;
  const int taken = TakeLock("tune study", false, &lock);
  if (taken != kDone) return taken;
  CatchInterrupts();
  return Study(options, OpenMachine()).Run();
}

}  // namespace

void AddTuneStudyCommand(CLI::App* tune, Action* action) {
  const auto options = std::make_shared<StudyOptions>();
  CLI::App* study = tune->add_subcommand(
      "study",
      "Measure what the tuner's picks lose against an exhaustive, interleaved "
      "sweep of all candidates; for a quiet machine");
  study->group("");  // not in --help
  study->add_option("--shapes", options->shapes, "As for run");
  study->add_option("--effort", options->effort, "As for run")
      ->check(CLI::IsMember({"quick", "normal", "thorough"}));
  study->add_option("--budget", options->budget, "Of one class and seed");
  study->add_option("--rounds", options->rounds, "Of the sweep")
      ->check(CLI::Range(6, 100000));
  study->add_option("--seeds", options->seeds, "Picks of each class")
      ->check(CLI::Range(1, 100));
  study->add_option("--threads", options->threads, "As for run")
      ->check(CLI::Range(1, 1 << 16));
  study->add_option("--out", options->out, "Folder");
  study->callback([options, action] {
    *action = [options] { return RunStudy(*options); };
  });
}

}  // namespace heed
