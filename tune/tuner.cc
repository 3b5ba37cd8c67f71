#include "tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>

#include "runtime/problem.h"
#include "runtime/tile_model.h"
#include "tune/attention_work.h"
#include "tune/candidates.h"

namespace heed {
namespace {

constexpr double kAlpha = 0.05;
constexpr size_t kMaxFinalists = 2;
// A sample is at least this long, so that timer and thread start-up vanish in
// it, and the search prefers slices of a shape whose samples are not longer.
constexpr double kMinSampleSeconds = 1e-3;
constexpr double kSliceSeconds = 20e-3;
// Parts of a shape's time: search, then confirmation with what is left.
constexpr double kSearchPart = 0.6;
// Share of the FMA peak that a guess of a call's time presumes.
constexpr double kGuessedEfficiency = 0.6;
// A confirmation that would take longer than this asks for fewer rounds, so
// that one large shape does not starve ten small ones. If time is left it runs
// them all the same.
constexpr double kLongConfirmSeconds = 8;
constexpr double kFewRounds = 20;
// Guesses of microseconds are far off; two seconds do for any small shape.
constexpr double kMinWantedSeconds = 2;
// Kept free of samples for writing and for the last round to run over.
constexpr double kReservePart = 0.02;
// A canary this much above its best means a disturbed core.
constexpr double kQuietFactor = 1.1;

double AttainableFlops(const Peaks& peaks) {
  return kGuessedEfficiency * peaks.fma_gflops_all * 1e9;
}

double GuessedSeconds(const heed_problem& problem, const Peaks& peaks) {
  return std::max(AttentionFlops(problem) / AttainableFlops(peaks),
                  CompulsoryBytes(problem) / (peaks.read_gbs_all * 1e9));
}

// Rows that keep every thread busy with the largest candidate's row blocks.
size_t EnoughRows(const Tile& default_tile, int threads) {
  return default_tile.row_block * 4 * 4 * static_cast<size_t>(threads);
}

// Samples per candidate of the whole search: the first heat, and the later ones
// on a third, a ninth ... of the candidates.
double SearchSamples(const Effort& effort) {
  return 2.2 * static_cast<double>(effort.candidates) *
         static_cast<double>(effort.search_rounds);
}

// Tunes one shape. What fails for want of time or memory is a skipped shape;
// only wrong bytes are an error.
class ShapeTuner {
 public:
  ShapeTuner(const TuneOptions& options, const TuneMachine& machine,
             const TuneEvents& events, const NamedProblem& shape,
             std::mt19937_64* random, Canary* canary)
      : options_(options),
        machine_(machine),
        events_(events),
        problem_(shape.problem),
        kernels_(KernelsFor(machine, problem_)),
        random_(random),
        canary_(canary),
        default_tile_(
            ModelTile(problem_, kernels_, machine.machine, options.threads)) {
    tuned_.shape = shape;
  }

  bool Tune(double seconds, std::string* why) {
    const double start = MonotonicSeconds();
    const double end = start + seconds;
    if (Allocate() && Run(start, end)) FillEntry();
    tuned_.seconds = MonotonicSeconds() - start;
    *why = fault_;
    return fault_.empty();
  }

  TunedShape& tuned() { return tuned_; }

 private:
  bool Skip(const std::string& reason) {
    tuned_.skipped = reason;
    return false;
  }

  // Wrong bytes.
  bool Fault(const Tile& tile, const std::string& reason) {
    fault_ = tuned_.shape.name + ": tile " + ToString(tile) + ": " + reason;
    return Skip(fault_);
  }

  bool Allocate() {
    std::string why;
    tensors_ = AttentionTensors::Create(problem_, options_.seed, &why);
    return tensors_ != nullptr || Skip(why);
  }

  bool Run(double start, double end) {
    const WorkOptions work_options{options_.threads, kernels_.target,
                                   events_.tick};
    const heed_problem slice =
        SliceOf(problem_, AttainableFlops(machine_.peaks), kSliceSeconds,
                EnoughRows(default_tile_, options_.threads));
    std::string why;
    AttentionWork search(slice, tensors_.get(), work_options, canary_);
    if (!search.Add(default_tile_, &why)) return Fault(default_tile_, why);
    const Pace pace = FindPace(&search, kMinSampleSeconds);

    // Each candidate costs a run for the bytes and a sample per round; as many
    // are taken as three rounds fit the time.
    const double search_end = start + kSearchPart * (end - start);
    const double affordable =
        (search_end - MonotonicSeconds()) / (4 * pace.seconds);
    if (affordable < 2) return Skip("no time within the budget");
    const size_t most = static_cast<size_t>(
        std::min(affordable, static_cast<double>(options_.effort.candidates)));
    const std::vector<Tile> tiles = TileCandidates(
        problem_, kernels_, machine_.machine, default_tile_, most);
    for (size_t i = 1; i < tiles.size(); ++i) {
      if (!search.Add(tiles[i], &why)) return Fault(tiles[i], why);
    }
    tuned_.candidates = tiles.size();

    SearchOptions options;
    options.rounds = options_.effort.search_rounds;
    options.finalists = kMaxFinalists;
    options.iterations = pace.iterations;
    options.deadline = search_end;
    const SearchResult found = Search(&search, tiles.size(), options, random_);
    KeepCanary(search);
    return ConfirmOnWhole(work_options, tiles, found.finalists, end);
  }

  // The finalists on the whole problem, however short the search's slice was.
  bool ConfirmOnWhole(const WorkOptions& work_options,
                      const std::vector<Tile>& tiles,
                      std::vector<size_t> finalists, double end) {
    std::string why;
    AttentionWork work(problem_, tensors_.get(), work_options, canary_);
    if (!work.Add(default_tile_, &why)) return Fault(default_tile_, why);
    ConfirmOptions options;
    options.alpha = kAlpha;
    options.min_gain = options_.min_gain;
    options.deadline = end;
    const Pace pace = FindPace(&work, kMinSampleSeconds);
    options.iterations = pace.iterations;
    // Both finalists only if that leaves twice the rounds that an interval
    // needs at the least.
    const auto rounds = [&](size_t rivals) {
      return (end - MonotonicSeconds()) /
             (pace.seconds * static_cast<double>(rivals + 1));
    };
    while (finalists.size() > 1 &&
           rounds(finalists.size()) < 2.0 * static_cast<double>(RoundsNeeded(
                                                kAlpha / kMaxFinalists))) {
      finalists.pop_back();
    }
    std::vector<size_t> candidates;
    for (const size_t finalist : finalists) {
      if (!work.Add(tiles[finalist], &why)) return Fault(tiles[finalist], why);
      candidates.push_back(candidates.size() + 1);
    }
    // With no rival only the default's own time is wanted.
    options.rounds = candidates.empty() ? options_.effort.search_rounds
                                        : options_.effort.confirm_rounds;
    tuned_.confirmation = Confirm(&work, candidates, options, random_);
    KeepCanary(work);
    // What is kept only for want of rounds must not replace an older entry.
    const auto done = static_cast<size_t>(tuned_.confirmation.rounds);
    if (done == 0 || (!candidates.empty() &&
                      done < RoundsNeeded(kAlpha / static_cast<double>(
                                                       candidates.size())))) {
      return Skip("too few rounds within the budget");
    }
    const size_t winner = tuned_.confirmation.winner;
    tuned_.rival = winner == 0 ? default_tile_ : tiles[finalists[winner - 1]];
    return true;
  }

  void KeepCanary(const AttentionWork& work) {
    canary_seconds_.insert(canary_seconds_.end(), work.canary_seconds().begin(),
                           work.canary_seconds().end());
  }

  void FillEntry() {
    const Confirmation& confirmation = tuned_.confirmation;
    RecordEntry& entry = tuned_.entry;
    entry.shape_class = ClassOf(problem_, options_.threads);
    entry.problem = tuned_.shape.text;
    entry.target = kernels_.target;
    entry.default_tile = default_tile_;
    entry.adopted = confirmation.adopted;
    entry.tile = entry.adopted ? tuned_.rival : default_tile_;
    if (entry.adopted) {
      entry.gain = std::exp(confirmation.log_gain.median);
      entry.gain_low = std::exp(confirmation.log_gain.low);
      entry.gain_high = std::exp(confirmation.log_gain.high);
    }
    entry.rounds = confirmation.rounds;
    entry.default_us = confirmation.default_seconds * 1e6;
    entry.tuned_us =
        entry.adopted ? confirmation.winner_seconds * 1e6 : entry.default_us;
    const double best =
        *std::min_element(canary_seconds_.begin(), canary_seconds_.end());
    const auto quiet =
        std::count_if(canary_seconds_.begin(), canary_seconds_.end(),
                      [best](double s) { return s <= kQuietFactor * best; });
    tuned_.quiet = static_cast<double>(quiet) /
                   static_cast<double>(canary_seconds_.size());
  }

  const TuneOptions& options_;
  const TuneMachine& machine_;
  const TuneEvents& events_;
  const heed_problem problem_;
  const Kernels kernels_;
  std::mt19937_64* random_;
  Canary* canary_;
  const Tile default_tile_;
  std::unique_ptr<AttentionTensors> tensors_;
  std::vector<double> canary_seconds_;
  std::string fault_;
  TunedShape tuned_;
};

}  // namespace

Kernels KernelsFor(const TuneMachine& machine, const heed_problem& problem) {
  return GetKernels(machine.target, KernelDType(problem.dtype));
}

double WantedSeconds(const heed_problem& problem, const Effort& effort,
                     const Peaks& peaks) {
  const double call = GuessedSeconds(problem, peaks);
  const double sample = std::max(call, kMinSampleSeconds);
  const double slice_sample =
      std::clamp(call, kMinSampleSeconds, kSliceSeconds);
  const double search = slice_sample * SearchSamples(effort);
  const double round = sample * (kMaxFinalists + 1);
  const double all_rounds = round * static_cast<double>(effort.confirm_rounds);
  const double confirm =
      std::min(all_rounds, std::max(kLongConfirmSeconds, kFewRounds * round));
  return std::max({confirm + search, search / kSearchPart, kMinWantedSeconds});
}

bool TuneShapes(const TuneOptions& options, double start, TuneMachine* machine,
                const TuneEvents& events, std::vector<TunedShape>* results,
                std::string* why) {
  const double end = start + options.budget_seconds * (1 - kReservePart);
  std::mt19937_64 random(options.seed);
  Canary canary(machine->probes);
  // The cheapest first: what they leave over goes to the others, and an
  // interrupted run has most of its shapes behind it.
  const auto wanted = [&](const NamedProblem& shape) {
    return WantedSeconds(shape.problem, options.effort, machine->peaks);
  };
  std::vector<NamedProblem> shapes = options.shapes;
  std::stable_sort(shapes.begin(), shapes.end(),
                   [&](const NamedProblem& a, const NamedProblem& b) {
                     return wanted(a) < wanted(b);
                   });
  std::vector<double> wants;
  for (const NamedProblem& shape : shapes) wants.push_back(wanted(shape));
  results->clear();
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (events.stop && events.stop()) return true;
    const NamedProblem& shape = shapes[i];
    const double left = end - MonotonicSeconds();
    const std::vector<double> rest(
        wants.begin() + static_cast<std::ptrdiff_t>(i), wants.end());
    double sum = 0;
    for (const double w : rest) sum += w;
    if (events.begin) events.begin(i, shape, std::min(left, sum));

    ShapeTuner tuner(options, *machine, events, shape, &random, &canary);
    if (!tuner.Tune(Share(left, rest), why)) return false;
    results->push_back(std::move(tuner.tuned()));

    // The peak is probed beside each shape and the best of the run counts, so a
    // disturbed moment at the start cannot flatter anything.
    const double peak = FmaGflops(machine->probes, options.threads, 0.05);
    machine->peaks.fma_gflops_all =
        std::max(machine->peaks.fma_gflops_all, peak);
    if (options.threads == 1) {
      machine->peaks.fma_gflops_1t = machine->peaks.fma_gflops_all;
    }
    for (TunedShape& tuned : *results) {
      if (!tuned.skipped.empty()) continue;
      tuned.entry.pct_peak = 100 * AttentionFlops(tuned.shape.problem) /
                             (tuned.entry.tuned_us * 1e-6) /
                             (machine->peaks.fma_gflops_all * 1e9);
    }
    if (events.end && !events.end(i, results->back(), why)) return false;
  }
  return true;
}

}  // namespace heed
