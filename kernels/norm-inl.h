// LayerNorm and RMSNorm of one token. Included once per target.
//
// Sums are sixteen chains, whatever the width of a vector: four vectors of four
// lanes on every target. A norm is less than a hundredth of a block's time.
#if defined(HEED_KERNELS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_NORM_INL_H_
#undef HEED_KERNELS_NORM_INL_H_
#else
#define HEED_KERNELS_NORM_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/token_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What is summed: x, x - mean, or the square of (x - mean) - rest. Twice
// centred, so that the mean's own rounding does not enter the variance.
enum class Term { kPlain, kCentred, kSquare };

template <Term kTerm, class D, class V = hn::Vec<D>>
HWY_INLINE V AddTerm(D, V x, V mean, V rest, V sum) {
  if constexpr (kTerm == Term::kPlain) return hn::Add(sum, x);
  if constexpr (kTerm == Term::kCentred) {
    return hn::Add(sum, hn::Sub(x, mean));
  }
  const V t = hn::Sub(hn::Sub(x, mean), rest);
  return hn::MulAdd(t, t, sum);
}

template <Term kTerm>
HWY_INLINE float SumOf(const float* x, size_t n, float mean, float rest) {
  const hn::CappedTag<float, 4> d4;
  const hn::CappedTag<float, 1> d1;
  HWY_ALIGN float sums[kSumChains] = {};
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  static_assert(kSumChains == 4 * 4);
  using V = hn::Vec<decltype(d4)>;
  const V m = hn::Set(d4, mean), e = hn::Set(d4, rest);
  V s0 = hn::Zero(d4), s1 = s0, s2 = s0, s3 = s0;
  for (; i + kSumChains <= n; i += kSumChains) {
    s0 = AddTerm<kTerm>(d4, hn::LoadU(d4, x + i), m, e, s0);
    s1 = AddTerm<kTerm>(d4, hn::LoadU(d4, x + i + 4), m, e, s1);
    s2 = AddTerm<kTerm>(d4, hn::LoadU(d4, x + i + 8), m, e, s2);
    s3 = AddTerm<kTerm>(d4, hn::LoadU(d4, x + i + 12), m, e, s3);
  }
  hn::Store(s0, d4, sums);
  hn::Store(s1, d4, sums + 4);
  hn::Store(s2, d4, sums + 8);
  hn::Store(s3, d4, sums + 12);
#else
  static_cast<void>(d4);
#endif
  for (; i < n; ++i) {
    float* sum = sums + i % kSumChains;
    *sum = hn::GetLane(AddTerm<kTerm>(d1, hn::Set(d1, x[i]), hn::Set(d1, mean),
                                      hn::Set(d1, rest), hn::Set(d1, *sum)));
  }
  for (size_t half = kSumChains / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) sums[j] = sums[j] + sums[j + half];
  }
  return sums[0];
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void NormTo(D d, const NormTask& task, size_t i, const float* x,
                       V mean, V rest, V scale, float* y) {
  const V t = hn::Sub(hn::Sub(hn::LoadU(d, x + i), mean), rest);
  hn::StoreU(hn::MulAdd(hn::Mul(t, scale), hn::LoadU(d, task.gain + i),
                        hn::LoadU(d, task.bias + i)),
             d, y + i);
}

void Norm(const NormTask& task, const float* x, float* y) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const size_t n = task.width, lanes = hn::Lanes(d);
  size_t i = 0;
  if (task.kind == NormKind::kNone) {
    for (; i + lanes <= n; i += lanes) {
      hn::StoreU(hn::LoadU(d, x + i), d, y + i);
    }
    for (; i < n; ++i) y[i] = x[i];
    return;
  }
  const float width = static_cast<float>(n);
  // Subtracting 0 twice changes no bit of an RMSNorm.
  float mean = 0.0f, rest = 0.0f;
  if (task.kind == NormKind::kLayer) {
    mean = SumOf<Term::kPlain>(x, n, 0.0f, 0.0f) / width;
    rest = SumOf<Term::kCentred>(x, n, mean, 0.0f) / width;
  }
  const float variance = SumOf<Term::kSquare>(x, n, mean, rest) / width;
  const float scale =
      1.0f / hn::GetLane(hn::Sqrt(hn::Set(d1, variance + task.eps)));
  for (; i + lanes <= n; i += lanes) {
    NormTo(d, task, i, x, hn::Set(d, mean), hn::Set(d, rest), hn::Set(d, scale),
           y);
  }
  for (; i < n; ++i) {
    NormTo(d1, task, i, x, hn::Set(d1, mean), hn::Set(d1, rest),
           hn::Set(d1, scale), y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
