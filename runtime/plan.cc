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
#include "runtime/problem.h"
#include "runtime/runner_tbb.h"
#include "runtime/targets.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

// Two cache lines between the slices of two workers: x86 fetches lines in
// pairs, and an odd distance keeps slices off each other's L1 sets.
constexpr size_t kSliceGap = 128;

size_t ToLine(size_t bytes) { return (bytes + 63) & ~size_t{63}; }

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

// Cuts the problem into tasks and sizes the workspace.
heed_status CutIntoTasks(int threads, heed_plan* plan) {
  const heed_problem& problem = plan->problem;
  const Tile& tile = plan->choice.tile;
  plan->group = static_cast<size_t>(Group(problem));
  plan->rows = RowsPerKvHead(problem);
  plan->tasks = TaskCount(tile, problem);
  plan->heads = plan->tasks == 0
                    ? 0
                    : static_cast<size_t>(problem.batch * problem.heads_kv);
  plan->row_blocks = plan->tasks == 0 ? 0 : plan->tasks / plan->heads;
  plan->workers = std::min(static_cast<size_t>(threads), plan->tasks);
  const size_t scratch =
      plan->kernels.scratch_bytes(tile, static_cast<size_t>(problem.dim_qk),
                                  static_cast<size_t>(problem.dim_v));
  size_t total;
  if (__builtin_add_overflow(scratch, kSliceGap + 63, &plan->slice_bytes) ||
      __builtin_mul_overflow(plan->slice_bytes, plan->workers, &total)) {
    return Fail(HEED_UNSUPPORTED,
                "the workspace of %zu workers of %zu bytes overflows size_t",
                plan->workers, scratch);
  }
  plan->slice_bytes &= ~size_t{63};
  const auto len_k = static_cast<size_t>(problem.len_k);
  plan->packed_heads = plan->workers > 1 ? plan->heads : 1;
  plan->packed_k_bytes = 0;
  plan->packed_v_bytes = 0;
  if (tile.pack_k == Pack::kCall) {
    plan->packed_k_bytes = ToLine(plan->kernels.packed_k_bytes(
        len_k, static_cast<size_t>(problem.dim_qk)));
  }
  if (tile.pack_v == Pack::kCall) {
    plan->packed_v_bytes = ToLine(plan->kernels.packed_v_bytes(
        len_k, static_cast<size_t>(problem.dim_v)));
  }
  size_t packed;
  if (__builtin_mul_overflow(plan->packed_heads,
                             plan->packed_k_bytes + plan->packed_v_bytes,
                             &packed) ||
      __builtin_add_overflow(total, packed, &total)) {
    return Fail(HEED_UNSUPPORTED,
                "the workspace for copies of k and v of %zu heads overflows "
                "size_t",
                plan->packed_heads);
  }
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
  status = CutIntoTasks(threads, plan.get());
  if (status != HEED_OK) return status;
  *result = plan.release();
  return HEED_OK;
}

}  // namespace

TaskPlace PlaceOf(const heed_plan& plan, size_t position) {
  size_t head, block;
  if (plan.workers > 1 && plan.problem.causal != HEED_CAUSAL_NONE) {
    head = position % plan.heads;
    block = plan.row_blocks - 1 - position / plan.heads;
  } else {
    head = position / plan.row_blocks;
    block = position % plan.row_blocks;
  }
  const auto heads_kv = static_cast<size_t>(plan.problem.heads_kv);
  TaskPlace place;
  place.batch = static_cast<int64_t>(head / heads_kv);
  place.kv_head = static_cast<int64_t>(head % heads_kv);
  place.row_begin = block * plan.choice.tile.row_block;
  place.rows =
      std::min(plan.choice.tile.row_block, plan.rows - place.row_begin);
  return place;
}

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
  return plan->workers * plan->slice_bytes +
         plan->packed_heads * (plan->packed_k_bytes + plan->packed_v_bytes);
}

}  // extern "C"
