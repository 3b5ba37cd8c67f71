#include "tune/shape_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/problem.h"
#include "runtime/tile_model.h"
#include "tune/journal_lines.h"
#include "tune/merge_records.h"

namespace heed {
namespace {

// Share of the FMA peak that a guess of a call's time presumes.
constexpr double kGuessedEfficiency = 0.6;

}  // namespace

double AttainableFlops(const Peaks& peaks) {
  return kGuessedEfficiency * peaks.fma_gflops_all * 1e9;
}

size_t EnoughRows(const Candidate& candidate, int threads) {
  return candidate.config.tile.row_block * 4 * 4 * static_cast<size_t>(threads);
}

double AlphaOfOne(const Effort& effort) {
  return kConfirmAlpha /
         static_cast<double>(kMaxFinalists *
                             std::max<size_t>(effort.looks.size(), 1));
}

int RoundsFactor(const Effort& effort, const Noise& noise) {
  return noise.RoundsFactor(effort.looks.back(), AlphaOfOne(effort));
}

ConfirmOptions PlannedConfirm(const Effort& effort, const Noise& noise) {
  ConfirmOptions options;
  options.looks = effort.looks;
  const int factor = RoundsFactor(effort, noise);
  for (int& look : options.looks) look *= factor;
  options.alpha = kConfirmAlpha;
  options.noise = noise;
  return options;
}

ShapeTuner::ShapeTuner(const TuneOptions& options, TuneMachine* machine,
                       const TuneEvents& events, const NamedProblem& shape,
                       size_t index, Journal* journal, std::mt19937_64* random,
                       Canary* canary)
    : options_(options),
      machine_(machine),
      events_(events),
      problem_(shape.problem),
      index_(index),
      journal_(journal),
      random_(random),
      canary_(canary),
      candidates_(Candidates(
          problem_, EqualTargets(KernelDType(problem_.dtype)), machine->machine,
          options.threads, options.effort.candidates)) {
  tuned_.shape = shape;
}

TunedShape ShapeTuner::Tune(double seconds) {
  const double start = MonotonicSeconds();
  std::string why;
  tensors_ = AttentionTensors::Create(problem_, options_.seed, &why);
  if (tensors_ == nullptr) {
    Skip(why);
  } else if (Run(start, start + seconds)) {
    FillEntry();
  }
  tensors_.reset();
  tuned_.seconds = MonotonicSeconds() - start;
  return tuned_;
}

bool ShapeTuner::Undecided() const {
  return tuned_.skipped.empty() && !guard_lost_ &&
         heed::Undecided(tuned_.confirmation, options_.min_gain);
}

double ShapeTuner::MoreWants() const {
  const double sample =
      std::max(tuned_.confirmation.default_seconds, kMinSampleSeconds);
  return 2 * sample * kMostMoreRounds / kConfirmPart;
}

TunedShape ShapeTuner::More(double seconds) {
  const double start = MonotonicSeconds();
  std::string why;
  tensors_ = AttentionTensors::Create(problem_, options_.seed, &why);
  if (tensors_ != nullptr) Reconfirm(start, start + seconds);
  tensors_.reset();
  tuned_.seconds += MonotonicSeconds() - start;
  return tuned_;
}

bool ShapeTuner::SkipForTime(const std::string& reason) {
  short_of_time_ = true;
  return Skip(reason);
}

bool ShapeTuner::Skip(const std::string& reason) {
  tuned_.skipped = reason;
  return false;
}

void ShapeTuner::Count(const RaceCounts& counts) {
  tuned_.counts.rounds += counts.rounds;
  tuned_.counts.discarded += counts.discarded;
  tuned_.counts.suspicious += counts.suspicious;
  tuned_.counts.samples += counts.samples;
}

void ShapeTuner::Phase(const std::string& what) {
  if (events_.phase) events_.phase(what);
}

WorkOptions ShapeTuner::Work() const {
  return {options_.threads, events_.tick};
}

RaceContext ShapeTuner::ContextOf(const char* phase,
                                  std::vector<size_t> numbers) {
  RaceContext context;
  context.gauge = &machine_->gauge;
  if (journal_ != nullptr) {
    context.observe = [this, phase,
                       numbers = std::move(numbers)](const Round& round) {
      journal_->Write(RoundLine(index_, phase, numbers, round));
    };
  }
  return context;
}

bool ShapeTuner::TryApart(const heed_problem& problem,
                          const std::vector<Candidate>& candidates,
                          double deadline, std::vector<std::string>* wrong) {
  wrong->assign(candidates.size(), "");
  if (!options_.isolate) return true;
  Phase(fmt::format("trying {} apart", candidates.size()));
  TrialOptions options;
  options.deadline = deadline;
  options.tick = events_.tick;
  const Trials trials = RunTrials(
      candidates.size(), options,
      options_.isolate({problem, options_.threads, options_.seed, candidates}));
  *wrong = trials.results;
  if (trials.failed.empty()) return true;
  return Skip("the default, tried apart: " + trials.failed);
}

void ShapeTuner::LeaveOut(const Candidate& candidate, const std::string& why) {
  tuned_.rejected.push_back(ToString(candidate) + ": " + why);
  if (journal_ != nullptr) {
    journal_->Write(LeftOutLine(index_, candidate, why));
  }
}

bool ShapeTuner::Run(double start, double end) {
  std::vector<size_t> finalists;
  const double seconds = end - start;
  return SearchOnSlice(start + kSearchPart * seconds, &finalists) &&
         ConfirmOnWhole(finalists, start + kConfirmPart * seconds) &&
         (CheckGuards(end), true);
}

bool ShapeTuner::SearchOnSlice(double search_end,
                               std::vector<size_t>* finalists) {
  const heed_problem slice =
      SliceOf(problem_, AttainableFlops(machine_->peaks), kSliceSeconds,
              EnoughRows(candidates_[0], options_.threads));
  std::string why;
  std::vector<std::string> wrong;
  if (!TryApart(slice, candidates_, search_end, &wrong)) return false;
  candidates_.resize(wrong.size());
  AttentionWork work(slice, tensors_.get(), Work(), canary_);
  if (!work.Add(candidates_[0], &why)) return Skip(why);
  const Pace pace = FindPace(&work, kMinSampleSeconds);
  // Each candidate costs a run for the bytes and a sample per round; as many
  // are taken as three rounds fit the time.
  const double affordable =
      (search_end - MonotonicSeconds()) / (4 * pace.seconds);
  if (affordable < 2) return SkipForTime("no time within the budget");
  if (affordable < static_cast<double>(candidates_.size())) {
    candidates_.resize(static_cast<size_t>(affordable));
  }
  // Those that pass the gate.
  std::vector<size_t> numbers = {0};
  for (size_t i = 1; i < candidates_.size(); ++i) {
    why = wrong[i];
    if (why.empty() && work.Add(candidates_[i], &why)) {
      numbers.push_back(i);
    } else {
      LeaveOut(candidates_[i], why);
    }
  }
  tuned_.candidates = candidates_.size();
  if (journal_ != nullptr) {
    journal_->Write(ClassLine(index_, tuned_.shape, options_.threads,
                              candidates_, pace.iterations));
  }
  Phase(fmt::format("racing {}", numbers.size()));
  SearchOptions options;
  options.rounds =
      options_.effort.search_rounds * machine_->noise.SearchFactor();
  options.finalists = kMaxFinalists;
  options.iterations = pace.iterations;
  options.deadline = search_end;
  const SearchResult found = Search(&work, numbers.size(), options,
                                    ContextOf("search", numbers), random_);
  Count(found.counts);
  for (const size_t finalist : found.finalists) {
    finalists->push_back(numbers[finalist]);
  }
  return true;
}

// The finalists on the whole problem, however short the search's slice was.
bool ShapeTuner::ConfirmOnWhole(std::vector<size_t> finalists,
                                double confirm_end) {
  std::string why;
  std::vector<Candidate> tried = {candidates_[0]};
  for (const size_t finalist : finalists) {
    tried.push_back(candidates_[finalist]);
  }
  std::vector<std::string> wrong;
  if (!TryApart(problem_, tried, confirm_end, &wrong)) return false;
  if (wrong.size() < tried.size())
    return SkipForTime("no time within the budget");
  AttentionWork work(problem_, tensors_.get(), Work(), canary_);
  if (!work.Add(candidates_[0], &why)) return Skip(why);
  const Pace pace = FindPace(&work, kMinSampleSeconds);
  ConfirmOptions options = PlannedConfirm(options_.effort, machine_->noise);
  options.min_gain = options_.min_gain;
  options.deadline = confirm_end;
  options.iterations = pace.iterations;
  // Both finalists only if that leaves twice the rounds that an interval needs
  // at the least.
  const size_t needed = RoundsNeeded(AlphaOfOne(options_.effort));
  while (finalists.size() > 1 &&
         (confirm_end - MonotonicSeconds()) /
                 (pace.seconds * static_cast<double>(finalists.size() + 1)) <
             2.0 * static_cast<double>(needed)) {
    finalists.pop_back();
  }
  std::vector<size_t> runners, numbers = {0};
  for (size_t i = 0; i < finalists.size(); ++i) {
    const size_t finalist = finalists[i];
    why = wrong[i + 1];
    if (!why.empty() || !work.Add(candidates_[finalist], &why)) {
      LeaveOut(candidates_[finalist], why);
      continue;
    }
    numbers.push_back(finalist);
    runners.push_back(runners.size() + 1);
  }
  if (runners.empty()) {
    // Only the default's own time is wanted.
    options.looks = {options_.effort.search_rounds};
  }
  Phase(fmt::format("confirming {}", runners.size()));
  Confirmation& result = tuned_.confirmation;
  result = Confirm(&work, runners, options, ContextOf("confirm", numbers));
  Count(result.counts);
  winner_number_ = numbers[result.winner];
  tuned_.rival = candidates_[winner_number_];
  // What is kept only for want of rounds must not replace an older entry.
  if (result.rounds == 0 ||
      (!runners.empty() && static_cast<size_t>(result.rounds) < needed)) {
    return SkipForTime("too few rounds within the budget");
  }
  return true;
}

void ShapeTuner::Reconfirm(double start, double end) {
  std::string why;
  AttentionWork work(problem_, tensors_.get(), Work(), canary_);
  // Both have run before; what has changed is how much memory there is.
  if (!work.Add(candidates_[0], &why) || !work.Add(tuned_.rival, &why)) return;
  const Pace pace = FindPace(&work, kMinSampleSeconds);
  // Two guards of two samples each, and room for them to be slower.
  const double guards =
      6 * GuardRounds() * std::min(pace.seconds, kGuardSliceSeconds);
  ConfirmOptions options;
  options.looks = {kMostMoreRounds};
  options.alpha = kMoreAlpha;
  options.min_gain = options_.min_gain;
  options.noise = machine_->noise;
  options.deadline = end - std::min(guards, (1 - kConfirmPart) * (end - start));
  options.iterations = pace.iterations;
  Phase("more rounds");
  const Confirmation more =
      Confirm(&work, {1}, options, ContextOf("more", {0, winner_number_}));
  Count(more.counts);
  short_of_time_ = true;
  if (static_cast<size_t>(more.rounds) < RoundsNeeded(kMoreAlpha)) return;
  tuned_.confirmation = more;
  short_of_time_ = more.rounds < kMostMoreRounds && Undecided();
  tuned_.entry.guards.clear();
  CheckGuards(end);
  FillEntry();
}

void ShapeTuner::KeepDefault(const std::string& reason) {
  tuned_.confirmation.adopted = false;
  tuned_.confirmation.reason = reason;
}

void ShapeTuner::FillEntry() {
  const Confirmation& confirmation = tuned_.confirmation;
  RecordEntry& entry = tuned_.entry;
  entry.shape_class = ClassOf(problem_, options_.threads);
  entry.problem = tuned_.shape.text;
  entry.default_target = candidates_[0].target;
  entry.default_config = candidates_[0].config;
  entry.decision =
      confirmation.adopted ? Decision::kAdopted : Decision::kKeptDefault;
  const Candidate& chosen =
      confirmation.adopted ? tuned_.rival : candidates_[0];
  entry.target = chosen.target;
  entry.config = chosen.config;
  entry.reason = confirmation.reason;
  if (confirmation.adopted) {
    entry.gain = {std::exp(confirmation.log_gain.median),
                  std::exp(confirmation.log_gain.low),
                  std::exp(confirmation.log_gain.high)};
  }
  entry.rounds = confirmation.rounds;
  entry.default_us = confirmation.default_seconds * 1e6;
  entry.tuned_us = confirmation.adopted ? confirmation.winner_seconds * 1e6
                                        : entry.default_us;
  entry.candidates = static_cast<int>(tuned_.candidates);
  entry.search_samples = static_cast<int>(tuned_.counts.samples);
  entry.run = options_.run_id;
  entry.confirmed = UtcNow();
}

}  // namespace heed
