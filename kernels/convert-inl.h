// Storage types: f16 and bf16 widen to f32 exactly and narrow to the nearest,
// ties to even, with the same bits on every SIMD target. Included once per
// target.
#if defined(HEED_KERNELS_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_CONVERT_INL_H_
#undef HEED_KERNELS_CONVERT_INL_H_
#else
#define HEED_KERNELS_CONVERT_INL_H_
#endif

#include <type_traits>

#include "hwy/highway.h"
#include "kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 16-bit words of type T as f32.
template <class T, class D>
HWY_INLINE hn::Vec<D> WidenWords(D d, hn::Vec<hn::Rebind<uint16_t, D>> words) {
  if constexpr (std::is_same<T, BF16>()) {
    const hn::Rebind<uint32_t, D> d32;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, words)));
  } else {
    static_assert(std::is_same<T, F16>());
#if HWY_TARGET == HWY_SCALAR || (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2)
    // No instruction here, and Highway's own code takes infinities and NaNs for
    // numbers of the next exponent.
    const hn::Rebind<int32_t, D> di;
    const auto bits = hn::PromoteTo(di, words);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(di, 0x8000)));
    const auto a = hn::ShiftLeft<13>(hn::And(bits, hn::Set(di, 0x7FFF)));
    const auto normal = hn::Add(a, hn::Set(di, (127 - 15) << 23));
    // Subnormals: the mantissa as that of 2^-14, less 2^-14, is exact.
    const auto base = hn::Set(di, 0x38800000);
    const auto small = hn::BitCast(
        di, hn::Sub(hn::BitCast(d, hn::Or(a, base)), hn::BitCast(d, base)));
    auto out =
        hn::IfThenElse(hn::Lt(a, hn::Set(di, 0x00800000)), small, normal);
    out = hn::IfThenElse(hn::Lt(a, hn::Set(di, 0x0F800000)), out,
                         hn::Or(a, hn::Set(di, 0x7F800000)));
    return hn::BitCast(d, hn::Or(out, sign));
#else
    const hn::Rebind<hwy::float16_t, D> df16;
    return hn::PromoteTo(d, hn::BitCast(df16, words));
#endif
  }
}

// Loads Lanes(d) elements as f32; reads nothing beyond them.
template <class D>
HWY_INLINE hn::Vec<D> LoadAs(D d, const float* p) {
  return hn::LoadU(d, p);
}
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadAs(D d, const T* p) {
  const hn::Rebind<uint16_t, D> d16;
  return WidenWords<T>(d, hn::LoadU(d16, &p->bits));
}

// The f16 nearest to each lane, in the low half of 32 bits. By integers and one
// float addition, since Highway's own demotion rounds differently where the CPU
// has none.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> NarrowToF16(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  using VI = hn::Vec<decltype(di)>;
  const VI a = hn::BitCast(di, hn::Abs(x));
  // Normal results: move the exponent's bias, round at bit 13; a carry may make
  // it infinite.
  const VI odd = hn::And(hn::ShiftRight<13>(a), hn::Set(di, 1));
  const VI bias = hn::Set(di, 0xFFF - ((127 - 15) << 23));
  const VI normal = hn::ShiftRight<13>(hn::Add(a, hn::Add(odd, bias)));
  // Subnormal results, below 2^-14: adding 0.5 puts the lowest bit of the
  // result at bit 0.
  const VI half = hn::Set(di, 0x3F000000);
  const VI small =
      hn::Sub(hn::BitCast(di, hn::Add(hn::Abs(x), hn::BitCast(d, half))), half);
  VI out = hn::IfThenElse(hn::Lt(a, hn::Set(di, 0x38800000)), small, normal);
  // 65536 and above, infinity included, are infinite; NaN stays NaN.
  out = hn::IfThenElse(hn::Lt(a, hn::Set(di, 0x47800000)), out,
                       hn::Set(di, 0x7C00));
  out = hn::IfThenElse(hn::Gt(a, hn::Set(di, 0x7F800000)), hn::Set(di, 0x7E00),
                       out);
  const auto sign = hn::ShiftLeft<15>(hn::ShiftRight<31>(hn::BitCast(du, x)));
  return hn::Or(out, hn::BitCast(di, sign));
}

// The bf16 nearest to each lane, in the low half of 32 bits.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> NarrowToBF16(D, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded =
      hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFu))));
  const auto nan = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40u));
  const auto is_nan =
      hn::Gt(hn::BitCast(di, hn::Abs(x)), hn::Set(di, 0x7F800000));
  return hn::IfThenElse(is_nan, hn::BitCast(di, nan), hn::BitCast(di, rounded));
}

template <class D>
HWY_INLINE void StoreLow16(D, hn::Vec<hn::RebindToSigned<D>> bits,
                           uint16_t* p) {
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, bits), d16, p);
}

// Stores Lanes(d) elements; writes nothing beyond them.
template <class D>
HWY_INLINE void StoreAs(D d, hn::Vec<D> x, float* p) {
  hn::StoreU(x, d, p);
}
template <class D>
HWY_INLINE void StoreAs(D d, hn::Vec<D> x, F16* p) {
  StoreLow16(d, NarrowToF16(d, x), &p->bits);
}
template <class D>
HWY_INLINE void StoreAs(D d, hn::Vec<D> x, BF16* p) {
  StoreLow16(d, NarrowToBF16(d, x), &p->bits);
}

// Widens n elements.
template <class T>
HWY_INLINE void Widen(const T* HWY_RESTRICT from, size_t n,
                      float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(LoadAs(d, from + i), d, to + i);
  for (; i < n; ++i) hn::StoreU(LoadAs(d1, from + i), d1, to + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
