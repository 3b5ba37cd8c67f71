// heed_block_create(): packs a checkpoint's weights.
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "runtime/block.h"
#include "runtime/error.h"
#include "runtime/options.h"
#include "runtime/rope_angles.h"
#include "runtime/runner_tbb.h"
#include "runtime/targets.h"

namespace heed {
namespace {

heed_status FindTokenKernels(const char* name, TokenKernels* kernels) {
  Kernels found;
  const heed_status status = FindTarget(name, DType::kF32, &found);
  if (status != HEED_OK) return status;
  for (const int64_t target : RunnableTargets()) {
    *kernels = GetTokenKernels(target);
    if (std::strcmp(kernels->target, found.target) == 0) break;
  }
  return HEED_OK;
}

heed_status PackWeights(const heed_block_desc& desc, const heed_runner& runner,
                        size_t workers, heed_block* block) {
  const auto d_model = static_cast<size_t>(desc.d_model);
  const auto width_q = static_cast<size_t>(desc.heads_q * desc.dim_qk);
  const auto width_k = static_cast<size_t>(desc.heads_kv * desc.dim_qk);
  const auto width_v = static_cast<size_t>(desc.heads_kv * desc.dim_v);
  const MatrixPart packed[] = {{&desc.qkv, width_q + width_k + width_v}};
  const MatrixPart apart[] = {
      {&desc.q, width_q}, {&desc.k, width_k}, {&desc.v, width_v}};
  const bool is_packed = desc.qkv.data != nullptr;
  heed_status status =
      PackMatrix(is_packed ? packed : apart, is_packed ? 1 : 3, d_model,
                 block->kernels, runner, workers, &block->qkv);
  if (status != HEED_OK) return status;
  const MatrixPart out[] = {{&desc.out, d_model}};
  return PackMatrix(out, 1, static_cast<size_t>(desc.heads_q * desc.dim_v),
                    block->kernels, runner, workers, &block->out);
}

// What the caller's pointers meant is known by now; they may soon dangle.
void ForgetPointers(heed_block* block) {
  heed_block_desc& desc = block->desc;
  desc.norm_gain = desc.norm_bias = heed_vector{};
  desc.qkv = desc.q = desc.k = desc.v = desc.out = heed_matrix{};
  desc.alibi_slopes = block->slopes.empty() ? nullptr : block->slopes.data();
  desc.sinks = block->sinks.empty() ? nullptr : block->sinks.data();
}

heed_status Create(const heed_block_desc* desc, const heed_options* options,
                   heed_block** result) {
  if (result == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT, "block is NULL; expected an address");
  }
  *result = nullptr;
  if (desc == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc is NULL; expected a heed_block_desc");
  }
  heed_options chosen;
  heed_status status = ValidateDesc(*desc);
  if (status == HEED_OK) status = ResolveOptions(options, &chosen);
  if (status != HEED_OK) return status;

  auto block = std::make_unique<heed_block>();
  block->desc = *desc;
  status = FindTokenKernels(chosen.target, &block->kernels);
  if (status != HEED_OK) return status;
  const heed_runner runner =
      chosen.runner != nullptr ? *chosen.runner : TbbRunner();
  status = PackWeights(*desc, runner, static_cast<size_t>(ThreadsFor(chosen)),
                       block.get());
  if (status != HEED_OK) return status;
  const auto width = static_cast<size_t>(desc->d_model);
  if (desc->norm != HEED_NORM_NONE) {
    block->gain.resize(width);
    block->bias.resize(width);
    CopyVector(desc->norm_gain, width, 1.0f, block->gain.data());
    CopyVector(desc->norm_bias, width, 0.0f, block->bias.data());
  }
  if (desc->rope != HEED_ROPE_NONE) block->turns = RopeTurns(*desc);
  const auto heads = static_cast<size_t>(desc->heads_q);
  if (desc->alibi_slopes != nullptr) {
    block->slopes.assign(desc->alibi_slopes, desc->alibi_slopes + heads);
  }
  if (desc->sinks != nullptr) {
    block->sinks.assign(desc->sinks, desc->sinks + heads);
  }
  ForgetPointers(block.get());
  *result = block.release();
  return HEED_OK;
}

}  // namespace
}  // namespace heed

extern "C" {

heed_status heed_block_create(const heed_block_desc* desc,
                              const heed_options* options, heed_block** block) {
  try {
    return heed::Create(desc, options, block);
  } catch (const std::bad_alloc&) {
    return heed::Fail(HEED_OUT_OF_MEMORY, "no memory for a block's weights");
  } catch (const std::exception& error) {
    return heed::Fail(HEED_INTERNAL, "heed_block_create: %s", error.what());
  } catch (...) {
    return heed::Fail(HEED_INTERNAL, "heed_block_create: unknown exception");
  }
}

void heed_block_destroy(heed_block* block) { delete block; }

}  // extern "C"
