// heed_plan_create(): from a problem and options to a plan.
#include "runtime/plan.h"

#include <algorithm>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/machine.h"
#include "runtime/options.h"
#include "runtime/plan_cut.h"
#include "runtime/problem.h"
#include "runtime/runner_tbb.h"
#include "runtime/targets.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

TileChoice PinnedTile(const heed_tile& pinned, const char* why,
                      const heed_problem& problem, const Kernels& kernels,
                      int threads) {
  const Config model = {ModelTile(problem, kernels, ThisMachine(), threads),
                        Cut{}};
  const Config config = WithPinned(model, pinned);
  TileChoice choice;
  choice.tile = RoundTile(config.tile, problem, kernels);
  choice.cut = config.cut;
  choice.tier = Tier::kPinned;
  choice.why = why;
  return choice;
}

void Report(const heed_plan& plan, int threads) {
  const char* verbose = std::getenv("HEED_TUNE_VERBOSE");
  if (verbose == nullptr || std::strcmp(verbose, "1") != 0) return;
  std::fprintf(stderr, "heed: %s threads=%d target=%s tile=%s tier=%s (%s)\n",
               ToString(plan.problem).c_str(), threads, plan.kernels.target,
               ToString(plan.choice.config()).c_str(),
               TierName(plan.choice.tier), ReasonOf(plan.choice).c_str());
}

// Picks the SIMD target and the configuration, which a record may do together.
heed_status Choose(const heed_options& options, int threads, heed_plan* plan) {
  const heed_problem& problem = plan->problem;
  const DType dtype = KernelDType(problem.dtype);
  const bool automatic = options.tuning == HEED_TUNING_AUTO;
  const RecordSet* records = automatic ? &ProcessRecords() : nullptr;
  const Hit* hit = automatic ? FindHit(*records, problem, threads) : nullptr;
  const char* target = options.target;
  if (hit != nullptr && target == nullptr) {
    target = hit->entry->decision == Decision::kQuarantined
                 ? hit->entry->default_target.c_str()
                 : hit->entry->target.c_str();
  }
  const heed_status status = FindTarget(target, dtype, &plan->kernels);
  if (status != HEED_OK) return status;
  if (!automatic) {
    plan->choice = PinnedTile(
        options.tuning == HEED_TUNING_PINNED ? options.tile : heed_tile{},
        "the caller's tile", problem, plan->kernels, threads);
    if (options.tuning == HEED_TUNING_OFF) {
      plan->choice.tier = Tier::kAnalytical;
      plan->choice.why = "tuning is off";
    }
    return HEED_OK;
  }
  if (!records->pin_error.empty()) {
    return Fail(HEED_INVALID_ARGUMENT, "%s", records->pin_error.c_str());
  }
  plan->choice = records->pinned
                     ? PinnedTile(records->pin, "HEED_TUNE=pin:", problem,
                                  plan->kernels, threads)
                     : ChooseTile(*records, hit, problem, plan->kernels,
                                  ThisMachine(), threads);
  Report(*plan, threads);
  return HEED_OK;
}

heed_status Create(const heed_problem* problem, const heed_options* options,
                   heed_plan** result) {
  if (result == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT, "plan is NULL; expected an address");
  }
  *result = nullptr;
  if (problem == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem is NULL; expected a heed_problem");
  }
  heed_options chosen;
  heed_status status = ValidateProblem(*problem);
  if (status == HEED_OK) status = ResolveOptions(options, &chosen);
  if (status != HEED_OK) return status;

  auto plan = std::make_unique<heed_plan>();
  plan->problem = *problem;
  const int threads = ThreadsFor(chosen);
  status = Choose(chosen, threads, plan.get());
  if (status != HEED_OK) return status;
  plan->runner = chosen.runner != nullptr ? *chosen.runner : TbbRunner();
  plan->q_scale = QueryScale(*problem);
  AlignToMaskBlocks(*problem, plan->kernels, &plan->choice.tile);
  CutIntoTasks(static_cast<size_t>(threads), plan.get());
  status = LayOutWorkspace(plan.get());
  if (status != HEED_OK) return status;
  *result = plan.release();
  return HEED_OK;
}

}  // namespace

}  // namespace heed

extern "C" {

heed_status heed_plan_create(const heed_problem* problem,
                             const heed_options* options, heed_plan** plan) {
  try {
    return heed::Create(problem, options, plan);
  } catch (const std::bad_alloc&) {
    return heed::Fail(HEED_OUT_OF_MEMORY, "no memory for a plan");
  } catch (const std::exception& error) {
    return heed::Fail(HEED_INTERNAL, "heed_plan_create: %s", error.what());
  } catch (...) {
    return heed::Fail(HEED_INTERNAL, "heed_plan_create: unknown exception");
  }
}

void heed_plan_destroy(heed_plan* plan) { delete plan; }

size_t heed_plan_workspace_size(const heed_plan* plan) {
  if (plan == nullptr) return 0;
  return plan->workspace.bytes;
}

}  // extern "C"
