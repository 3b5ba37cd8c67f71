// heed_plan_create(): from a problem and options to a plan.
#include "runtime/plan.h"

#include <algorithm>
#include <cinttypes>
#include <climits>
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

TileChoice PinnedTile(const heed_tile& pinned, const heed_problem& problem,
                      const Kernels& kernels, int threads) {
  Tile tile = ModelTile(problem, kernels, ThisMachine(), threads);
  if (pinned.row_block != 0) {
    tile.row_block = static_cast<size_t>(pinned.row_block);
  }
  if (pinned.key_tile != 0) {
    tile.key_tile = static_cast<size_t>(pinned.key_tile);
  }
  if (pinned.pack_k != 0) tile.pack_k = static_cast<Pack>(pinned.pack_k - 1);
  if (pinned.pack_v != 0) tile.pack_v = static_cast<Pack>(pinned.pack_v - 1);
  if (pinned.prefetch != 0) tile.prefetch = pinned.prefetch == 2;
  return {RoundTile(tile, problem, kernels), Tier::kPinned,
          "the caller's tile"};
}

TileChoice ChooseFor(const heed_options& options, const heed_problem& problem,
                     const Kernels& kernels, int threads) {
  if (options.tuning == HEED_TUNING_PINNED) {
    return PinnedTile(options.tile, problem, kernels, threads);
  }
  if (options.tuning == HEED_TUNING_OFF) {
    return {ModelTile(problem, kernels, ThisMachine(), threads), Tier::kModel,
            "tuning is off"};
  }
  return ChooseTile(ProcessRecords(), problem, kernels, ThisMachine(), threads);
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
  heed_options_init(&chosen);
  heed_status status = ValidateProblem(*problem);
  if (status == HEED_OK && options != nullptr) {
    status = ValidateOptions(*options);
    if (status == HEED_OK) chosen = *options;
  }
  if (status != HEED_OK) return status;

  auto plan = std::make_unique<heed_plan>();
  plan->problem = *problem;
  status =
      FindTarget(chosen.target, KernelDType(problem->dtype), &plan->kernels);
  if (status != HEED_OK) return status;
  plan->runner = chosen.runner != nullptr ? *chosen.runner : TbbRunner();
  plan->q_scale = QueryScale(*problem);
  const int threads = ThreadsFor(chosen);
  plan->choice = ChooseFor(chosen, *problem, plan->kernels, threads);
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
