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
#include "runtime/plan_cut.h"
#include "runtime/problem.h"
#include "runtime/runner_tbb.h"
#include "runtime/targets.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

heed_status ValidateTile(const heed_tile& tile) {
  const struct {
    const char* name;
    int32_t value;
    int32_t limit;
  } fields[] = {{"row_block", tile.row_block, INT32_MAX},
                {"key_tile", tile.key_tile, INT32_MAX},
                {"pack_k", tile.pack_k, 3},
                {"pack_v", tile.pack_v, 3},
                {"prefetch", tile.prefetch, 2},
                {"reserved[0]", tile.reserved[0], 0},
                {"reserved[1]", tile.reserved[1], 0},
                {"reserved[2]", tile.reserved[2], 0}};
  for (const auto& field : fields) {
    if (field.value < 0 || field.value > field.limit) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "options.tile.%s is %" PRId32 "; expected 0 to %" PRId32,
                  field.name, field.value, field.limit);
    }
  }
  return HEED_OK;
}

heed_status ValidateOptions(const heed_options& options) {
  if (options.struct_size != sizeof(heed_options)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "options.struct_size is %zu; expected %zu, as "
                "heed_options_init() sets it",
                options.struct_size, sizeof(heed_options));
  }
  if (options.threads < 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "options.threads is %" PRId32
                "; expected 0 (as many as we may use) or more",
                options.threads);
  }
  if (options.tuning < HEED_TUNING_AUTO ||
      options.tuning > HEED_TUNING_PINNED) {
    return Fail(HEED_INVALID_ARGUMENT,
                "options.tuning is %" PRId32
                "; expected HEED_TUNING_AUTO (0), _OFF (1) or _PINNED (2)",
                options.tuning);
  }
  if (options.runner != nullptr && options.runner->run == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "options.runner->run is NULL; expected a function");
  }
  return options.tuning == HEED_TUNING_PINNED ? ValidateTile(options.tile)
                                              : HEED_OK;
}

int ThreadsFor(const heed_options& options) {
  if (options.threads > 0) return options.threads;
  const int threads = EffectiveThreads();
  // A runner of the caller's has nothing to do with the TBB arena.
  if (options.runner != nullptr) return threads;
  return std::max(1, std::min(threads, ArenaConcurrency()));
}

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

void heed_options_init(heed_options* options) {
  if (options == nullptr) return;
  *options = heed_options{};
  options->struct_size = sizeof(heed_options);
}

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
