// The softmax step: scores of one panel are biased and hidden, become weights
// in place, the sums take them in, and the integer running maximum rises where
// it must. A lane is a row, nothing crosses lanes.
//
// A panel is kVecs (1 or 2) vectors of tag D: 2 whole ones in attention-inl.h,
// 1 of four rows in decode-inl.h. Included once per target.
#if defined(HEED_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_SOFTMAX_INL_H_
#undef HEED_KERNELS_SOFTMAX_INL_H_
#else
#define HEED_KERNELS_SOFTMAX_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/math-inl.h"
#include "kernels/registers-inl.h"
#include "kernels/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What the rows of a panel see of some keys, counted from the first of them.
struct SeenKeys {
  const float* begin;  // [kVecs vectors], as floats
  const float* end;
  // Of the rows of each vector:
  size_t all_begin[kPanelVecs],
      all_end[kPanelVecs];  // keys that every row sees
  size_t keys[kPanelVecs];  // that have scores
};

// Sets the scores that a row does not see to -inf and takes the panel's maximum
// anew.
//   s [keys] of a vector, stride s_stride, and `second` further on the panel's
//   second vector    top [kVecs vectors]
template <int kVecs, class D>
HWY_NOINLINE void HideKeys(D d, float* HWY_RESTRICT s, size_t s_stride,
                           size_t second, const SeenKeys& seen,
                           float* HWY_RESTRICT top) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const V hidden = hn::Set(d, -HUGE_VALF);
  const V one = hn::Set(d, 1.0f);
  for (size_t half = 0; half < kVecs; ++half) {
    const V first = hn::Load(d, seen.begin + half * lanes);
    const V last = hn::Load(d, seen.end + half * lanes);
    V highest = hidden;
    float* HWY_RESTRICT row = s + half * second;
    size_t key = 0;
    // Before the keys that every row sees, and behind them.
    for (const size_t edge_end : {seen.all_begin[half], seen.keys[half]}) {
      V index = hn::Set(d, static_cast<float>(key));
      for (; key < edge_end; ++key) {
        const auto sees = hn::And(hn::Ge(index, first), hn::Lt(index, last));
        const V score = hn::IfThenElse(sees, hn::Load(d, row), hidden);
        hn::Store(score, d, row);
        highest = hn::Max(score, highest);
        index = hn::Add(index, one);
        row += s_stride;
      }
      for (; key < seen.all_end[half]; ++key) {
        highest = hn::Max(hn::Load(d, row), highest);
        row += s_stride;
      }
    }
    hn::Store(highest, d, top + half * lanes);
  }
}

// What a step's scores of one panel become between q . k and the softmax.
struct ScoreBias {
  float cap = 0.0f;        // soft cap in the log2 domain; 0: none
  float cap_slope = 0.0f;  // 2 / soft cap in natural units
  Slopes alibi;
  // Mask, null if there is none: [keys, kVecs vectors], -inf: hidden.
  const float* mask = nullptr;
};

// Soft cap alone; takes the panel's maximum anew. (D 64: 1.16 of the time of a
// causal call without; by the general way 1.22.)
template <int kVecs, class D>
HWY_NOINLINE void CapScores(D d, const ScoreBias& bias, float* HWY_RESTRICT s,
                            size_t s_stride, size_t second, size_t keys,
                            float* HWY_RESTRICT top) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const V cap = hn::Set(d, bias.cap), slope = hn::Set(d, bias.cap_slope);
  V top0 = hn::Set(d, -HUGE_VALF), top1 = top0;
  for (size_t key = 0; key < keys; ++key) {
    const V score0 = SoftCap(d, hn::Load(d, s), cap, slope);
    hn::Store(score0, d, s);
    top0 = hn::Max(score0, top0);
    if constexpr (kVecs == 2) {
      const V score1 = SoftCap(d, hn::Load(d, s + second), cap, slope);
      hn::Store(score1, d, s + second);
      top1 = hn::Max(score1, top1);
    }
    s += s_stride;
  }
  hn::Store(top0, d, top);
  if constexpr (kVecs == 2) hn::Store(top1, d, top + lanes);
}

// Applies all of it, and takes the panel's maximum anew.
template <int kVecs, class D>
HWY_NOINLINE void BiasScores(D d, const ScoreBias& bias, float* HWY_RESTRICT s,
                             size_t s_stride, size_t second, size_t keys,
                             float* HWY_RESTRICT top) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const V hidden = hn::Set(d, -HUGE_VALF);
  const V infinity = hn::Set(d, HUGE_VALF);
  const V log2e = hn::Set(d, kLog2E);
  for (size_t half = 0; half < kVecs; ++half) {
    V slope = hn::Zero(d), distance = slope;
    if (bias.alibi.slope != nullptr) {
      slope = hn::Load(d, bias.alibi.slope + half * lanes);
      distance = hn::Load(d, bias.alibi.distance + half * lanes);
    }
    const float* HWY_RESTRICT mask =
        bias.mask == nullptr ? nullptr : bias.mask + half * lanes;
    float* HWY_RESTRICT row = s + half * second;
    V highest = hidden;
    V index = hn::Set(d, bias.alibi.first_key);
    for (size_t key = 0; key < keys; ++key) {
      const V raw = hn::Load(d, row);
      V score = raw;
      if (bias.cap != 0.0f) {
        score =
            SoftCap(d, score, hn::Set(d, bias.cap), hn::Set(d, bias.cap_slope));
      }
      if (bias.alibi.slope != nullptr) {
        score = hn::MulAdd(slope, hn::Add(distance, index), score);
        index = hn::Add(index, hn::Set(d, 1.0f));
      }
      if (bias.mask != nullptr) {
        const V b = hn::Load(d, mask);
        score = hn::Add(score, ClampFinite(d, hn::Mul(b, log2e)));
        score = hn::IfThenElse(hn::Lt(hn::Abs(raw), infinity),
                               ClampFinite(d, score), score);
        score = hn::IfThenElse(hn::Eq(b, hidden), hidden, score);
        mask += kVecs * lanes;
      } else if (bias.alibi.slope != nullptr) {
        score = hn::IfThenElse(hn::Lt(hn::Abs(raw), infinity),
                               ClampFinite(d, score), score);
      }
      hn::Store(score, d, row);
      highest = hn::Max(score, highest);
      row += s_stride;
    }
    hn::Store(highest, d, top + half * lanes);
  }
}

// Lets one vector of running maxima m rise to ceil(top) where top exceeds m by
// more than kRise, rescales the sums l and leaves each row's exact power of two
// in factor (1 where it did not rise).
template <class D>
HWY_INLINE void RaiseVector(D d, const float* HWY_RESTRICT top,
                            float* HWY_RESTRICT m, float* HWY_RESTRICT l,
                            float* HWY_RESTRICT factor) {
  using V = hn::Vec<D>;
  const V old = hn::Load(d, m), t = hn::Load(d, top);
  const auto up = hn::Gt(t, hn::Add(old, hn::Set(d, kRise)));
  const V raised = hn::IfThenElse(up, hn::Ceil(t), old);
  const V a =
      hn::IfThenElse(up, Pow2OrZero(d, hn::Sub(old, raised)), hn::Set(d, 1.0f));
  hn::Store(raised, d, m);
  hn::Store(hn::Mul(hn::Load(d, l), a), d, l);
  hn::Store(a, d, factor);
}

// The same for a panel. Returns whether any row rose; else factor is not
// written.
template <int kVecs, class D>
HWY_INLINE bool RaiseMaximum(D d, const float* HWY_RESTRICT top,
                             float* HWY_RESTRICT m, float* HWY_RESTRICT l,
                             float* HWY_RESTRICT factor) {
  const size_t lanes = hn::Lanes(d);
  const auto rise = hn::Set(d, kRise);
  auto up = hn::Gt(hn::Load(d, top), hn::Add(hn::Load(d, m), rise));
  if constexpr (kVecs == 2) {
    up = hn::Or(up, hn::Gt(hn::Load(d, top + lanes),
                           hn::Add(hn::Load(d, m + lanes), rise)));
  }
  if (HWY_LIKELY(hn::AllFalse(d, up))) return false;
  RaiseVector(d, top, m, l, factor);
  if constexpr (kVecs == 2) {
    RaiseVector(d, top + lanes, m + lanes, l + lanes, factor + lanes);
  }
  return true;
}

// Four polynomials in Horner's form take in their next coefficient.
template <class V>
HWY_INLINE void HornerFour(V f0, V f1, V f2, V f3, V c, V& p0, V& p1, V& p2,
                           V& p3) {
  p0 = hn::MulAdd(f0, p0, c);
  p1 = hn::MulAdd(f1, p1, c);
  p2 = hn::MulAdd(f2, p2, c);
  p3 = hn::MulAdd(f3, p3, c);
}

// Weigh() for a panel's two vectors of two keys, at s and `next`, step by step
// beside each other: one after the other, 13 operations of which each waits for
// the one before fill a core's schedulers (Zen 5, AVX-512: 4.5 cycles a vector,
// so 3.9). Takes 25 registers.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void WeighFour(D d, V low0, V low1, V shift0, V shift1, float* s,
                          float* next, size_t second, V& l0, V& l1) {
  const hn::RebindToSigned<D> di;
  const V x0 = MaxKeepNaN(low0, hn::Load(d, s));
  const V x1 = MaxKeepNaN(low1, hn::Load(d, s + second));
  const V x2 = MaxKeepNaN(low0, hn::Load(d, next));
  const V x3 = MaxKeepNaN(low1, hn::Load(d, next + second));
  const V t0 = hn::Add(x0, shift0), t1 = hn::Add(x1, shift1);
  const V t2 = hn::Add(x2, shift0), t3 = hn::Add(x3, shift1);
  const V n0 = hn::Sub(t0, shift0), n1 = hn::Sub(t1, shift1);
  const V n2 = hn::Sub(t2, shift0), n3 = hn::Sub(t3, shift1);
  const V f0 = hn::Sub(x0, n0), f1 = hn::Sub(x1, n1);
  const V f2 = hn::Sub(x2, n2), f3 = hn::Sub(x3, n3);
  const V one = hn::Set(d, 1.0f);
  V p0 = hn::Set(d, kExp2C5), p1 = p0, p2 = p0, p3 = p0;
  HornerFour(f0, f1, f2, f3, hn::Set(d, kExp2C4), p0, p1, p2, p3);
  HornerFour(f0, f1, f2, f3, hn::Set(d, kExp2C3), p0, p1, p2, p3);
  HornerFour(f0, f1, f2, f3, hn::Set(d, kExp2C2), p0, p1, p2, p3);
  HornerFour(f0, f1, f2, f3, hn::Set(d, kExp2C1), p0, p1, p2, p3);
  HornerFour(f0, f1, f2, f3, one, p0, p1, p2, p3);
  const auto e0 = hn::ShiftLeft<23>(hn::BitCast(di, t0));
  const auto e1 = hn::ShiftLeft<23>(hn::BitCast(di, t1));
  const auto e2 = hn::ShiftLeft<23>(hn::BitCast(di, t2));
  const auto e3 = hn::ShiftLeft<23>(hn::BitCast(di, t3));
  // As in WeighClamped: an integer add alone would lose a NaN.
  const auto bits = hn::BitCast(di, one);
  l0 = hn::MulAdd(p0, hn::BitCast(d, hn::Add(bits, e0)), l0);
  l1 = hn::MulAdd(p1, hn::BitCast(d, hn::Add(bits, e1)), l1);
  l0 = hn::MulAdd(p2, hn::BitCast(d, hn::Add(bits, e2)), l0);
  l1 = hn::MulAdd(p3, hn::BitCast(d, hn::Add(bits, e3)), l1);
  hn::Store(hn::BitCast(d, hn::Add(hn::BitCast(di, p0), e0)), d, s);
  hn::Store(hn::BitCast(d, hn::Add(hn::BitCast(di, p1), e1)), d, s + second);
  hn::Store(hn::BitCast(d, hn::Add(hn::BitCast(di, p2), e2)), d, next);
  hn::Store(hn::BitCast(d, hn::Add(hn::BitCast(di, p3), e3)), d, next + second);
}

// Scores to weights, in place, for keys in order; l takes them in.
//   s as for HideKeys    m, l [kVecs vectors]
template <int kVecs, class D>
HWY_NOINLINE void WeighStep(D d, float* HWY_RESTRICT s, size_t s_stride,
                            size_t second, size_t keys,
                            const float* HWY_RESTRICT m,
                            float* HWY_RESTRICT l) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const size_t other = kVecs == 2 ? lanes : 0;
  const V m0 = hn::Load(d, m), m1 = hn::Load(d, m + other);
  V l0 = hn::Load(d, l), l1 = hn::Load(d, l + other);
  const V largest = hn::Max(hn::Abs(m0), hn::Abs(m1));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(largest, hn::Set(d, kExactMaximum))))) {
    const V flush = hn::Set(d, kFlush), round = hn::Set(d, kRound);
    const V low0 = hn::Add(m0, flush), low1 = hn::Add(m1, flush);
    const V shift0 = hn::Sub(round, m0), shift1 = hn::Sub(round, m1);
    size_t key = 0;
    if constexpr (kVecs == 2 && kManyRegisters) {
      for (; key + 2 <= keys; key += 2) {
        WeighFour(d, low0, low1, shift0, shift1, s, s + s_stride, second, l0,
                  l1);
        s += 2 * s_stride;
      }
    }
    for (; key < keys; ++key) {
      hn::Store(Weigh(d, hn::Load(d, s), low0, shift0, l0), d, s);
      if constexpr (kVecs == 2) {
        hn::Store(Weigh(d, hn::Load(d, s + second), low1, shift1, l1), d,
                  s + second);
      }
      s += s_stride;
    }
  } else {
    for (size_t key = 0; key < keys; ++key) {
      hn::Store(WeighAnyMaximum(d, hn::Load(d, s), m0, l0), d, s);
      if constexpr (kVecs == 2) {
        hn::Store(WeighAnyMaximum(d, hn::Load(d, s + second), m1, l1), d,
                  s + second);
      }
      s += s_stride;
    }
  }
  hn::Store(l0, d, l);
  if constexpr (kVecs == 2) hn::Store(l1, d, l + lanes);
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
