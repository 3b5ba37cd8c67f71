// heed_block_run(): the stages of a block, one after the other, each by all
// workers.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>

#include "runtime/block.h"
#include "runtime/counted_tasks.h"
#include "runtime/error.h"
#include "runtime/rope_angles.h"
#include "runtime/tensor.h"

namespace heed {
namespace {

struct BlockRun {
  const heed_block_plan* plan;
  const heed_block_call* call;

  template <typename T>
  T* InWorkspace(size_t offset) const {
    return reinterpret_cast<T*>(static_cast<char*>(call->workspace) + offset);
  }
  const heed_block& block() const { return *plan->block; }
  int64_t BatchOf(size_t row) const {
    return static_cast<int64_t>(row) / plan->len;
  }
  int64_t TokenOf(size_t row) const {
    return static_cast<int64_t>(row) % plan->len;
  }
  int64_t PositionOf(size_t row) const {
    const int64_t* positions = call->positions;
    return (positions == nullptr ? 0 : positions[BatchOf(row)]) + TokenOf(row);
  }
  // A token of a tensor without heads; null if there is none.
  template <typename InputOrOutput>
  auto* TokenIn(const InputOrOutput& tensor, size_t row) const {
    return At(tensor, sizeof(float), BatchOf(row), 0, TokenOf(row));
  }
  float* Tokens(size_t row) const {
    const BlockLayout& at = plan->workspace;
    return InWorkspace<float>(at.tokens) + row * at.tokens_stride;
  }
  float* Qkv(size_t row) const {
    const BlockLayout& at = plan->workspace;
    return InWorkspace<float>(at.qkv) + row * at.qkv_stride;
  }
  float* Z(size_t row) const {
    const BlockLayout& at = plan->workspace;
    return InWorkspace<float>(at.z) + row * at.z_stride;
  }
};

// Runs visit(run, worker, row) for every token.
template <void (*visit)(const BlockRun&, size_t worker, size_t row)>
heed_status ForEachToken(const BlockRun& run) {
  const auto task = [](const void* context, size_t worker, size_t number) {
    const auto& r = *static_cast<const BlockRun*>(context);
    const size_t begin = number * kTokensAtOnce;
    const size_t end = std::min(begin + kTokensAtOnce, r.plan->rows);
    for (size_t row = begin; row < end; ++row) visit(r, worker, row);
  };
  const size_t tasks = (run.plan->rows + kTokensAtOnce - 1) / kTokensAtOnce;
  return RunCounted(run.plan->runner, run.plan->workers, tasks, task, &run);
}

void CopyFloats(const float* from, size_t count, void* to) {
  if (to != nullptr) std::memcpy(to, from, count * sizeof(float));
}

NormTask NormOf(const heed_block& block, bool here) {
  NormTask task{};
  task.kind = !here                                ? NormKind::kNone
              : block.desc.norm == HEED_NORM_LAYER ? NormKind::kLayer
                                                   : NormKind::kRms;
  task.width = static_cast<size_t>(block.desc.d_model);
  task.eps = static_cast<float>(block.desc.norm_eps);
  task.gain = block.gain.data();
  task.bias = block.bias.data();
  return task;
}

// What is projected: x, or its norm.
void NormToken(const BlockRun& run, size_t, size_t row) {
  const heed_block& block = run.block();
  const bool here = NormsBefore(block.desc);
  const NormTask task = NormOf(block, here);
  const auto* x = static_cast<const float*>(run.TokenIn(run.call->x, row));
  block.kernels.norm(task, x, run.Tokens(row));
  if (here) {
    CopyFloats(run.Tokens(row), task.width, run.TokenIn(run.call->ln, row));
  }
}

// y of a post-norm.
void NormResult(const BlockRun& run, size_t, size_t row) {
  const heed_block& block = run.block();
  const NormTask task = NormOf(block, true);
  auto* y = static_cast<float*>(run.TokenIn(run.call->y, row));
  block.kernels.norm(task, run.Tokens(row), y);
  CopyFloats(y, task.width, run.TokenIn(run.call->ln, row));
}

// Copies heads that lie side by side, to a place in a tensor.
void CopyHeads(const float* from, int64_t heads, int64_t dim, int64_t batch,
               int64_t token, const heed_output& to) {
  if (to.data == nullptr) return;
  for (int64_t head = 0; head < heads; ++head) {
    CopyFloats(from + head * dim, static_cast<size_t>(dim),
               At(to, sizeof(float), batch, head, token));
  }
}

// RoPE, the cache, and the q, k and v that are wanted.
void PlaceToken(const BlockRun& run, size_t worker, size_t row) {
  const heed_block& block = run.block();
  const heed_block_desc& desc = block.desc;
  const heed_block_call& call = *run.call;
  const int64_t batch = run.BatchOf(row), token = run.TokenOf(row);
  float* q = run.Qkv(row);
  float* k = q + desc.heads_q * desc.dim_qk;
  const float* v = k + desc.heads_kv * desc.dim_qk;
  if (!block.turns.empty()) {
    const size_t pairs = block.turns.size();
    auto* cosine =
        run.InWorkspace<float>(worker * run.plan->workspace.slice_bytes);
    float* sine = cosine + pairs;
    RopeAngles(block.turns, run.PositionOf(row), cosine, sine);
    const auto turn = desc.rope == HEED_ROPE_INTERLEAVED
                          ? block.kernels.turn_interleaved
                          : block.kernels.turn_halves;
    // q and k lie side by side.
    for (int64_t head = 0; head < desc.heads_q + desc.heads_kv; ++head) {
      turn(cosine, sine, pairs, q + head * desc.dim_qk);
    }
  }
  CopyHeads(q, desc.heads_q, desc.dim_qk, batch, token, call.q);
  CopyHeads(k, desc.heads_kv, desc.dim_qk, batch, token, call.k);
  CopyHeads(v, desc.heads_kv, desc.dim_v, batch, token, call.v);
  if (run.plan->len_cache == 0) return;
  const int64_t key = run.PositionOf(row);
  CopyHeads(k, desc.heads_kv, desc.dim_qk, batch, key, call.k_cache);
  CopyHeads(v, desc.heads_kv, desc.dim_v, batch, key, call.v_cache);
}

void ShowZ(const BlockRun& run, size_t, size_t row) {
  const heed_block_desc& desc = run.block().desc;
  CopyHeads(run.Z(row), desc.heads_q, desc.dim_v, run.BatchOf(row),
            run.TokenOf(row), run.call->z);
}

// Part of some tokens' attn_out, while it is in the cache: the residual is
// added, and all goes where it is wanted.
void FinishBlock(const void* context, const ProjectedBlock& part) {
  const auto& run = *static_cast<const BlockRun*>(context);
  const heed_block& block = run.block();
  const heed_block_call& call = *run.call;
  const bool norms_after = NormsAfter(block.desc);
  const auto to = [&](const heed_output& tensor, size_t row) -> float* {
    auto* token = static_cast<float*>(run.TokenIn(tensor, row));
    return token == nullptr ? nullptr : token + part.column_begin;
  };
  for (size_t i = 0; i < part.rows; ++i) {
    const size_t row = part.row_begin + i;
    float* y = part.y + i * part.y_stride;
    CopyFloats(y, part.columns, to(call.attn_out, row));
    if (block.desc.residual != 0) {
      const auto* x = static_cast<const float*>(run.TokenIn(call.x, row));
      block.kernels.add(x + part.column_begin, part.columns, y);
    }
    CopyFloats(y, part.columns, to(call.resid, row));
    CopyFloats(
        y, part.columns,
        norms_after ? run.Tokens(row) + part.column_begin : to(call.y, row));
  }
}

ProjectionRun ProjectionOf(const BlockRun& run, const PackedMatrix& matrix,
                           const ProjectionCut& cut) {
  ProjectionRun projection{};
  projection.kernels = &run.block().kernels;
  projection.matrix = &matrix;
  projection.cut = cut;
  projection.context = &run;
  projection.slices = run.InWorkspace<char>(0);
  projection.slice_bytes = run.plan->workspace.slice_bytes;
  return projection;
}

heed_status ProjectQkv(const BlockRun& run) {
  const heed_block_plan& plan = *run.plan;
  ProjectionRun projection = ProjectionOf(run, plan.block->qkv, plan.qkv_cut);
  projection.x = run.Tokens(0);
  projection.x_stride = plan.workspace.tokens_stride;
  projection.y = run.Qkv(0);
  projection.y_stride = plan.workspace.qkv_stride;
  return RunProjection(projection, plan.runner, plan.workers);
}

heed_status ProjectOut(const BlockRun& run) {
  const heed_block_plan& plan = *run.plan;
  ProjectionRun projection = ProjectionOf(run, plan.block->out, plan.out_cut);
  projection.x = run.Z(0);
  projection.x_stride = plan.workspace.z_stride;
  projection.finish = FinishBlock;
  return RunProjection(projection, plan.runner, plan.workers);
}

heed_input AsInput(const heed_output& tensor) {
  return {tensor.data, tensor.stride_batch, tensor.stride_head,
          tensor.stride_token, tensor.stride_dim};
}

heed_call AttentionCall(const BlockRun& run) {
  const heed_block_plan& plan = *run.plan;
  const heed_block_desc& desc = plan.block->desc;
  const BlockLayout& at = plan.workspace;
  heed_call call;
  heed_call_init(&call);
  const auto qkv_stride = static_cast<int64_t>(at.qkv_stride);
  const auto z_stride = static_cast<int64_t>(at.z_stride);
  float* q = run.Qkv(0);
  float* k = q + desc.heads_q * desc.dim_qk;
  float* v = k + desc.heads_kv * desc.dim_qk;
  call.q = {q, plan.len * qkv_stride, desc.dim_qk, qkv_stride, 1};
  call.k = {k, plan.len * qkv_stride, desc.dim_qk, qkv_stride, 1};
  call.v = {v, plan.len * qkv_stride, desc.dim_v, qkv_stride, 1};
  call.out = {run.Z(0), plan.len * z_stride, desc.dim_v, z_stride, 1};
  if (plan.len_cache > 0) {
    call.k = AsInput(run.call->k_cache);
    call.v = AsInput(run.call->v_cache);
    auto* offsets = run.InWorkspace<int64_t>(at.offsets);
    auto* seqused = run.InWorkspace<int32_t>(at.seqused);
    for (int64_t b = 0; b < plan.batch; ++b) {
      offsets[b] = run.call->positions[b];
      seqused[b] = static_cast<int32_t>(run.call->positions[b] + plan.len);
    }
    call.causal_offsets = offsets;
    call.seqused_k = seqused;
  }
  call.alibi_slopes = desc.alibi_slopes;
  call.sinks = desc.sinks;
  call.workspace = run.InWorkspace<char>(at.attention);
  call.workspace_size = heed_plan_workspace_size(plan.attention.get());
  return call;
}

heed_status Show(const BlockRun& run, const heed_call& attention) {
  const heed_block_plan& plan = *run.plan;
  const struct {
    heed_score_stage stage;
    const heed_output& to;
  } shown[] = {{HEED_SCORES_BIASED, run.call->scores},
               {HEED_SCORES_WEIGHTS, run.call->pattern}};
  for (const auto& one : shown) {
    if (one.to.data == nullptr) continue;
    const heed_status status = heed_scores(&plan.problem, &plan.options,
                                           &attention, one.stage, &one.to);
    if (status != HEED_OK) return status;
  }
  return run.call->z.data == nullptr ? HEED_OK : ForEachToken<ShowZ>(run);
}

// Adds the time between its begin and end to a stage's.
class StageClock {
 public:
  StageClock(const BlockRun& run, heed_block_stage stage)
      : seconds_(run.call->stage_seconds == nullptr
                     ? nullptr
                     : run.call->stage_seconds + stage) {
    if (seconds_ != nullptr) begin_ = Clock::now();
  }
  ~StageClock() {
    if (seconds_ == nullptr) return;
    *seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  StageClock(const StageClock&) = delete;
  StageClock& operator=(const StageClock&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double* seconds_;
  Clock::time_point begin_;
};

bool Places(const heed_block_plan& plan, const heed_block_call& call) {
  return !plan.block->turns.empty() || plan.len_cache > 0 ||
         call.q.data != nullptr || call.k.data != nullptr ||
         call.v.data != nullptr;
}

heed_status Execute(const BlockRun& run) {
  const heed_block_plan& plan = *run.plan;
  if (run.call->stage_seconds != nullptr) {
    std::fill_n(run.call->stage_seconds, HEED_STAGE_COUNT, 0.0);
  }
  if (plan.rows == 0) return HEED_OK;
  heed_status status;
  {
    const StageClock clock(run, HEED_STAGE_NORM);
    status = ForEachToken<NormToken>(run);
  }
  if (status == HEED_OK) {
    const StageClock clock(run, HEED_STAGE_QKV);
    status = ProjectQkv(run);
  }
  if (status == HEED_OK && Places(plan, *run.call)) {
    const StageClock clock(run, HEED_STAGE_PLACE);
    status = ForEachToken<PlaceToken>(run);
  }
  if (status != HEED_OK) return status;
  const heed_call attention = AttentionCall(run);
  {
    const StageClock clock(run, HEED_STAGE_ATTENTION);
    status = heed_plan_run(plan.attention.get(), &attention);
  }
  if (status == HEED_OK) {
    const StageClock clock(run, HEED_STAGE_SHOW);
    status = Show(run, attention);
  }
  if (status == HEED_OK) {
    const StageClock clock(run, HEED_STAGE_OUT);
    status = ProjectOut(run);
  }
  if (status == HEED_OK && NormsAfter(plan.block->desc)) {
    const StageClock clock(run, HEED_STAGE_NORM);
    status = ForEachToken<NormResult>(run);
  }
  return status;
}

}  // namespace
}  // namespace heed

extern "C" heed_status heed_block_run(const heed_block_plan* plan,
                                      const heed_block_call* call) {
  if (plan == nullptr || call == nullptr) {
    return heed::Fail(HEED_INVALID_ARGUMENT, "%s is NULL; expected a %s",
                      plan == nullptr ? "plan" : "call",
                      plan == nullptr ? "heed_block_plan" : "heed_block_call");
  }
  try {
    const heed_status status = heed::ValidateBlockCall(*plan, *call);
    return status == HEED_OK ? heed::Execute({plan, call}) : status;
  } catch (const std::bad_alloc&) {
    return heed::Fail(HEED_OUT_OF_MEMORY, "the runner found no memory");
  } catch (const std::exception& error) {
    return heed::Fail(HEED_INTERNAL, "the runner threw: %s", error.what());
  } catch (...) {
    return heed::Fail(HEED_INTERNAL, "the runner threw");
  }
}
