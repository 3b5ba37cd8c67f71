// heed_block_plan_create(): a block bound to a number of tokens.
#include <algorithm>
#include <cinttypes>
#include <climits>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "runtime/block.h"
#include "runtime/error.h"
#include "runtime/machine.h"
#include "runtime/options.h"
#include "runtime/plan.h"
#include "runtime/problem.h"
#include "runtime/runner_tbb.h"
#include "runtime/snprint.h"
#include "runtime/sticky_size.h"

namespace heed {
namespace {

heed_status ValidateSizes(const heed_block& block, int64_t batch, int64_t len,
                          int64_t len_cache) {
  const struct {
    const char* name;
    int64_t value;
  } sizes[] = {{"batch", batch}, {"len", len}, {"len_cache", len_cache}};
  for (const auto& size : sizes) {
    // A sequence's keys in use are an int32_t (heed_call.seqused_k).
    if (size.value < 0 || size.value > INT32_MAX) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "%s is %" PRId64 "; expected 0 to %" PRId32, size.name,
                  size.value, INT32_MAX);
    }
  }
  if (len_cache > 0 && len > len_cache) {
    return Fail(HEED_INVALID_ARGUMENT,
                "len is %" PRId64
                "; expected at most len_cache, which is "
                "%" PRId64 ", or len_cache 0: no cache",
                len, len_cache);
  }
  const int64_t widths[] = {static_cast<int64_t>(block.qkv.columns()),
                            static_cast<int64_t>(block.out.inputs),
                            block.desc.d_model};
  for (const int64_t width : widths) {
    int64_t bytes;
    // Doubled, for the room at the ends of rows.
    if (__builtin_mul_overflow(batch * len, 8 * width, &bytes)) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "the bytes of %" PRId64 " sequences of %" PRId64
                  " tokens overflow 64 bits; expected less than 2^63",
                  batch, len);
    }
  }
  return HEED_OK;
}

heed_status LayOut(heed_block_plan* plan) {
  const heed_block& block = *plan->block;
  BlockLayout& at = plan->workspace;
  const size_t floats = std::max(
      {ProjectionFloats(block.kernels, plan->qkv_cut, /*with_y=*/false),
       ProjectionFloats(block.kernels, plan->out_cut, /*with_y=*/true),
       2 * block.turns.size()});
  at.slice_bytes = ToLine(Plus(Times(floats, sizeof(float)), kSliceGap));
  at.tokens = Times(plan->workers, at.slice_bytes);
  at.tokens_stride = ScratchStride(static_cast<size_t>(block.desc.d_model));
  at.qkv_stride = ScratchStride(block.qkv.columns());
  at.z_stride = ScratchStride(block.out.inputs);
  const auto rows_bytes = [plan](size_t stride) {
    return Times(plan->rows, Times(stride, sizeof(float)));
  };
  at.qkv = Plus(at.tokens, rows_bytes(at.tokens_stride));
  at.z = Plus(at.qkv, rows_bytes(at.qkv_stride));
  at.offsets = Plus(at.z, rows_bytes(at.z_stride));
  at.seqused = at.attention = at.offsets;
  if (plan->len_cache > 0) {
    const auto batch = static_cast<size_t>(plan->batch);
    at.seqused = Plus(at.offsets, ToLine(Times(batch, sizeof(int64_t))));
    at.attention = Plus(at.seqused, ToLine(Times(batch, sizeof(int32_t))));
  }
  at.bytes =
      Plus(at.attention, heed_plan_workspace_size(plan->attention.get()));
  if (at.bytes > SIZE_MAX / 2) {
    return Fail(HEED_UNSUPPORTED,
                "the workspace of %" PRId64 " sequences of %" PRId64
                " tokens overflows size_t",
                plan->batch, plan->len);
  }
  return HEED_OK;
}

heed_status Create(const heed_block* block, int64_t batch, int64_t len,
                   int64_t len_cache, const heed_options* options,
                   heed_block_plan** result) {
  if (result == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT, "plan is NULL; expected an address");
  }
  *result = nullptr;
  if (block == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT, "block is NULL; expected a heed_block");
  }
  heed_options chosen;
  heed_status status = ValidateSizes(*block, batch, len, len_cache);
  if (status == HEED_OK) status = ResolveOptions(options, &chosen);
  if (status != HEED_OK) return status;
  const char* own = block->kernels.target;
  if (options != nullptr && options->target != nullptr &&
      std::string(options->target) != own) {
    return Fail(HEED_INVALID_ARGUMENT,
                "options.target is \"%.40s\"; expected NULL or the block's "
                "own, which is \"%s\"",
                options->target, own);
  }
  chosen.target = own;

  auto plan = std::make_unique<heed_block_plan>();
  plan->block = block;
  plan->batch = batch;
  plan->len = len;
  plan->len_cache = len_cache;
  plan->rows = static_cast<size_t>(batch * len);
  plan->workers = plan->rows == 0 ? 0 : static_cast<size_t>(ThreadsFor(chosen));
  plan->runner = chosen.runner != nullptr ? *chosen.runner : TbbRunner();
  heed_options_init(&plan->options);
  plan->options.target = own;
  AttentionProblem(block->desc, batch, len, len_cache, &plan->problem);
  heed_plan* attention = nullptr;
  status = heed_plan_create(&plan->problem, &chosen, &attention);
  if (status != HEED_OK) return status;
  plan->attention.reset(attention);
  const size_t l2_bytes = ThisMachine().l2.bytes;
  plan->qkv_cut = CutProjection(block->kernels, block->qkv, plan->rows,
                                plan->workers, l2_bytes);
  plan->out_cut = CutProjection(block->kernels, block->out, plan->rows,
                                plan->workers, l2_bytes);
  // No more slices than tasks.
  plan->workers =
      std::min(plan->workers,
               std::max({plan->qkv_cut.tasks(), plan->out_cut.tasks(),
                         (plan->rows + kTokensAtOnce - 1) / kTokensAtOnce}));
  status = LayOut(plan.get());
  if (status != HEED_OK) return status;
  *result = plan.release();
  return HEED_OK;
}

std::string Describe(const heed_block_plan& plan) {
  const heed_block& block = *plan.block;
  const heed_block_desc& desc = block.desc;
  constexpr const char* kNorms[] = {"none", "layer", "rms"};
  constexpr const char* kRopes[] = {"none", "interleaved", "half"};
  const auto cut = [](const ProjectionCut& c) {
    return std::to_string(c.row_block) + "x" + std::to_string(c.panel_block);
  };
  const auto dtype = [](const PackedMatrix& matrix) {
    return matrix.dtype == DType::kF32   ? "f32"
           : matrix.dtype == DType::kF16 ? "f16"
                                         : "bf16";
  };
  std::string text = "block=d" + std::to_string(desc.d_model);
  text += "_norm-" + std::string(NormsAfter(desc) ? "post-" : "") +
          kNorms[desc.norm];
  text += "_qkv-" + std::string(dtype(block.qkv));
  text += "_rope-" + std::string(kRopes[desc.rope]);
  text += "_out-" + std::string(dtype(block.out));
  text += desc.residual != 0 ? "_residual" : "";
  text += " batch=" + std::to_string(plan.batch);
  text += " len=" + std::to_string(plan.len);
  text += " cache=" + std::to_string(plan.len_cache);
  text += " target=" + std::string(block.kernels.target);
  text += " threads=" + std::to_string(plan.workers);
  text += " qkv=" + cut(plan.qkv_cut) + " out=" + cut(plan.out_cut);
  text += " workspace=" + std::to_string(plan.workspace.bytes);
  std::string attention(heed_plan_describe(plan.attention.get(), nullptr, 0),
                        '\0');
  heed_plan_describe(plan.attention.get(), attention.data(),
                     attention.size() + 1);
  return text + " attention=(" + attention + ")";
}

}  // namespace
}  // namespace heed

extern "C" {

heed_status heed_block_plan_create(const heed_block* block, int64_t batch,
                                   int64_t len, int64_t len_cache,
                                   const heed_options* options,
                                   heed_block_plan** plan) {
  try {
    return heed::Create(block, batch, len, len_cache, options, plan);
  } catch (const std::bad_alloc&) {
    return heed::Fail(HEED_OUT_OF_MEMORY, "no memory for a block's plan");
  } catch (const std::exception& error) {
    return heed::Fail(HEED_INTERNAL, "heed_block_plan_create: %s",
                      error.what());
  } catch (...) {
    return heed::Fail(HEED_INTERNAL,
                      "heed_block_plan_create: unknown exception");
  }
}

void heed_block_plan_destroy(heed_block_plan* plan) { delete plan; }

size_t heed_block_plan_workspace_size(const heed_block_plan* plan) {
  return plan == nullptr ? 0 : plan->workspace.bytes;
}

size_t heed_block_plan_describe(const heed_block_plan* plan, char* text,
                                size_t size) {
  return heed::PrintNoThrow(text, size, [&] {
    return plan == nullptr ? std::string() : heed::Describe(*plan);
  });
}

}  // extern "C"
