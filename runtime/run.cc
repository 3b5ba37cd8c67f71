// heed_plan_run(): hands out a plan's tasks and binds each to the call's data.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <new>

#include "runtime/bind.h"
#include "runtime/call.h"
#include "runtime/error.h"
#include "runtime/plan.h"
#include "runtime/sequence.h"
#include "runtime/task_list.h"

namespace heed {
namespace {

// One run, on the stack of heed_plan_run(). The counters have cache lines of
// their own: every worker writes them, and reads the rest for each task.
struct Run {
  const heed_plan* plan;
  heed_call call;  // WithoutUnusedStrides()
  TaskList list;   // of a ragged problem on several workers
  size_t parts;    // of each kv head, where all are decoded and not listed
  size_t pieces;   // in which each kv head's keys are copied
  size_t tasks;
  alignas(64) std::atomic<size_t> next_pack{0};
  alignas(64) std::atomic<size_t> next{0};
};

// Keys that a worker copies in one go: what Kernels::pack asks for, a chunk.
constexpr size_t kPackKeys = kChunk;

template <typename T>
T* InWorkspace(const Run& run, size_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(run.call.workspace) + offset);
}

bool HasCopies(const heed_plan& plan) {
  return plan.workspace.packed_heads != 0;
}

// Copies of keys [key_begin, key_end) of the block's kv head, those that a row
// sees and those before them in their chunk.
void CopyKeys(const heed_plan& plan, const Sequence& sequence, size_t key_begin,
              size_t key_end, const Block& block) {
  const size_t begin =
      std::max(key_begin, sequence.seen_begin / kChunk * kChunk);
  const size_t end = std::min(key_end, sequence.seen_end);
  if (begin < end) plan.kernels.pack(block, begin, end);
}

// Makes copies until all heads have theirs.
void PackSome(void* context, size_t /*worker*/) {
  Run& run = *static_cast<Run*>(context);
  const heed_plan& plan = *run.plan;
  const auto heads_kv = static_cast<size_t>(plan.problem.heads_kv);
  Block block = CommonBlock(plan, run.call);
  for (size_t position;
       (position = run.next_pack.fetch_add(1, std::memory_order_relaxed)) <
       run.pieces * plan.heads;) {
    const size_t head = position / run.pieces;
    const Sequence sequence = SequenceOf(plan.problem, run.call,
                                         static_cast<int64_t>(head / heads_kv));
    if (CutSequence(plan, sequence).decodes) continue;
    Bind(plan, run.call, sequence, static_cast<int64_t>(head % heads_kv),
         &block);
    const size_t key = position % run.pieces * kPackKeys;
    CopyKeys(plan, sequence, key, key + kPackKeys, block);
  }
}

// Runs part `place.part` of a decode that is cut over keys; merges if it is the
// last to finish.
void DecodePart(const Run& run, const Sequence& sequence,
                const TaskPlace& place, const Block& block) {
  const heed_plan& plan = *run.plan;
  const WorkspaceLayout& at = plan.workspace;
  size_t begin, end;
  SeenChunks(sequence, &begin, &end);
  const size_t chunks = end - begin;
  float* states =
      InWorkspace<float>(run, at.states + place.slot * at.slot_bytes);
  plan.kernels.decode_part(block, begin + chunks * place.part / place.parts,
                           begin + chunks * (place.part + 1) / place.parts,
                           states);
  // Whoever counts last sees what all others wrote before they counted.
  auto* done = InWorkspace<std::atomic<size_t>>(
      run, at.counts + place.slot * kCountBytes);
  if (done->fetch_add(1, std::memory_order_acq_rel) + 1 == place.parts) {
    plan.kernels.merge(block, end, states);
  }
}

void RunTask(const Run& run, const Sequence& sequence, const TaskPlace& place,
             Block* block) {
  block->row_begin = place.row_begin;
  block->rows = place.rows;
  if (place.parts == 0) {
    run.plan->kernels.attend(*block);
  } else if (place.parts == 1) {
    run.plan->kernels.decode(*block);
  } else {
    DecodePart(run, sequence, place, *block);
  }
}

// The task that is `position`-th in line, of sequences of the same length.
TaskPlace CountOff(const Run& run, size_t position, int64_t* kv_head) {
  const heed_plan& plan = *run.plan;
  size_t head, rest;
  if (run.parts > 1 || plan.problem.causal == HEED_CAUSAL_NONE) {
    const size_t per_head = run.tasks / plan.heads;
    head = position / per_head;
    rest = position % per_head;
  } else {
    // The last row blocks of all heads come first: they see the most keys,
    // whatever the offset, and a long task that starts last would keep the
    // others waiting.
    head = position % plan.heads;
    rest = run.tasks / plan.heads - 1 - position / plan.heads;
  }
  const auto heads_kv = static_cast<size_t>(plan.problem.heads_kv);
  *kv_head = static_cast<int64_t>(head % heads_kv);
  TaskPlace place{};
  place.batch = static_cast<int64_t>(head / heads_kv);
  if (plan.row_blocks == 0) {
    place.rows = plan.rows;
    place.parts = run.parts;
    place.part = rest;
    place.slot = head;
  } else {
    const size_t row_block = plan.choice.tile.row_block;
    place.row_begin = rest * row_block;
    place.rows = std::min(row_block, plan.rows - place.row_begin);
  }
  return place;
}

// The same from the list; a slot for each kv head.
TaskPlace FromList(const Run& run, size_t position, int64_t* kv_head) {
  const auto heads_kv = static_cast<size_t>(run.plan->problem.heads_kv);
  TaskPlace place = run.list.tasks[position / heads_kv].place;
  *kv_head = static_cast<int64_t>(position % heads_kv);
  place.slot += position % heads_kv;
  return place;
}

// Takes tasks until none is left.
void Work(void* context, size_t worker) {
  Run& run = *static_cast<Run*>(context);
  const heed_plan& plan = *run.plan;
  Block block = CommonBlock(plan, run.call);
  block.scratch = InWorkspace<char>(run, worker * plan.workspace.slice_bytes);
  // Relaxed: the counter orders nothing but itself, and the runner's return
  // orders the outputs.
  for (size_t position; (position = run.next.fetch_add(
                             1, std::memory_order_relaxed)) < run.tasks;) {
    int64_t kv_head;
    const TaskPlace place = run.list.tasks != nullptr
                                ? FromList(run, position, &kv_head)
                                : CountOff(run, position, &kv_head);
    const Sequence sequence = SequenceOf(plan.problem, run.call, place.batch);
    Bind(plan, run.call, sequence, kv_head, &block);
    RunTask(run, sequence, place, &block);
  }
}

// All tasks on this thread: a kv head's row blocks follow each other, so that
// its keys and values stay in the cache, and its copies serve them all.
void WorkAlone(const Run& run) {
  const heed_plan& plan = *run.plan;
  Block block = CommonBlock(plan, run.call);
  block.scratch = run.call.workspace;
  for (int64_t batch = 0; batch < plan.problem.batch; ++batch) {
    const Sequence sequence = SequenceOf(plan.problem, run.call, batch);
    const SequenceCut cut = CutSequence(plan, sequence);
    if (cut.blocks == 0) continue;
    for (int64_t head = 0; head < plan.problem.heads_kv; ++head) {
      Bind(plan, run.call, sequence, head, &block);
      if (HasCopies(plan) && !cut.decodes) {
        CopyKeys(plan, sequence, 0, sequence.seen_end, block);
      }
      for (size_t i = 0; i < cut.blocks; ++i) {
        RunTask(run, sequence, BlockPlace(sequence, cut, i), &block);
      }
    }
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

// Counts the tasks of sequences of the same length.
void CountTasks(const heed_plan& plan, Run* run) {
  run->parts = 1;
  if (plan.parts > 1) {
    // Where keys are hidden there may be fewer chunks than parts.
    size_t begin, end;
    SeenChunks(SequenceOf(plan.problem, run->call, 0), &begin, &end);
    run->parts = std::clamp<size_t>(end - begin, 1, plan.parts);
  }
  run->tasks = plan.heads * std::max(plan.row_blocks, run->parts);
}

heed_status WorkTogether(const heed_plan& plan, Run* run) {
  size_t slots;
  if (plan.workspace.list_room != 0) {
    run->list = ListTasks(plan, run->call,
                          InWorkspace<ListedTask>(*run, plan.workspace.list));
    run->tasks = run->list.count * static_cast<size_t>(plan.problem.heads_kv);
    slots = run->list.slots;
  } else {
    CountTasks(plan, run);
    slots = run->parts > 1 ? plan.heads : 0;
  }
  for (size_t slot = 0; slot < slots; ++slot) {
    new (InWorkspace<void>(*run, plan.workspace.counts + slot * kCountBytes))
        std::atomic<size_t>(0);
  }
  if (HasCopies(plan)) {
    const auto len_k = static_cast<size_t>(plan.problem.len_k);
    run->pieces = (len_k + kPackKeys - 1) / kPackKeys;
    const heed_status status =
        RunOn(plan.runner, plan.workers, PackSome, run->next_pack,
              run->pieces * plan.heads, run);
    if (status != HEED_OK) return status;
  }
  return RunOn(plan.runner, plan.workers, Work, run->next, run->tasks, run);
}

heed_status Execute(const heed_plan& plan, const heed_call& call) {
  // Nothing to write: no row, or rows of no value whose lse is not wanted.
  if (plan.tasks == 0) return HEED_OK;
  if (plan.problem.dim_v == 0 && call.lse.data == nullptr) return HEED_OK;

  Run run{&plan, WithoutUnusedStrides(plan.problem, call), {}, 1, 0, 0};
  if (plan.workers > 1) return WorkTogether(plan, &run);
  WorkAlone(run);
  return HEED_OK;
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
