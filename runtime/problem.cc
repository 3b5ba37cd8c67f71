#include "runtime/problem.h"

#include <cinttypes>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "runtime/error.h"

namespace heed {
namespace {

// The widest head. Leaves room for dim * rows * 4 in every scratch size.
constexpr int64_t kMaxDim = int64_t{1} << 32;

// The longest sequence. Only heads of no width get there without overflowing
// the tensors' bytes; positions of tokens and keys then add up within 64 bits.
constexpr int64_t kMaxLength = int64_t{1} << 60;

// The soft caps c for which neither c * log2(e) nor 2 / c leaves the normal
// floats.
constexpr double kMinSoftcap = std::numeric_limits<float>::min();
constexpr double kMaxSoftcap = 1e38;

bool ProductFits(std::initializer_list<int64_t> factors) {
  for (int64_t factor : factors) {
    if (factor == 0) return true;
  }
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return false;
  }
  return true;
}

heed_status ValidateSizes(const heed_problem& p) {
  const struct {
    const char* name;
    int64_t value;
  } sizes[] = {{"batch", p.batch},       {"heads_q", p.heads_q},
               {"heads_kv", p.heads_kv}, {"len_q", p.len_q},
               {"len_k", p.len_k},       {"dim_qk", p.dim_qk},
               {"dim_v", p.dim_v}};
  for (const auto& size : sizes) {
    if (size.value < 0) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "problem.%s is %" PRId64 "; expected 0 or more", size.name,
                  size.value);
    }
  }
  if (p.heads_kv == 0 ? p.heads_q != 0 : p.heads_q % p.heads_kv != 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.heads_q is %" PRId64
                "; expected a multiple of heads_kv, which is %" PRId64,
                p.heads_q, p.heads_kv);
  }
  if (p.dim_qk > kMaxDim || p.dim_v > kMaxDim) {
    return Fail(HEED_UNSUPPORTED,
                "problem.%s is %" PRId64 "; at most %" PRId64 " is supported",
                p.dim_qk > kMaxDim ? "dim_qk" : "dim_v",
                p.dim_qk > kMaxDim ? p.dim_qk : p.dim_v, kMaxDim);
  }
  if (p.len_q > kMaxLength || p.len_k > kMaxLength) {
    return Fail(HEED_UNSUPPORTED,
                "problem.%s is %" PRId64 "; at most %" PRId64 " is supported",
                p.len_q > kMaxLength ? "len_q" : "len_k",
                p.len_q > kMaxLength ? p.len_q : p.len_k, kMaxLength);
  }
  return HEED_OK;
}

heed_status ValidateEnums(const heed_problem& p) {
  if (p.dtype != HEED_F32 && p.dtype != HEED_F16 && p.dtype != HEED_BF16) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.dtype is %" PRId32
                "; expected HEED_F32 (1), HEED_F16 (2) or HEED_BF16 (3)",
                p.dtype);
  }
  if (p.causal < HEED_CAUSAL_NONE || p.causal > HEED_CAUSAL_OFFSET) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.causal is %" PRId32
                "; expected HEED_CAUSAL_NONE (0), _TOP_LEFT (1), "
                "_BOTTOM_RIGHT (2) or _OFFSET (3)",
                p.causal);
  }
  if (p.scale_mode != HEED_SCALE_INV_SQRT_DIM &&
      p.scale_mode != HEED_SCALE_VALUE) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.scale_mode is %" PRId32
                "; expected HEED_SCALE_INV_SQRT_DIM (1) or HEED_SCALE_VALUE "
                "(2), there is no default",
                p.scale_mode);
  }
  if (p.scale_mode == HEED_SCALE_VALUE && !std::isfinite(p.scale)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.scale is %g; expected a finite value", p.scale);
  }
  if (p.reserved != 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.reserved is %" PRId32 "; expected 0", p.reserved);
  }
  return HEED_OK;
}

heed_status ValidateFlags(const heed_problem& p) {
  const struct {
    const char* name;
    int32_t value;
  } flags[] = {{"window", p.window},
               {"alibi", p.alibi},
               {"sinks", p.sinks},
               {"ragged", p.ragged}};
  for (const auto& flag : flags) {
    if (flag.value != 0 && flag.value != 1) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "problem.%s is %" PRId32 "; expected 0 or 1", flag.name,
                  flag.value);
    }
  }
  return HEED_OK;
}

// What changes scores or hides keys.
heed_status ValidateBias(const heed_problem& p) {
  // A NaN fails the comparison.
  if (!(p.softcap == 0 ||
        (p.softcap >= kMinSoftcap && p.softcap <= kMaxSoftcap))) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.softcap is %g; expected 0 (none) or %g to %g",
                p.softcap, kMinSoftcap, kMaxSoftcap);
  }
  if (p.window != 0 && (p.window_left < -1 || p.window_right < -1)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.window_%s is %" PRId64
                "; expected a number of keys, or -1 for no limit",
                p.window_left < -1 ? "left" : "right",
                p.window_left < -1 ? p.window_left : p.window_right);
  }
  if (p.mask < HEED_MASK_NONE || p.mask > HEED_MASK_DTYPE) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.mask is %" PRId32
                "; expected HEED_MASK_NONE (0), _BOOL (1), _F32 (2) or "
                "_DTYPE (3)",
                p.mask);
  }
  if (p.mask_block_q < 0 || p.mask_block_k < 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.mask_block_%s is %" PRId32
                "; expected 0 or 1 (none), or the size of a block",
                p.mask_block_q < 0 ? "q" : "k",
                p.mask_block_q < 0 ? p.mask_block_q : p.mask_block_k);
  }
  if ((p.mask_block_q > 1 || p.mask_block_k > 1) && p.mask != HEED_MASK_BOOL) {
    return Fail(
        HEED_INVALID_ARGUMENT,
        "problem.mask is %" PRId32
        "; expected HEED_MASK_BOOL (1), since mask_block_%s is %" PRId32,
        p.mask, p.mask_block_q > 1 ? "q" : "k",
        p.mask_block_q > 1 ? p.mask_block_q : p.mask_block_k);
  }
  if (ReadsAlign(p) &&
      (p.align < HEED_ALIGN_TOP_LEFT || p.align > HEED_ALIGN_OFFSET)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.align is %" PRId32
                "; expected HEED_ALIGN_TOP_LEFT (1), _BOTTOM_RIGHT (2) or "
                "_OFFSET (3), since %s is on and causal is not",
                p.align, p.window != 0 ? "window" : "alibi");
  }
  if (p.page_size < 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.page_size is %" PRId64
                "; expected the keys of a page, or 0 for no pages",
                p.page_size);
  }
  return HEED_OK;
}

heed_status ValidateBytes(const heed_problem& p) {
  const int64_t bytes = ElementBytes(p.dtype);
  const struct {
    const char* name;
    bool fits;
  } tensors[] = {
      {"q", ProductFits({p.batch, p.heads_q, p.len_q, p.dim_qk, bytes})},
      {"k", ProductFits({p.batch, p.heads_kv, p.len_k, p.dim_qk, bytes})},
      {"v", ProductFits({p.batch, p.heads_kv, p.len_k, p.dim_v, bytes})},
      {"out", ProductFits({p.batch, p.heads_q, p.len_q, p.dim_v, bytes})},
      {"lse", ProductFits({p.batch, p.heads_q, p.len_q, 4})},
      {"mask",
       p.mask == HEED_MASK_NONE ||
           ProductFits({p.batch, p.heads_q, p.len_q, p.len_k, MaskBytes(p)})}};
  for (const auto& tensor : tensors) {
    if (!tensor.fits) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "problem: the bytes of %s overflow 64 bits (batch %" PRId64
                  ", heads_q %" PRId64 ", heads_kv %" PRId64 ", len_q %" PRId64
                  ", len_k %" PRId64 ", dim_qk %" PRId64 ", dim_v %" PRId64
                  "); expected less than 2^63",
                  tensor.name, p.batch, p.heads_q, p.heads_kv, p.len_q, p.len_k,
                  p.dim_qk, p.dim_v);
    }
  }
  return HEED_OK;
}

}  // namespace

heed_status ValidateProblem(const heed_problem& problem) {
  if (problem.struct_size != sizeof(heed_problem)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem.struct_size is %zu; expected %zu, as "
                "heed_problem_init() sets it",
                problem.struct_size, sizeof(heed_problem));
  }
  heed_status status = ValidateSizes(problem);
  if (status == HEED_OK) status = ValidateEnums(problem);
  if (status == HEED_OK) status = ValidateFlags(problem);
  if (status == HEED_OK) status = ValidateBias(problem);
  if (status == HEED_OK) status = ValidateBytes(problem);
  return status;
}

int64_t Group(const heed_problem& problem) {
  return problem.heads_kv == 0 || problem.heads_q == 0
             ? 1
             : problem.heads_q / problem.heads_kv;
}

bool ReadsAlign(const heed_problem& problem) {
  return problem.causal == HEED_CAUSAL_NONE &&
         (problem.window != 0 || problem.alibi != 0);
}

Placement PlacementOf(const heed_problem& problem) {
  static_assert(static_cast<int>(HEED_CAUSAL_TOP_LEFT) ==
                    static_cast<int>(HEED_ALIGN_TOP_LEFT) &&
                static_cast<int>(HEED_CAUSAL_BOTTOM_RIGHT) ==
                    static_cast<int>(HEED_ALIGN_BOTTOM_RIGHT) &&
                static_cast<int>(HEED_CAUSAL_OFFSET) ==
                    static_cast<int>(HEED_ALIGN_OFFSET));
  return static_cast<Placement>(ReadsAlign(problem) ? problem.align
                                                    : problem.causal);
}

MaskType KernelMask(const heed_problem& problem) {
  switch (problem.mask) {
    case HEED_MASK_BOOL:
      return MaskType::kBool;
    case HEED_MASK_F32:
      return MaskType::kF32;
    case HEED_MASK_DTYPE:
      return problem.dtype == HEED_F16    ? MaskType::kF16
             : problem.dtype == HEED_BF16 ? MaskType::kBF16
                                          : MaskType::kF32;
    default:
      return MaskType::kNone;
  }
}

int64_t MaskBytes(const heed_problem& problem) {
  switch (KernelMask(problem)) {
    case MaskType::kBool:
      return 1;
    case MaskType::kF16:
    case MaskType::kBF16:
      return 2;
    default:
      return 4;
  }
}

bool HasNoRows(const heed_problem& problem) {
  return problem.batch == 0 || problem.heads_q == 0 || problem.len_q == 0;
}

float QueryScale(const heed_problem& problem) {
  constexpr double kLog2E = 1.4426950408889634074;
  constexpr double kMaxFloat = std::numeric_limits<float>::max();
  double scale = problem.scale;
  if (problem.scale_mode == HEED_SCALE_INV_SQRT_DIM) {
    scale = problem.dim_qk == 0
                ? 1.0
                : 1.0 / std::sqrt(static_cast<double>(problem.dim_qk));
  }
  scale *= kLog2E;
  if (scale > kMaxFloat) scale = kMaxFloat;
  if (scale < -kMaxFloat) scale = -kMaxFloat;
  return static_cast<float>(scale);
}

const char* DtypeName(int32_t dtype) {
  switch (dtype) {
    case HEED_F32:
      return "f32";
    case HEED_F16:
      return "f16";
    case HEED_BF16:
      return "bf16";
    default:
      return nullptr;
  }
}

DType KernelDType(int32_t dtype) {
  switch (dtype) {
    case HEED_F16:
      return DType::kF16;
    case HEED_BF16:
      return DType::kBF16;
    default:
      return DType::kF32;
  }
}

int64_t ElementBytes(int32_t dtype) { return dtype == HEED_F32 ? 4 : 2; }

}  // namespace heed

extern "C" void heed_problem_init(heed_problem* problem) {
  if (problem == nullptr) return;
  *problem = heed_problem{};
  problem->struct_size = sizeof(heed_problem);
}
