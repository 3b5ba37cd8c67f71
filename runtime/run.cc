// heed_plan_run(): hands out a plan's tasks and binds each to the call's data.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <new>

#include "runtime/call.h"
#include "runtime/error.h"
#include "runtime/plan.h"
#include "runtime/problem.h"

namespace heed {
namespace {

// One run, on the stack of heed_plan_run(). The counter has a cache line of its
// own: every worker writes it, and reads the rest for each task.
struct Run {
  const heed_plan* plan;
  heed_call call;
  int64_t end_key;
  size_t seen_keys;  // the last token sees keys [0, seen_keys) at most
  alignas(64) std::atomic<size_t> next_pack{0};
  alignas(64) std::atomic<size_t> next{0};
};

// Keys that a worker copies in one go: what Kernels::pack asks for, a chunk.
constexpr size_t kPackKeys = kChunk;

// Where a query token's visible keys end, relative to the token. Cut to
// [-len_q, len_k]: beyond it every token sees no key, or all of them, and the
// kernels' i + end_key cannot overflow.
int64_t EndKey(const heed_problem& problem, const heed_call& call) {
  int64_t offset;
  switch (problem.causal) {
    case HEED_CAUSAL_TOP_LEFT:
      offset = 0;
      break;
    case HEED_CAUSAL_BOTTOM_RIGHT:
      offset = problem.len_k - problem.len_q;
      break;
    case HEED_CAUSAL_OFFSET:
      offset = call.causal_offset;
      break;
    default:
      return kNoBound;
  }
  if (offset >= problem.len_k) return problem.len_k;
  return std::clamp(offset + 1, -problem.len_q, problem.len_k);
}

// Token 0 of a head, of elements of so many bytes.
const void* At(const heed_input& tensor, int64_t element, int64_t batch,
               int64_t head) {
  if (tensor.data == nullptr) return nullptr;
  return static_cast<const char*>(tensor.data) +
         element * (batch * tensor.stride_batch + head * tensor.stride_head);
}

void* At(const heed_output& tensor, int64_t element, int64_t batch,
         int64_t head) {
  if (tensor.data == nullptr) return nullptr;
  return static_cast<char*>(tensor.data) +
         element * (batch * tensor.stride_batch + head * tensor.stride_head);
}

// The part of a block that is the same for all tasks of a run.
Block CommonBlock(const Run& run) {
  const heed_plan& plan = *run.plan;
  const heed_call& call = run.call;
  Block block{};
  block.q_stride_token = call.q.stride_token;
  block.q_stride_head = call.q.stride_head;
  block.k_stride = call.k.stride_token;
  block.v_stride = call.v.stride_token;
  block.out_stride_token = call.out.stride_token;
  block.out_stride_head = call.out.stride_head;
  block.lse_stride_token = call.lse.stride_token;
  block.lse_stride_head = call.lse.stride_head;
  block.group = plan.group;
  block.len_k = static_cast<size_t>(plan.problem.len_k);
  block.dim_qk = static_cast<size_t>(plan.problem.dim_qk);
  block.dim_v = static_cast<size_t>(plan.problem.dim_v);
  block.first_key = kNoBound;
  block.end_key = run.end_key;
  block.q_scale = plan.q_scale;
  block.tile = plan.choice.tile;
  return block;
}

// Points a block at one kv head: its k, v and their copies.
void TakeHead(const Run& run, int64_t batch, int64_t kv_head, Block* block) {
  const heed_plan& plan = *run.plan;
  const heed_call& call = run.call;
  const int64_t element = ElementBytes(plan.problem.dtype);
  const int64_t first_head = kv_head * static_cast<int64_t>(plan.group);
  block->q = At(call.q, element, batch, first_head);
  block->k = At(call.k, element, batch, kv_head);
  block->v = At(call.v, element, batch, kv_head);
  block->out = At(call.out, element, batch, first_head);
  block->lse = static_cast<float*>(At(call.lse, 4, batch, first_head));
  const size_t place =
      plan.packed_heads == 1
          ? 0
          : static_cast<size_t>(batch * plan.problem.heads_kv + kv_head);
  char* packed = static_cast<char*>(call.workspace) +
                 plan.workers * plan.slice_bytes +
                 place * (plan.packed_k_bytes + plan.packed_v_bytes);
  if (plan.packed_k_bytes != 0) {
    block->packed_k = reinterpret_cast<float*>(packed);
  }
  if (plan.packed_v_bytes != 0) {
    block->packed_v = reinterpret_cast<float*>(packed + plan.packed_k_bytes);
  }
}

bool HasCopies(const heed_plan& plan) {
  return plan.packed_k_bytes + plan.packed_v_bytes != 0;
}

// Makes copies until all heads have theirs.
void PackSome(void* context, size_t /*worker*/) {
  Run& run = *static_cast<Run*>(context);
  const heed_plan& plan = *run.plan;
  Block block = CommonBlock(run);
  const size_t pieces = (run.seen_keys + kPackKeys - 1) / kPackKeys;
  for (size_t position;
       (position = run.next_pack.fetch_add(1, std::memory_order_relaxed)) <
       pieces * plan.heads;) {
    const auto head = static_cast<int64_t>(position / pieces);
    TakeHead(run, head / plan.problem.heads_kv, head % plan.problem.heads_kv,
             &block);
    const size_t begin = position % pieces * kPackKeys;
    plan.kernels.pack(block, begin, std::min(begin + kPackKeys, run.seen_keys));
  }
}

// Takes tasks until none is left.
void Work(void* context, size_t worker) {
  Run& run = *static_cast<Run*>(context);
  const heed_plan& plan = *run.plan;
  Block block = CommonBlock(run);
  block.scratch =
      static_cast<char*>(run.call.workspace) + worker * plan.slice_bytes;
  const bool packs = plan.workers == 1 && HasCopies(plan);
  // Relaxed: the counter orders nothing but itself, and the runner's return
  // orders the outputs.
  for (size_t position; (position = run.next.fetch_add(
                             1, std::memory_order_relaxed)) < plan.tasks;) {
    const TaskPlace place = PlaceOf(plan, position);
    TakeHead(run, place.batch, place.kv_head, &block);
    block.row_begin = place.row_begin;
    block.rows = place.rows;
    if (packs && place.row_begin == 0)
      plan.kernels.pack(block, 0, run.seen_keys);
    plan.kernels.attend(block);
  }
}

heed_status RunOn(const heed_runner& runner, size_t workers,
                  void (*task)(void*, size_t), const std::atomic<size_t>& next,
                  size_t tasks, Run* run) {
  runner.run(runner.runner_ctx, workers, task, run);
  const size_t taken = next.load(std::memory_order_relaxed);
  if (taken >= tasks) return HEED_OK;
  return Fail(HEED_INTERNAL,
              "the runner returned with %zu of %zu tasks never started",
              tasks - taken, tasks);
}

// Keys that the last query token may see; a packed copy needs no more.
size_t SeenKeys(const heed_problem& problem, int64_t end_key) {
  if (end_key == kNoBound) return static_cast<size_t>(problem.len_k);
  return static_cast<size_t>(
      std::clamp<int64_t>(problem.len_q - 1 + end_key, 0, problem.len_k));
}

heed_status Execute(const heed_plan& plan, const heed_call& call) {
  // Nothing to write: no row, or rows of no value whose lse is not wanted.
  if (plan.tasks == 0) return HEED_OK;
  if (plan.problem.dim_v == 0 && call.lse.data == nullptr) return HEED_OK;

  const int64_t end_key = EndKey(plan.problem, call);
  Run run{&plan, WithoutUnusedStrides(plan.problem, call), end_key,
          SeenKeys(plan.problem, end_key)};
  if (plan.workers == 1) {
    Work(&run, 0);
    return HEED_OK;
  }
  if (HasCopies(plan)) {
    const size_t pieces = (run.seen_keys + kPackKeys - 1) / kPackKeys;
    const heed_status status = RunOn(plan.runner, plan.workers, PackSome,
                                     run.next_pack, pieces * plan.heads, &run);
    if (status != HEED_OK) return status;
  }
  return RunOn(plan.runner, plan.workers, Work, run.next, plan.tasks, &run);
}

}  // namespace
}  // namespace heed

extern "C" heed_status heed_plan_run(const heed_plan* plan,
                                     const heed_call* call) {
  if (plan == nullptr || call == nullptr) {
    return heed::Fail(HEED_INVALID_ARGUMENT, "%s is NULL; expected a %s",
                      plan == nullptr ? "plan" : "call",
                      plan == nullptr ? "heed_plan" : "heed_call");
  }
  try {
    const heed_status status = heed::ValidateCall(
        plan->problem, *call, heed_plan_workspace_size(plan));
    return status == HEED_OK ? heed::Execute(*plan, *call) : status;
  } catch (const std::bad_alloc&) {
    return heed::Fail(HEED_OUT_OF_MEMORY, "the runner found no memory");
  } catch (const std::exception& error) {
    return heed::Fail(HEED_INTERNAL, "the runner threw: %s", error.what());
  } catch (...) {
    return heed::Fail(HEED_INTERNAL, "the runner threw");
  }
}
