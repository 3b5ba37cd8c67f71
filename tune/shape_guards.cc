// The last part of tuning a shape: what was found must not lose on the other
// shapes of its class.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/problem.h"
#include "runtime/tile_model.h"
#include "tune/guard_shapes.h"
#include "tune/shape_tuner.h"

namespace heed {

int ShapeTuner::GuardRounds() const {
  return options_.effort.looks.front() *
         RoundsFactor(options_.effort, machine_->noise);
}

void ShapeTuner::CheckGuards(double end) {
  if (!tuned_.confirmation.adopted) return;
  const std::vector<heed_problem> guards =
      GuardShapes(problem_, options_.threads);
  const double start = MonotonicSeconds();
  for (size_t i = 0; i < guards.size(); ++i) {
    const double part =
        static_cast<double>(i + 1) / static_cast<double>(guards.size());
    if (!CheckOneGuard(guards[i], start + part * (end - start))) return;
  }
}

bool ShapeTuner::CheckOneGuard(const heed_problem& whole, double end) {
  const std::string name = ToString(whole);
  Phase("guard " + name);
  const heed_problem problem =
      SliceOf(whole, AttainableFlops(machine_->peaks), kGuardSliceSeconds,
              EnoughRows(candidates_[0], options_.threads));
  const std::vector<Kernels> targets = EqualTargets(KernelDType(problem.dtype));
  const Candidate usual =
      DefaultCandidate(whole, targets, machine_->machine, options_.threads);
  Candidate rival = tuned_.rival;
  for (const Kernels& kernels : targets) {
    if (rival.target == kernels.target) {
      rival.config.tile = RoundTile(rival.config.tile, whole, kernels);
    }
  }
  // Rounded to this shape they may be the same: nothing to lose.
  if (rival == usual) return true;
  std::string why;
  const std::unique_ptr<AttentionTensors> tensors =
      AttentionTensors::Create(problem, options_.seed, &why);
  if (tensors == nullptr) {
    KeepDefault("guard " + name + ": " + why);
    return false;
  }
  std::vector<std::string> wrong;
  if (!TryApart(problem, {usual, rival}, end, &wrong)) {
    KeepDefault("guard " + name + ": " + tuned_.skipped);
    tuned_.skipped.clear();
    return false;
  }
  AttentionWork work(problem, tensors.get(), Work(), canary_);
  why = wrong.size() == 2 ? wrong[1] : "no time within the budget";
  if (!why.empty() || !work.Add(usual, &why) || !work.Add(rival, &why)) {
    if (wrong.size() == 2 && !wrong[1].empty()) LeaveOut(rival, wrong[1]);
    KeepDefault("guard " + name + ": " + why);
    return false;
  }
  GuardOptions options;
  options.iterations = FindPace(&work, kMinSampleSeconds).iterations;
  options.rounds = GuardRounds();
  options.deadline = end;
  const GuardResult result =
      CheckGuard(&work, options, ContextOf("guard", {0, winner_number_}));
  Count(result.counts);
  const Interval& gain = result.log_gain;
  if (static_cast<size_t>(result.rounds) < RoundsNeeded(options.alpha)) {
    KeepDefault("guard " + name + ": too few rounds within the budget");
    return false;
  }
  tuned_.entry.guards.push_back(
      {name, {std::exp(gain.median), std::exp(gain.low), std::exp(gain.high)}});
  if (!result.holds) {
    guard_lost_ = true;
    KeepDefault(fmt::format(
        "guard {}: {:+.1f} % [{:+.1f}, {:+.1f}] may lose more than 1 %", name,
        100 * std::expm1(gain.median), 100 * std::expm1(gain.low),
        100 * std::expm1(gain.high)));
  }
  return result.holds;
}

}  // namespace heed
