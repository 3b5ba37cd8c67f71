// The softmax step: scores of one panel become weights in place, the sums take
// them in, and the integer running maximum rises where it must. A lane is a
// row, nothing crosses lanes.
//
// Included once per target.
#if defined(HEED_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_SOFTMAX_INL_H_
#undef HEED_KERNELS_SOFTMAX_INL_H_
#else
#define HEED_KERNELS_SOFTMAX_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/math-inl.h"
#include "kernels/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sets the scores that a row does not see to -inf and takes the panel's maximum
// anew.
//   s [keys, >= 2 vectors], stride s_stride    top [2 vectors]
//   begin, end [2 vectors]: the keys a row sees, counted from the first of s,
//   as floats
inline HWY_NOINLINE void HideKeys(float* HWY_RESTRICT s, size_t s_stride,
                                  size_t keys, const float* HWY_RESTRICT begin,
                                  const float* HWY_RESTRICT end,
                                  float* HWY_RESTRICT top) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const V hidden = hn::Set(d, -HUGE_VALF);
  for (size_t half = 0; half < kPanelVecs; ++half) {
    const V first = hn::Load(d, begin + half * lanes);
    const V last = hn::Load(d, end + half * lanes);
    V highest = hidden;
    V index = hn::Zero(d);
    float* HWY_RESTRICT row = s + half * lanes;
    for (size_t key = 0; key < keys; ++key) {
      const auto seen = hn::And(hn::Ge(index, first), hn::Lt(index, last));
      const V score = hn::IfThenElse(seen, hn::Load(d, row), hidden);
      hn::Store(score, d, row);
      highest = hn::Max(score, highest);
      index = hn::Add(index, hn::Set(d, 1.0f));
      row += s_stride;
    }
    hn::Store(highest, d, top + half * lanes);
  }
}

// Lets the running maximum m rise to ceil(top) in the rows whose top exceeds it
// by more than kRise, and rescales their sums l. Returns whether any row rose;
// then factor [2 vectors] holds each row's exact power of two (1 where it did
// not rise), for o.
HWY_INLINE bool RaiseMaximum(const float* HWY_RESTRICT top,
                             float* HWY_RESTRICT m, float* HWY_RESTRICT l,
                             float* HWY_RESTRICT factor) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const V rise = hn::Set(d, kRise);
  const V m0 = hn::Load(d, m), m1 = hn::Load(d, m + lanes);
  const V t0 = hn::Load(d, top), t1 = hn::Load(d, top + lanes);
  const auto up0 = hn::Gt(t0, hn::Add(m0, rise));
  const auto up1 = hn::Gt(t1, hn::Add(m1, rise));
  if (HWY_LIKELY(hn::AllFalse(d, hn::Or(up0, up1)))) return false;
  const V n0 = hn::IfThenElse(up0, hn::Ceil(t0), m0);
  const V n1 = hn::IfThenElse(up1, hn::Ceil(t1), m1);
  const V a0 =
      hn::IfThenElse(up0, Pow2OrZero(d, hn::Sub(m0, n0)), hn::Set(d, 1.0f));
  const V a1 =
      hn::IfThenElse(up1, Pow2OrZero(d, hn::Sub(m1, n1)), hn::Set(d, 1.0f));
  hn::Store(n0, d, m);
  hn::Store(n1, d, m + lanes);
  hn::Store(hn::Mul(hn::Load(d, l), a0), d, l);
  hn::Store(hn::Mul(hn::Load(d, l + lanes), a1), d, l + lanes);
  hn::Store(a0, d, factor);
  hn::Store(a1, d, factor + lanes);
  return true;
}

// Scores to weights, in place, for keys in order; l takes them in.
//   s [keys, >= 2 vectors], stride s_stride    m, l [2 vectors]
inline HWY_NOINLINE void WeighStep(float* HWY_RESTRICT s, size_t s_stride,
                                   size_t keys, const float* HWY_RESTRICT m,
                                   float* HWY_RESTRICT l) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const V m0 = hn::Load(d, m), m1 = hn::Load(d, m + lanes);
  V l0 = hn::Load(d, l), l1 = hn::Load(d, l + lanes);
  const V largest = hn::Max(hn::Abs(m0), hn::Abs(m1));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(largest, hn::Set(d, kExactMaximum))))) {
    const V flush = hn::Set(d, kFlush), round = hn::Set(d, kRound);
    const V low0 = hn::Add(m0, flush), low1 = hn::Add(m1, flush);
    const V shift0 = hn::Sub(round, m0), shift1 = hn::Sub(round, m1);
    for (size_t key = 0; key < keys; ++key) {
      hn::Store(Weigh(d, hn::Load(d, s), low0, shift0, l0), d, s);
      hn::Store(Weigh(d, hn::Load(d, s + lanes), low1, shift1, l1), d,
                s + lanes);
      s += s_stride;
    }
  } else {
    for (size_t key = 0; key < keys; ++key) {
      hn::Store(WeighAnyMaximum(d, hn::Load(d, s), m0, l0), d, s);
      hn::Store(WeighAnyMaximum(d, hn::Load(d, s + lanes), m1, l1), d,
                s + lanes);
      s += s_stride;
    }
  }
  hn::Store(l0, d, l);
  hn::Store(l1, d, l + lanes);
}

// Brings two states of a row to one maximum: M = max(M, m), with the powers of
// two that each state's sum and blend are to be multiplied by; L = L * A + l *
// B.
HWY_INLINE void MergeSums(float* HWY_RESTRICT total_m,
                          float* HWY_RESTRICT total_l,
                          const float* HWY_RESTRICT m,
                          const float* HWY_RESTRICT l,
                          float* HWY_RESTRICT total_factor,
                          float* HWY_RESTRICT factor, size_t count) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const V old_m = hn::Load(d, total_m + i), new_m = hn::Load(d, m + i);
    const V top = hn::Max(old_m, new_m);
    const V a = Pow2OrZero(d, hn::Sub(old_m, top));
    const V b = Pow2OrZero(d, hn::Sub(new_m, top));
    const V sum = hn::Mul(hn::Load(d, total_l + i), a);
    hn::Store(top, d, total_m + i);
    hn::Store(hn::MulAdd(hn::Load(d, l + i), b, sum), d, total_l + i);
    hn::Store(a, d, total_factor + i);
    hn::Store(b, d, factor + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
