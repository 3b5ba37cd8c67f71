#include "bench/bench_context.h"

#include "kernels/kernels.h"
#include "runtime/targets.h"

namespace heed {
bool BenchContext::Init(const BenchOptions& options, std::string* why) {
  std::vector<BenchTarget> runnable;
  for (const int64_t id : RunnableTargets()) {
    runnable.push_back({id, GetKernels(id, DType::kF32).target});
  }
  for (const BenchTarget& target : runnable) {
    const bool best = targets_.empty() && options.targets == "best";
    if (best || options.targets == "all" || options.targets == target.name) {
      targets_.push_back(target);
    }
  }
  if (targets_.empty()) {
    *why = "--heed_targets: expected best, all or one of";
    for (const BenchTarget& target : runnable) *why += " " + target.name;
    *why += ", got '" + options.targets + "'";
    return false;
  }
  threads_ = options.threads;
  if (threads_.empty()) {
    threads_ = {1};
    if (EffectiveThreads() > 1) threads_.push_back(EffectiveThreads());
  }
  if (!ParseShapeList(options.shapes, &problems_, why)) {
    *why = "--heed_shapes: " + *why;
    return false;
  }
  return true;
}

Roof& BenchContext::RoofOf(const BenchTarget& target, int threads) {
  std::unique_ptr<Roof>& roof = roofs_[{target.id, threads}];
  if (roof == nullptr) {
    roof = std::make_unique<Roof>(target.id, threads, &read_buffer_);
  }
  return *roof;
}

AttentionCase& BenchContext::CaseOf(const NamedProblem& problem) {
  if (case_ == nullptr || case_->named().text != problem.text) {
    case_.reset();  // before the next one takes its memory
    case_ =
        std::make_unique<AttentionCase>(problem, LastLevelBytes(ThisMachine()));
  }
  return *case_;
}

double BenchContext::BestCanary(const std::string& target, int threads) {
  for (const BenchTarget& known : targets_) {
    if (known.name == target) return RoofOf(known, threads).best_canary();
  }
  return 0;
}

}  // namespace heed
