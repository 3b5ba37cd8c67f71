// The arithmetic of the row program on vectors: weights, powers of two,
// logarithm.
//
// Knows lanes, not rows or keys. Included once per SIMD target.
#if defined(HEED_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_MATH_INL_H_
#undef HEED_KERNELS_MATH_INL_H_
#else
#define HEED_KERNELS_MATH_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"
#include "kernels/kernels.h"
#include "kernels/row_constants.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The larger of the two, and x if x is NaN. x86's max returns its second
// operand when either is NaN, which is just that; elsewhere a compare and a
// select.
template <class V>
HWY_INLINE V MaxKeepNaN(V low, V x) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(low, x);
#else
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
}

// (2^f - 1) / f for f in [-0.5, 0.5].
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2Slope(D d, V f) {
  V p = hn::MulAdd(f, hn::Set(d, kExp2C5), hn::Set(d, kExp2C4));
  p = hn::MulAdd(f, p, hn::Set(d, kExp2C3));
  p = hn::MulAdd(f, p, hn::Set(d, kExp2C2));
  return hn::MulAdd(f, p, hn::Set(d, kExp2C1));
}

// 2^f for f in [-0.5, 0.5]; exactly 1 at 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2Fraction(D d, V f) {
  return hn::MulAdd(f, Exp2Slope(d, f), hn::Set(d, 1.0f));
}

// x cut to the finite floats; NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ClampFinite(D d, V x) {
  const V largest = hn::Set(d, FLT_MAX);
  const V least = hn::Neg(largest);
  x = hn::IfThenElse(hn::Gt(x, largest), largest, x);
  return hn::IfThenElse(hn::Lt(x, least), least, x);
}

// cap * tanh(s * slope / (2 log2 e)) as cap * E / (E + 2) with E = 2^y - 1,
// y = |s| * slope: 2^n and 2^f - 1 are known apart, so small scores keep their
// relative accuracy.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SoftCap(D d, V s, V cap, V slope) {
  const hn::RebindToSigned<D> di;
  const V largest = hn::Set(d, kLargestCapExponent);
  const V round = hn::Set(d, kRound), one = hn::Set(d, 1.0f);
  V y = hn::Mul(hn::Abs(s), slope);
  y = hn::IfThenElse(hn::Gt(y, largest), largest, y);
  const V t = hn::Add(y, round);
  const V f = hn::Sub(y, hn::Sub(t, round));
  const V power = hn::BitCast(
      d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, t)), hn::BitCast(di, one)));
  const V g = hn::Mul(f, Exp2Slope(d, f));
  const V e = hn::MulAdd(power, g, hn::Sub(power, one));
  const V capped = hn::Mul(cap, hn::Div(e, hn::Add(e, hn::Set(d, 2.0f))));
  return hn::CopySignToAbs(capped, s);
}

// 2^max(x, -127) for integer x <= 0, where 2^-127 is 0: how a state is brought
// to a larger maximum.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Pow2OrZero(D d, V x) {
  const hn::RebindToSigned<D> di;
  // NaN (of two infinite maxima, in a row that is NaN by its sum) becomes 0
  // like the row program's: no NaN is converted to an integer.
  const V low = hn::Set(d, kFlush);
  const auto n = hn::ConvertTo(di, hn::IfThenElse(hn::Gt(x, low), x, low));
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// Turns a clamped score into its weight w = 2^(x + shift - kRound) and adds it
// to the sum l.
//   x = the score, at least m - 127; shift = kRound - m, exact
template <class D, class V = hn::Vec<D>>
HWY_INLINE V WeighClamped(D d, V x, V shift, V& l) {
  const hn::RebindToSigned<D> di;
  const V t = hn::Add(x, shift);
  const V f = hn::Sub(x, hn::Sub(t, shift));
  const V p = Exp2Fraction(d, f);
  const auto e = hn::ShiftLeft<23>(hn::BitCast(di, t));
  // An integer add alone would lose a NaN with payload; the multiply by 2^n
  // keeps it, for the sum.
  const V power = hn::BitCast(d, hn::Add(hn::BitCast(di, hn::Set(d, 1.0f)), e));
  l = hn::MulAdd(p, power, l);
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), e));
}

// The weight 2^(s - m) of one score, with low = m - 127; requires |m| < 2^22.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Weigh(D d, V s, V low, V shift, V& l) {
  return WeighClamped(d, MaxKeepNaN(low, s), shift, l);
}

// The same for any m: lanes with |m| >= 2^22 subtract m first. Rare: logits
// beyond four million, and rows that have seen no key of their chunk yet.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V WeighAnyMaximum(D d, V s, V m, V& l) {
  const auto exact = hn::Lt(hn::Abs(m), hn::Set(d, kExactMaximum));
  const V base = hn::IfThenElseZero(exact, m);
  const V low = hn::Add(base, hn::Set(d, kFlush));
  const V y = hn::IfThenElse(exact, s, hn::Sub(s, m));
  return WeighClamped(d, MaxKeepNaN(low, y), hn::Sub(hn::Set(d, kRound), base),
                      l);
}

// log2 of l >= 0: -inf at 0, NaN at NaN. l is 0, NaN or a normal number here: a
// row's sum is at least half a weight of 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log2(D d, V l) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, l);
  const auto e = hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 127));
  V mantissa = hn::BitCast(d, hn::Or(hn::And(bits, hn::Set(di, 0x007FFFFF)),
                                     hn::Set(di, 0x3F800000)));
  const auto high = hn::Gt(mantissa, hn::Set(d, kSqrt2));
  mantissa =
      hn::IfThenElse(high, hn::Mul(mantissa, hn::Set(d, 0.5f)), mantissa);
  V exponent = hn::ConvertTo(d, e);
  exponent =
      hn::IfThenElse(high, hn::Add(exponent, hn::Set(d, 1.0f)), exponent);
  const V r = hn::Sub(mantissa, hn::Set(d, 1.0f));
  V p = hn::Set(d, kLog2Coefficients[8]);
  for (int i = 7; i >= 0; --i) {
    p = hn::MulAdd(r, p, hn::Set(d, kLog2Coefficients[i]));
  }
  V y = hn::MulAdd(r, p, exponent);
  y = hn::IfThenElse(hn::Eq(l, hn::Zero(d)), hn::Set(d, -HUGE_VALF), y);
  return hn::IfThenElse(hn::Eq(l, l), y, l);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
