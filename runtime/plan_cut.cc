#include "runtime/plan_cut.h"

#include <algorithm>
#include <cstdint>

#include "runtime/error.h"
#include "runtime/problem.h"
#include "runtime/sticky_size.h"
#include "runtime/task_list.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

// The most that the copies of a ragged batch may take. They have room for the
// longest sequence batch times over, since a plan knows no more: 256 sequences
// of up to 32768 keys, 8 heads of 128, would ask for 64 GB whatever is in use.
constexpr size_t kMaxRaggedCopies = size_t{256} << 20;

size_t ChunksOf(const heed_problem& problem) {
  const auto keys = static_cast<size_t>(problem.len_k);
  return keys / kChunk + (keys % kChunk != 0);
}

size_t DecodeRows(const heed_plan& plan) {
  const size_t most = plan.choice.cut.decode_rows;
  if (plan.rows <= most) return plan.rows;
  // Shorter sequences may be in the batch: whole tokens.
  return plan.problem.ragged != 0 ? most / plan.group * plan.group : 0;
}

// The scratch of one task of any kind that the plan may run.
size_t ScratchBytes(const heed_plan& plan) {
  const auto dim_qk = static_cast<size_t>(plan.problem.dim_qk);
  const auto dim_v = static_cast<size_t>(plan.problem.dim_v);
  size_t bytes = 0;
  if (plan.row_blocks != 0) {
    bytes = plan.kernels.scratch_bytes(plan.choice.tile, dim_qk, dim_v);
  }
  if (plan.decode_rows != 0) {
    bytes = std::max(bytes, plan.kernels.decode_scratch_bytes(plan.decode_rows,
                                                              dim_qk, dim_v));
  }
  return bytes;
}

void SizeCopies(heed_plan* plan) {
  const heed_problem& problem = plan->problem;
  const Tile& tile = plan->choice.tile;
  WorkspaceLayout& at = plan->workspace;
  at.packed_k_bytes = at.packed_v_bytes = at.packed_heads = 0;
  if (plan->row_blocks == 0) return;
  const auto len_k = static_cast<size_t>(problem.len_k);
  if (tile.pack_k == Pack::kCall) {
    at.packed_k_bytes = ToLine(plan->kernels.packed_k_bytes(
        len_k, static_cast<size_t>(problem.dim_qk)));
  }
  if (tile.pack_v == Pack::kCall) {
    at.packed_v_bytes = ToLine(plan->kernels.packed_v_bytes(
        len_k, static_cast<size_t>(problem.dim_v)));
  }
  if (at.packed_k_bytes != 0 || at.packed_v_bytes != 0) {
    at.packed_heads = plan->workers > 1 ? plan->heads : 1;
  }
}

size_t CopiesBytes(const WorkspaceLayout& at) {
  return Times(at.packed_heads, Plus(at.packed_k_bytes, at.packed_v_bytes));
}

}  // namespace

void CutIntoTasks(size_t threads, heed_plan* plan) {
  const heed_problem& problem = plan->problem;
  plan->group = static_cast<size_t>(Group(problem));
  plan->rows = RowsPerKvHead(problem);
  plan->heads = plan->rows == 0 ? 0
                                : static_cast<size_t>(problem.batch) *
                                      static_cast<size_t>(problem.heads_kv);
  plan->decode_rows = DecodeRows(*plan);
  const size_t row_block = plan->choice.tile.row_block;
  plan->row_blocks =
      plan->rows <= plan->choice.cut.decode_rows
          ? 0
          : plan->rows / row_block + (plan->rows % row_block != 0);
  // Keys are cut only where whole kv heads do not give every worker enough.
  const size_t wanted = Times(plan->choice.cut.tasks_per_worker, threads);
  plan->parts = 1;
  if (threads > 1 && plan->decode_rows != 0) {
    // One long sequence may be alone among short ones.
    const size_t share = problem.ragged != 0 ? 1 : plan->heads;
    plan->parts = std::clamp<size_t>((wanted + share - 1) / share, 1,
                                     std::max<size_t>(ChunksOf(problem), 1));
  }
  plan->tasks = Times(plan->heads, std::max<size_t>(plan->row_blocks, 1));
  if (plan->parts > 1) {
    plan->tasks = std::max(
        plan->tasks,
        std::min(Times(plan->heads, plan->parts), Plus(plan->heads, wanted)));
  }
  plan->workers = std::min(threads, plan->tasks);
}

heed_status LayOutWorkspace(heed_plan* plan) {
  const heed_problem& problem = plan->problem;
  WorkspaceLayout& at = plan->workspace;
  SizeCopies(plan);
  if (problem.ragged != 0 && CopiesBytes(at) > kMaxRaggedCopies) {
    Tile& tile = plan->choice.tile;
    if (tile.pack_k == Pack::kCall) tile.pack_k = Pack::kTile;
    if (tile.pack_v == Pack::kCall) tile.pack_v = Pack::kTile;
    SizeCopies(plan);
  }
  const size_t slice = Plus(ScratchBytes(*plan), kSliceGap + 63);
  at.slice_bytes = slice & ~size_t{63};
  at.copies = Times(plan->workers, at.slice_bytes);
  at.states = Plus(at.copies, CopiesBytes(at));
  if (plan->parts > 1) {
    // A head is cut if it is more than 1 / (tasks wanted) of the work, so that
    // fewer than those are.
    at.slots = std::min(
        plan->heads, Times(plan->choice.cut.tasks_per_worker, plan->workers));
    const size_t state =
        Times(plan->kernels.state_floats(plan->decode_rows,
                                         static_cast<size_t>(problem.dim_v)),
              sizeof(float));
    at.slot_bytes = ToLine(Times(state, ChunksOf(problem)));
  }
  at.counts = Plus(at.states, Times(at.slots, at.slot_bytes));
  at.list = Plus(at.counts, Times(at.slots, kCountBytes));
  if (problem.ragged != 0 && plan->workers > 1) {
    at.list_room = TaskListRoom(*plan);
  }
  at.bytes = Plus(at.list, ToLine(Times(at.list_room, sizeof(ListedTask))));
  // The sum sticks; half the address space is more than anyone has.
  if (slice == SIZE_MAX || at.bytes > SIZE_MAX / 2) {
    return Fail(HEED_UNSUPPORTED,
                "the workspace of %zu workers for %zu kv heads overflows "
                "size_t",
                plan->workers, plan->heads);
  }
  return HEED_OK;
}

}  // namespace heed
