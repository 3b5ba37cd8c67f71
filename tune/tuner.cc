#include "tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "runtime/problem.h"
#include "runtime/targets.h"
#include "tune/attention_work.h"
#include "tune/journal_lines.h"
#include "tune/schedule.h"
#include "tune/shape_tuner.h"

namespace heed {
namespace {

// A confirmation that would take longer than this asks for fewer rounds, so
// that one large shape does not starve ten small ones. If time is left it runs
// them all the same.
constexpr double kLongConfirmSeconds = 8;
constexpr double kFewRounds = 20;
// Guesses of microseconds are far off, and planning and checking 24 candidates
// takes time too; who is done early gives it back.
constexpr double kMinWantedSeconds = 3;
// A further turn of less is not worth its tensors.
constexpr double kLeastSeconds = 0.5, kLeastPart = 0.01;
// Kept free of samples for writing and for the last round to run over.
constexpr double kReservePart = 0.02;
constexpr int kMostNoiseRounds = 500;

double GuessedSeconds(const heed_problem& problem, const Peaks& peaks) {
  return std::max(AttentionFlops(problem) / AttainableFlops(peaks),
                  CompulsoryBytes(problem) / (peaks.read_gbs_all * 1e9));
}

// Samples per candidate of the whole search: the first heat, and the later ones
// on a third, a ninth ... of the candidates.
double SearchSamples(const Effort& effort) {
  return 2.2 * static_cast<double>(effort.candidates) *
         static_cast<double>(effort.search_rounds);
}

// The cheapest first: what they leave over goes to the others, and an
// interrupted run has most of its shapes behind it.
std::vector<NamedProblem> CheapestFirst(const TuneOptions& options,
                                        const Peaks& peaks) {
  std::vector<NamedProblem> shapes = options.shapes;
  const auto wanted = [&](const NamedProblem& shape) {
    return WantedSeconds(shape.problem, options.effort, peaks);
  };
  std::stable_sort(shapes.begin(), shapes.end(),
                   [&](const NamedProblem& a, const NamedProblem& b) {
                     return wanted(a) < wanted(b);
                   });
  return shapes;
}

// A shape of the same class that is tuned already, or null.
const NamedProblem* SameClass(const NamedProblem& shape, int threads,
                              const std::vector<TunedShape>& results) {
  const ShapeClass wanted = ClassOf(shape.problem, threads);
  for (const TunedShape& tuned : results) {
    if (tuned.skipped.empty() && tuned.entry.shape_class == wanted) {
      return &tuned.shape;
    }
  }
  return nullptr;
}

// The peak is probed beside each shape and the best of the run counts, so a
// disturbed moment at the start cannot flatter anything.
void ProbePeak(const TuneOptions& options, TuneMachine* machine,
               std::vector<TunedShape>* results) {
  const double peak = FmaGflops(machine->probes, options.threads, 0.05);
  machine->peaks.fma_gflops_all = std::max(machine->peaks.fma_gflops_all, peak);
  if (options.threads == 1) {
    machine->peaks.fma_gflops_1t = machine->peaks.fma_gflops_all;
  }
  for (TunedShape& tuned : *results) {
    if (!tuned.skipped.empty()) continue;
    tuned.entry.pct_peak = 100 * AttentionFlops(tuned.shape.problem) /
                           (tuned.entry.tuned_us * 1e-6) /
                           (machine->peaks.fma_gflops_all * 1e9);
  }
}

// The shapes of one run, to the schedule.
class ShapesRun {
 public:
  ShapesRun(const TuneOptions& options, Journal* journal, TuneMachine* machine,
            const TuneEvents& events, std::vector<TunedShape>* results)
      : options_(options),
        journal_(journal),
        machine_(machine),
        events_(events),
        results_(results),
        canary_(machine->probes),
        shapes_(CheapestFirst(options, machine->peaks)),
        tuners_(shapes_.size()) {}

  bool Run(double end, std::string* why) {
    end_ = end;
    std::vector<ScheduledClass> classes;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      classes.push_back(
          {WantedSeconds(shapes_[i].problem, options_.effort, machine_->peaks),
           [this, i](double seconds) { return Turn(i, seconds); },
           [this, i](double seconds) { return More(i, seconds); },
           [this, i] { return tuners_[i]->MoreWants(); }});
      wanted_ += classes.back().wants;
    }
    Schedule schedule;
    schedule.now = MonotonicSeconds;
    schedule.stop = events_.stop;
    schedule.end = end;
    schedule.least =
        std::max(kLeastSeconds, kLeastPart * options_.budget_seconds);
    if (RunSchedule(classes, schedule) && events_.all_done) events_.all_done();
    *why = why_;
    return !failed_;
  }

 private:
  Outcome Turn(size_t i, double seconds) {
    const NamedProblem& shape = shapes_[i];
    Begin(i);
    if (const NamedProblem* same =
            SameClass(shape, options_.threads, *results_)) {
      TunedShape skipped;
      skipped.shape = shape;
      skipped.skipped = "of the class of " + same->name;
      Keep(i, skipped);
      return Say(i) ? Outcome::kDecided : Outcome::kFailed;
    }
    // Each class has its own stream, so that a resumed run draws what the whole
    // run would have drawn.
    std::seed_seq seeds{options_.seed,
                        static_cast<uint64_t>(ShapeClassHash()(
                            ClassOf(shape.problem, options_.threads)))};
    std::mt19937_64 random(seeds);
    tuners_[i] = std::make_unique<ShapeTuner>(options_, machine_, events_,
                                              shape, options_.first_class + i,
                                              journal_, &random, &canary_);
    if (!Write(i, tuners_[i]->Tune(seconds))) return Outcome::kFailed;
    return tuners_[i]->ShortOfTime() ? Outcome::kNoTime
           : tuners_[i]->Undecided() ? Outcome::kUndecided
                                     : Outcome::kDecided;
  }

  Outcome More(size_t i, double seconds) {
    Begin(i);
    if (!Write(i, tuners_[i]->More(seconds))) return Outcome::kFailed;
    return tuners_[i]->ShortOfTime() ? Outcome::kUndecided : Outcome::kDecided;
  }

  void Begin(size_t i) {
    if (!events_.begin) return;
    const double left = end_ - MonotonicSeconds();
    events_.begin(i, shapes_[i], std::min(left, wanted_));
    // Of further turns nobody knows how many there will be.
    wanted_ = i + 1 == shapes_.size()
                  ? left
                  : wanted_ - WantedSeconds(shapes_[i].problem, options_.effort,
                                            machine_->peaks);
  }

  bool Write(size_t i, const TunedShape& tuned) {
    Keep(i, tuned);
    ProbePeak(options_, machine_, results_);
    const TunedShape& kept = (*results_)[i];
    if (journal_ != nullptr) {
      const size_t number = options_.first_class + i;
      journal_->Write(kept.skipped.empty()
                          ? EntryLine(number, kept.entry)
                          : SkippedLine(number, kept.shape.text, kept.skipped));
      journal_->Flush();
    }
    return Say(i);
  }

  void Keep(size_t i, const TunedShape& tuned) {
    if (i == results_->size()) results_->emplace_back();
    (*results_)[i] = tuned;
  }

  // False if the run is over: what was found could not be published.
  bool Say(size_t i) {
    failed_ = events_.end && !events_.end(i, (*results_)[i], &why_);
    return !failed_;
  }

  const TuneOptions& options_;
  Journal* journal_;
  TuneMachine* machine_;
  const TuneEvents& events_;
  std::vector<TunedShape>* results_;
  Canary canary_;
  const std::vector<NamedProblem> shapes_;
  std::vector<std::unique_ptr<ShapeTuner>> tuners_;
  double end_ = 0, wanted_ = 0;
  bool failed_ = false;
  std::string why_;
};

}  // namespace

Kernels KernelsFor(const TuneMachine& machine, const heed_problem& problem) {
  return GetKernels(machine.target, KernelDType(problem.dtype));
}

TuneMachine OpenMachine() {
  TuneMachine machine;
  machine.machine = ThisMachine();
  machine.target = RunnableTargets().front();
  machine.probes = GetProbes(machine.target);
  return machine;
}

double WantedSeconds(const heed_problem& problem, const Effort& effort,
                     const Peaks& peaks) {
  if (effort.looks.empty()) return 0;
  const double call = GuessedSeconds(problem, peaks);
  const double sample = std::max(call, kMinSampleSeconds);
  const double slice_sample =
      std::clamp(call, kMinSampleSeconds, kSliceSeconds);
  const double search = slice_sample * SearchSamples(effort);
  const double round = sample * (kMaxFinalists + 1);
  const double all_rounds = round * static_cast<double>(effort.looks.back());
  const double confirm =
      std::min(all_rounds, std::max(kLongConfirmSeconds, kFewRounds * round));
  return std::max({confirm + search, search / kSearchPart, kMinWantedSeconds});
}

bool MeasureMachineNoise(const TuneOptions& options, double seconds,
                         Journal* journal, TuneMachine* machine,
                         std::string* why) {
  const double end = MonotonicSeconds() + seconds;
  const NamedProblem shape = CheapestFirst(options, machine->peaks).front();
  const Candidate usual = DefaultCandidate(
      shape.problem, EqualTargets(KernelDType(shape.problem.dtype)),
      machine->machine, options.threads);
  const heed_problem slice =
      SliceOf(shape.problem, AttainableFlops(machine->peaks), kSliceSeconds,
              EnoughRows(usual, options.threads));
  const auto tensors = AttentionTensors::Create(slice, options.seed, why);
  if (tensors == nullptr) return false;
  Canary canary(machine->probes);
  AttentionWork work(slice, tensors.get(), {options.threads, {}}, &canary);
  if (!work.Add(usual, why) || !work.AddAgain(why)) return false;
  const Pace pace = FindPace(&work, kMinSampleSeconds);
  Rounds::Observer observe;
  if (journal != nullptr) {
    observe = [journal](const Round& round) {
      journal->Write(RoundLine(0, "noise", {0, 1}, round));
    };
  }
  machine->noise = MeasureNoise(&work, pace.iterations, end, kMostNoiseRounds,
                                &machine->gauge, observe);
  if (journal != nullptr) journal->Write(NoiseLine(machine->noise));
  return true;
}

bool TuneShapes(const TuneOptions& options, double start, Journal* journal,
                TuneMachine* machine, const TuneEvents& events,
                std::vector<TunedShape>* results, std::string* why) {
  results->clear();
  return ShapesRun(options, journal, machine, events, results)
      .Run(start + options.budget_seconds * (1 - kReservePart), why);
}

}  // namespace heed
