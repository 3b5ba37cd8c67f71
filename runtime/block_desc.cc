// Validation of a block's description.
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "runtime/block.h"
#include "runtime/error.h"
#include "runtime/problem.h"

namespace heed {
namespace {

// The most of a width or a number of heads, so that their products fit.
constexpr int64_t kMaxWidth = int64_t{1} << 24;

heed_status ValidateSizes(const heed_block_desc& desc) {
  const struct {
    const char* name;
    int64_t value;
  } sizes[] = {{"d_model", desc.d_model},
               {"heads_q", desc.heads_q},
               {"heads_kv", desc.heads_kv},
               {"dim_qk", desc.dim_qk},
               {"dim_v", desc.dim_v}};
  for (const auto& size : sizes) {
    if (size.value < 1 || size.value > kMaxWidth) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "desc.%s is %" PRId64 "; expected 1 to %" PRId64, size.name,
                  size.value, kMaxWidth);
    }
  }
  if (desc.heads_q % desc.heads_kv != 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.heads_q is %" PRId64
                "; expected a multiple of heads_kv, which is %" PRId64,
                desc.heads_q, desc.heads_kv);
  }
  return HEED_OK;
}

heed_status ValidateDtype(const char* name, const char* field, int32_t dtype) {
  if (DtypeName(dtype) != nullptr) return HEED_OK;
  return Fail(HEED_INVALID_ARGUMENT,
              "desc.%s%s.dtype is %" PRId32
              "; expected HEED_F32 (1), HEED_F16 (2) or HEED_BF16 (3)",
              name, field, dtype);
}

heed_status ValidateVector(const char* name, const char* field,
                           const heed_vector& vector) {
  if (vector.reserved != 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.%s%s.reserved is %" PRId32 "; expected 0", name, field,
                vector.reserved);
  }
  if (vector.data == nullptr) return HEED_OK;
  return ValidateDtype(name, field, vector.dtype);
}

heed_status ValidateMatrix(const char* name, const heed_matrix& matrix,
                           int64_t inputs, int64_t outputs) {
  if (matrix.data == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.%s.data is NULL; expected a matrix of %" PRId64
                " inputs and %" PRId64 " outputs",
                name, inputs, outputs);
  }
  heed_status status = ValidateDtype(name, "", matrix.dtype);
  if (status != HEED_OK) return status;
  if (matrix.layout != HEED_LAYOUT_IN_OUT &&
      matrix.layout != HEED_LAYOUT_OUT_IN) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.%s.layout is %" PRId32
                "; expected HEED_LAYOUT_IN_OUT (1) or HEED_LAYOUT_OUT_IN (2)",
                name, matrix.layout);
  }
  const bool by_input = matrix.layout == HEED_LAYOUT_IN_OUT;
  const int64_t width = by_input ? outputs : inputs;
  if (matrix.stride != 0 && matrix.stride < width) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.%s.stride is %" PRId64
                "; expected 0 (dense) or at least %" PRId64
                ", the elements of a stored row",
                name, matrix.stride, width);
  }
  const int64_t stride = matrix.stride == 0 ? width : matrix.stride;
  int64_t bytes, columns;
  // Four bytes of an element, and panels of 48 or fewer columns.
  if (__builtin_mul_overflow(by_input ? inputs : outputs, stride, &bytes) ||
      __builtin_mul_overflow(bytes, int64_t{4}, &bytes) ||
      __builtin_mul_overflow(inputs, outputs + 48, &columns) ||
      __builtin_mul_overflow(columns, int64_t{4}, &columns)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.%s: the bytes of %" PRId64 " inputs, %" PRId64
                " outputs and stride %" PRId64
                " overflow 64 bits; expected less than 2^63",
                name, inputs, outputs, matrix.stride);
  }
  return ValidateVector(name, ".bias", matrix.bias);
}

heed_status ValidateMatrices(const heed_block_desc& desc) {
  const int64_t width_q = desc.heads_q * desc.dim_qk;
  const int64_t width_k = desc.heads_kv * desc.dim_qk;
  const int64_t width_v = desc.heads_kv * desc.dim_v;
  heed_status status = HEED_OK;
  if (desc.qkv.data != nullptr) {
    const struct {
      const char* name;
      const heed_matrix* matrix;
    } parts[] = {{"q", &desc.q}, {"k", &desc.k}, {"v", &desc.v}};
    for (const auto& part : parts) {
      if (part.matrix->data != nullptr) {
        return Fail(HEED_INVALID_ARGUMENT,
                    "desc.%s.data is %p; expected NULL, since desc.qkv has "
                    "the outputs of q, k and v",
                    part.name, part.matrix->data);
      }
    }
    status = ValidateMatrix("qkv", desc.qkv, desc.d_model,
                            width_q + width_k + width_v);
  } else if (desc.q.data == nullptr && desc.k.data == nullptr &&
             desc.v.data == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.qkv.data is NULL; expected a matrix of %" PRId64
                " inputs and %" PRId64 " outputs, or desc.q, .k and .v",
                desc.d_model, width_q + width_k + width_v);
  } else {
    status = ValidateMatrix("q", desc.q, desc.d_model, width_q);
    if (status == HEED_OK) {
      status = ValidateMatrix("k", desc.k, desc.d_model, width_k);
    }
    if (status == HEED_OK) {
      status = ValidateMatrix("v", desc.v, desc.d_model, width_v);
    }
  }
  if (status != HEED_OK) return status;
  return ValidateMatrix("out", desc.out, desc.heads_q * desc.dim_v,
                        desc.d_model);
}

heed_status ValidateNorm(const heed_block_desc& desc) {
  if (desc.norm < HEED_NORM_NONE || desc.norm > HEED_NORM_RMS) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.norm is %" PRId32
                "; expected HEED_NORM_NONE (0), _LAYER (1) or _RMS (2)",
                desc.norm);
  }
  if (desc.norm == HEED_NORM_NONE) return HEED_OK;
  if (desc.norm_place != HEED_NORM_PRE && desc.norm_place != HEED_NORM_POST) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.norm_place is %" PRId32
                "; expected HEED_NORM_PRE (1) or HEED_NORM_POST (2)",
                desc.norm_place);
  }
  // A NaN fails the comparison.
  if (!(desc.norm_eps >= 0 && desc.norm_eps <= 3e38)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.norm_eps is %g; expected a finite number, 0 or more",
                desc.norm_eps);
  }
  const heed_status status = ValidateVector("norm_gain", "", desc.norm_gain);
  if (status != HEED_OK) return status;
  return ValidateVector("norm_bias", "", desc.norm_bias);
}

heed_status ValidateRopeScaling(const heed_block_desc& desc) {
  if (desc.rope_scaling == HEED_ROPE_SCALING_NONE) return HEED_OK;
  const bool llama3 = desc.rope_scaling == HEED_ROPE_SCALING_LLAMA3;
  const struct {
    const char* name;
    double value;
    bool is_read;
  } factors[] = {{"rope_factor", desc.rope_factor, true},
                 {"rope_low_freq_factor", desc.rope_low_freq_factor, llama3},
                 {"rope_high_freq_factor", desc.rope_high_freq_factor, llama3}};
  for (const auto& factor : factors) {
    if (factor.is_read && !(factor.value > 0 && std::isfinite(factor.value))) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "desc.%s is %g; expected a finite number above 0",
                  factor.name, factor.value);
    }
  }
  if (!llama3) return HEED_OK;
  if (desc.rope_high_freq_factor <= desc.rope_low_freq_factor) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.rope_high_freq_factor is %g; expected more than "
                "rope_low_freq_factor, which is %g",
                desc.rope_high_freq_factor, desc.rope_low_freq_factor);
  }
  if (desc.rope_original_len < 1) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.rope_original_len is %" PRId64
                "; expected the tokens that the model was first trained for",
                desc.rope_original_len);
  }
  return HEED_OK;
}

heed_status ValidateRope(const heed_block_desc& desc) {
  if (desc.rope < HEED_ROPE_NONE || desc.rope > HEED_ROPE_HALF) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.rope is %" PRId32
                "; expected HEED_ROPE_NONE (0), _INTERLEAVED (1) or _HALF (2)",
                desc.rope);
  }
  if (desc.rope == HEED_ROPE_NONE) return HEED_OK;
  const int64_t width = desc.rope_width == 0 ? desc.dim_qk : desc.rope_width;
  if (width < 2 || width % 2 != 0 || width > desc.dim_qk) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.rope_width is %" PRId64
                "; expected an even number up to dim_qk, which is %" PRId64
                " (0: dim_qk)",
                desc.rope_width, desc.dim_qk);
  }
  if (!(desc.rope_theta > 0 && std::isfinite(desc.rope_theta))) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.rope_theta is %g; expected a finite number above 0",
                desc.rope_theta);
  }
  if (desc.rope_scaling < HEED_ROPE_SCALING_NONE ||
      desc.rope_scaling > HEED_ROPE_SCALING_LLAMA3) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.rope_scaling is %" PRId32
                "; expected HEED_ROPE_SCALING_NONE (0), _LINEAR (1) or "
                "_LLAMA3 (2)",
                desc.rope_scaling);
  }
  return ValidateRopeScaling(desc);
}

heed_status ValidateAttention(const heed_block_desc& desc) {
  const struct {
    const char* name;
    int32_t value;
  } flags[] = {{"causal", desc.causal},
               {"window", desc.window},
               {"residual", desc.residual}};
  for (const auto& flag : flags) {
    if (flag.value != 0 && flag.value != 1) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "desc.%s is %" PRId32 "; expected 0 or 1", flag.name,
                  flag.value);
    }
  }
  if (desc.scale_mode != HEED_SCALE_INV_SQRT_DIM &&
      desc.scale_mode != HEED_SCALE_VALUE) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.scale_mode is %" PRId32
                "; expected HEED_SCALE_INV_SQRT_DIM (1) or HEED_SCALE_VALUE "
                "(2), there is no default",
                desc.scale_mode);
  }
  // What else there is to attention is the problem's: scale, softcap, window.
  heed_problem problem;
  AttentionProblem(desc, 1, 1, 0, &problem);
  if (ValidateProblem(problem) == HEED_OK) return HEED_OK;
  char line[256];
  std::snprintf(line, sizeof line, "%s", heed_last_error());
  return Fail(HEED_INVALID_ARGUMENT, "desc, as its attention's %s", line);
}

}  // namespace

heed_status ValidateDesc(const heed_block_desc& desc) {
  if (desc.struct_size != sizeof(heed_block_desc)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "desc.struct_size is %zu; expected %zu, as "
                "heed_block_desc_init() sets it",
                desc.struct_size, sizeof(heed_block_desc));
  }
  heed_status status = ValidateSizes(desc);
  if (status == HEED_OK) status = ValidateNorm(desc);
  if (status == HEED_OK) status = ValidateMatrices(desc);
  if (status == HEED_OK) status = ValidateRope(desc);
  if (status == HEED_OK) status = ValidateAttention(desc);
  return status;
}

void AttentionProblem(const heed_block_desc& desc, int64_t batch, int64_t len,
                      int64_t len_cache, heed_problem* problem) {
  heed_problem_init(problem);
  const bool cached = len_cache > 0;
  problem->batch = batch;
  problem->heads_q = desc.heads_q;
  problem->heads_kv = desc.heads_kv;
  problem->len_q = len;
  problem->len_k = cached ? len_cache : len;
  problem->dim_qk = desc.dim_qk;
  problem->dim_v = desc.dim_v;
  problem->dtype = HEED_F32;
  // A cache has keys before the call's tokens, so many for each sequence.
  if (desc.causal != 0) {
    problem->causal = cached ? HEED_CAUSAL_OFFSET : HEED_CAUSAL_TOP_LEFT;
  }
  problem->align = cached ? HEED_ALIGN_OFFSET : HEED_ALIGN_TOP_LEFT;
  problem->ragged = cached ? 1 : 0;
  problem->scale_mode = desc.scale_mode;
  problem->scale = desc.scale;
  problem->softcap = desc.softcap;
  problem->window = desc.window;
  problem->window_left = desc.window_left;
  problem->window_right = desc.window_right;
  problem->alibi = desc.alibi_slopes != nullptr ? 1 : 0;
  problem->sinks = desc.sinks != nullptr ? 1 : 0;
}

}  // namespace heed

extern "C" void heed_block_desc_init(heed_block_desc* desc) {
  if (desc == nullptr) return;
  *desc = heed_block_desc{};
  desc->struct_size = sizeof(heed_block_desc);
  desc->residual = 1;
}
