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
  const double end = start + options.budget_seconds * (1 - kReservePart);
  Canary canary(machine->probes);
  const std::vector<NamedProblem> shapes =
      CheapestFirst(options, machine->peaks);
  std::vector<double> wants;
  for (const NamedProblem& shape : shapes) {
    wants.push_back(
        WantedSeconds(shape.problem, options.effort, machine->peaks));
  }
  results->clear();
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (events.stop && events.stop()) return true;
    const double left = end - MonotonicSeconds();
    const std::vector<double> rest(
        wants.begin() + static_cast<std::ptrdiff_t>(i), wants.end());
    double sum = 0;
    for (const double w : rest) sum += w;
    if (events.begin) events.begin(i, shapes[i], std::min(left, sum));
    // Each class has its own stream, so that a resumed run draws what the whole
    // run would have drawn.
    std::seed_seq seeds{options.seed,
                        static_cast<uint64_t>(ShapeClassHash()(
                            ClassOf(shapes[i].problem, options.threads)))};
    std::mt19937_64 random(seeds);
    const size_t number = options.first_class + i;
    const NamedProblem* same = SameClass(shapes[i], options.threads, *results);
    if (same != nullptr) {
      results->emplace_back();
      results->back().shape = shapes[i];
      results->back().skipped = "of the class of " + same->name;
      if (events.end && !events.end(i, results->back(), why)) return false;
      continue;
    }
    ShapeTuner tuner(options, machine, events, shapes[i], number, journal,
                     &random, &canary);
    // Wants are guesses, and on a noisy machine too small: what nobody wants is
    // granted too. Who is done early gives it back.
    const double share =
        sum < left && sum > 0 ? left * rest[0] / sum : Share(left, rest);
    results->push_back(tuner.Tune(share));
    ProbePeak(options, machine, results);
    const TunedShape& tuned = results->back();
    if (journal != nullptr) {
      journal->Write(
          tuned.skipped.empty()
              ? EntryLine(number, tuned.entry)
              : SkippedLine(number, tuned.shape.text, tuned.skipped));
      journal->Flush();
    }
    if (events.end && !events.end(i, tuned, why)) return false;
  }
  return true;
}

}  // namespace heed
