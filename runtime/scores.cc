// heed_scores(): a call's scores or weights, to look at.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "runtime/bind.h"
#include "runtime/call.h"
#include "runtime/error.h"
#include "runtime/free_memory.h"
#include "runtime/lengths.h"
#include "runtime/plan.h"
#include "runtime/problem.h"
#include "runtime/sequence.h"
#include "runtime/targets.h"

namespace heed {
namespace {

constexpr size_t kRowsAtOnce = 16;

ScoreStage StageOf(heed_score_stage stage) {
  switch (stage) {
    case HEED_SCORES_SCALED:
      return ScoreStage::kScaled;
    case HEED_SCORES_CAPPED:
      return ScoreStage::kCapped;
    case HEED_SCORES_BIASED:
      return ScoreStage::kBiased;
    default:
      return ScoreStage::kWeights;
  }
}

heed_status Validate(const heed_problem& problem, const heed_call& call,
                     const heed_output& scores) {
  const heed_status status = ValidateCall(problem, call, 0, &scores);
  if (status != HEED_OK || problem.page_size == 0) return status;
  // Keys that no row sees are shown too.
  for (int64_t b = 0; b < problem.batch; ++b) {
    const Sequence sequence = SequenceOf(problem, call, b);
    const heed_status pages =
        ValidatePages("call", call.block_table, problem.page_size, b,
                      sequence.len_k, 0, sequence.len_k);
    if (pages != HEED_OK) return pages;
  }
  return HEED_OK;
}

heed_status Show(const heed_plan& plan, const heed_call& call, ScoreStage stage,
                 const heed_output& scores) {
  const heed_problem& problem = plan.problem;
  const size_t bytes = plan.kernels.decode_scratch_bytes(
      kRowsAtOnce, static_cast<size_t>(problem.dim_qk), 0);
  const std::unique_ptr<void, FreeMemory> scratch(
      std::aligned_alloc(64, (bytes + 63) & ~size_t{63}));
  if (scratch == nullptr) {
    return Fail(HEED_OUT_OF_MEMORY, "no memory for %zu bytes of scratch",
                bytes);
  }
  Block block = CommonBlock(plan, call);
  block.scratch = scratch.get();
  for (int64_t b = 0; b < problem.batch; ++b) {
    const Sequence sequence = SequenceOf(problem, call, b);
    const size_t rows = static_cast<size_t>(sequence.len_q) * plan.group;
    for (int64_t head = 0; head < problem.heads_kv; ++head) {
      Bind(plan, call, sequence, head, &block);
      float* first =
          static_cast<float*>(scores.data) + b * scores.stride_batch +
          head * static_cast<int64_t>(plan.group) * scores.stride_head;
      for (size_t row = 0; row < rows; row += kRowsAtOnce) {
        block.row_begin = row;
        block.rows = std::min(kRowsAtOnce, rows - row);
        plan.kernels.show_scores(block, stage, first, scores.stride_token,
                                 scores.stride_head);
      }
    }
  }
  return HEED_OK;
}

heed_status Scores(const heed_problem* problem, const heed_options* options,
                   const heed_call* call, heed_score_stage stage,
                   const heed_output* scores) {
  const struct {
    const char* name;
    const void* value;
  } needed[] = {{"problem", problem}, {"call", call}, {"scores", scores}};
  for (const auto& argument : needed) {
    if (argument.value == nullptr) {
      return Fail(HEED_INVALID_ARGUMENT, "%s is NULL; expected an address",
                  argument.name);
    }
  }
  if (stage < HEED_SCORES_SCALED || stage > HEED_SCORES_WEIGHTS) {
    return Fail(HEED_INVALID_ARGUMENT,
                "stage is %d; expected HEED_SCORES_SCALED (1), _CAPPED (2), "
                "_BIASED (3) or _WEIGHTS (4)",
                static_cast<int>(stage));
  }
  heed_status status = ValidateProblem(*problem);
  if (status != HEED_OK) return status;

  // Without values nothing of v, out and lse is looked at.
  heed_plan plan{};
  plan.problem = *problem;
  plan.problem.dim_v = 0;
  heed_call shown = *call;
  shown.lse = {};
  shown.workspace = nullptr;
  shown.workspace_size = 0;
  status = Validate(plan.problem, shown, *scores);
  if (status != HEED_OK) return status;
  status = FindTarget(options != nullptr ? options->target : nullptr,
                      KernelDType(problem->dtype), &plan.kernels);
  if (status != HEED_OK || HasNoRows(*problem)) return status;
  plan.group = static_cast<size_t>(Group(*problem));
  plan.q_scale = QueryScale(*problem);
  return Show(plan, WithoutUnusedStrides(plan.problem, shown), StageOf(stage),
              *scores);
}

}  // namespace
}  // namespace heed

extern "C" heed_status heed_scores(const heed_problem* problem,
                                   const heed_options* options,
                                   const heed_call* call,
                                   heed_score_stage stage,
                                   const heed_output* scores) {
  try {
    return heed::Scores(problem, options, call, stage, scores);
  } catch (const std::bad_alloc&) {
    return heed::Fail(HEED_OUT_OF_MEMORY, "no memory to show scores");
  } catch (...) {
    return heed::Fail(HEED_INTERNAL, "heed_scores: unknown exception");
  }
}
