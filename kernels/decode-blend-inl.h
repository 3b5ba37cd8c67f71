// The blend of a few rows: v is read where it lies and widened in registers; a
// lane is a value column, each one chain in key order. Included once per
// target.
#if defined(HEED_KERNELS_DECODE_BLEND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_DECODE_BLEND_INL_H_
#undef HEED_KERNELS_DECODE_BLEND_INL_H_
#else
#define HEED_KERNELS_DECODE_BLEND_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/convert-inl.h"
#include "kernels/touch-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Accumulator n of DecodeBlend: vector n % kVecs of row n / kVecs.
template <int kVecs>
HWY_INLINE float* PlaceOf(float* o, size_t o_stride, size_t lanes, int n) {
  return o + static_cast<size_t>(n / kVecs) * o_stride +
         static_cast<size_t>(n % kVecs) * lanes;
}

// The accumulators of kRows rows, kVecs vectors each, take in one key.
template <int kRows, int kVecs, class D, class T, class V = hn::Vec<D>>
HWY_INLINE void BlendKey(D d, const float* HWY_RESTRICT p,
                         const T* HWY_RESTRICT v, V& a0, V& a1, V& a2, V& a3,
                         V& a4, V& a5, V& a6, V& a7) {
  const size_t lanes = hn::Lanes(d);
  const V w0 = hn::Set(d, p[0]);
  if constexpr (kRows == 1) {
    a0 = hn::MulAdd(w0, LoadAs(d, v), a0);
    if constexpr (kVecs > 1) a1 = hn::MulAdd(w0, LoadAs(d, v + lanes), a1);
    if constexpr (kVecs > 2) {
      static_assert(kVecs == 8);
      a2 = hn::MulAdd(w0, LoadAs(d, v + 2 * lanes), a2);
      a3 = hn::MulAdd(w0, LoadAs(d, v + 3 * lanes), a3);
      a4 = hn::MulAdd(w0, LoadAs(d, v + 4 * lanes), a4);
      a5 = hn::MulAdd(w0, LoadAs(d, v + 5 * lanes), a5);
      a6 = hn::MulAdd(w0, LoadAs(d, v + 6 * lanes), a6);
      a7 = hn::MulAdd(w0, LoadAs(d, v + 7 * lanes), a7);
    }
  } else if constexpr (kVecs == 1) {
    const V v0 = LoadAs(d, v);
    a0 = hn::MulAdd(w0, v0, a0);
    a1 = hn::MulAdd(hn::Set(d, p[1]), v0, a1);
    if constexpr (kRows > 2) a2 = hn::MulAdd(hn::Set(d, p[2]), v0, a2);
    if constexpr (kRows > 3) a3 = hn::MulAdd(hn::Set(d, p[3]), v0, a3);
  } else if constexpr (kVecs == 2) {
    const V v0 = LoadAs(d, v), v1 = LoadAs(d, v + lanes);
    a0 = hn::MulAdd(w0, v0, a0);
    a1 = hn::MulAdd(w0, v1, a1);
    const V w1 = hn::Set(d, p[1]);
    a2 = hn::MulAdd(w1, v0, a2);
    a3 = hn::MulAdd(w1, v1, a3);
    if constexpr (kRows > 2) {
      const V w2 = hn::Set(d, p[2]);
      a4 = hn::MulAdd(w2, v0, a4);
      a5 = hn::MulAdd(w2, v1, a5);
    }
    if constexpr (kRows > 3) {
      const V w3 = hn::Set(d, p[3]);
      a6 = hn::MulAdd(w3, v0, a6);
      a7 = hn::MulAdd(w3, v1, a7);
    }
  } else {
    static_assert(kRows == 2 && kVecs == 4);
    const V w1 = hn::Set(d, p[1]);
    const V v0 = LoadAs(d, v), v1 = LoadAs(d, v + lanes);
    a0 = hn::MulAdd(w0, v0, a0);
    a1 = hn::MulAdd(w0, v1, a1);
    a4 = hn::MulAdd(w1, v0, a4);
    a5 = hn::MulAdd(w1, v1, a5);
    const V v2 = LoadAs(d, v + 2 * lanes), v3 = LoadAs(d, v + 3 * lanes);
    a2 = hn::MulAdd(w0, v2, a2);
    a3 = hn::MulAdd(w0, v3, a3);
    a6 = hn::MulAdd(w1, v2, a6);
    a7 = hn::MulAdd(w1, v3, a7);
  }
}

// kRows rows of o, kVecs vectors of it each, take in a step's keys.
//   p: the first key's weights, keys p_stride apart
//   v: rows of v, of which the columns from `column` on are taken
// Registers: kRows * kVecs accumulators, at least 8 to hide the latency of a
// multiply-add, kVecs of v and 1 weight. (12 of four rows and three vectors:
// 130 cycles a key in the cache, not 133, of f32, but 124, not 118, of f16 and
// 121, not 117, of bf16.)
template <int kRows, int kVecs, class T>
HWY_NOINLINE void DecodeBlend(const float* HWY_RESTRICT p, size_t p_stride,
                              const T* const* v, Touches& touches, size_t keys,
                              size_t column, bool fresh, float* HWY_RESTRICT o,
                              size_t o_stride) {
  constexpr int kSums = kRows * kVecs;
  static_assert(kSums <= 8);
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0,
    a7 = a0;
  const auto at = [&](int n) HWY_ATTR {
    return PlaceOf<kVecs>(o, o_stride, lanes, n);
  };
  if (!fresh) {
    a0 = hn::Load(d, o);
    if constexpr (kSums > 1) a1 = hn::Load(d, at(1));
    if constexpr (kSums > 2) a2 = hn::Load(d, at(2));
    if constexpr (kSums > 3) a3 = hn::Load(d, at(3));
    if constexpr (kSums > 4) a4 = hn::Load(d, at(4));
    if constexpr (kSums > 5) a5 = hn::Load(d, at(5));
    if constexpr (kSums > 6) a6 = hn::Load(d, at(6));
    if constexpr (kSums > 7) a7 = hn::Load(d, at(7));
  }
  // As many lines as two keys' v here takes.
  constexpr size_t kVecBytes = HWY_MAX_BYTES / sizeof(float) * sizeof(T);
  constexpr size_t kTouches =
      HWY_MAX(2 * kVecs * kVecBytes / kLineBytes, size_t{1});
  Touches next = touches;
  size_t key = 0;
  for (; key + 2 <= keys; key += 2) {
    Touch<kTouches>(next);
    BlendKey<kRows, kVecs>(d, p, v[key] + column, a0, a1, a2, a3, a4, a5, a6,
                           a7);
    p += p_stride;
    BlendKey<kRows, kVecs>(d, p, v[key + 1] + column, a0, a1, a2, a3, a4, a5,
                           a6, a7);
    p += p_stride;
  }
  if (key < keys) {
    BlendKey<kRows, kVecs>(d, p, v[key] + column, a0, a1, a2, a3, a4, a5, a6,
                           a7);
  }
  touches = next;
  hn::Store(a0, d, o);
  if constexpr (kSums > 1) hn::Store(a1, d, at(1));
  if constexpr (kSums > 2) hn::Store(a2, d, at(2));
  if constexpr (kSums > 3) hn::Store(a3, d, at(3));
  if constexpr (kSums > 4) hn::Store(a4, d, at(4));
  if constexpr (kSums > 5) hn::Store(a5, d, at(5));
  if constexpr (kSums > 6) hn::Store(a6, d, at(6));
  if constexpr (kSums > 7) hn::Store(a7, d, at(7));
}

// Columns [0, vecs vectors) of kRows rows, `kMost` vectors at a time.
template <int kRows, int kMost, class T>
HWY_INLINE void DecodeBlendWide(const float* p, size_t p_stride,
                                const T* const* v, Touches& touches,
                                size_t keys, size_t vecs, bool fresh, float* o,
                                size_t o_stride) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  size_t i = 0;
  for (; i + kMost <= vecs; i += kMost) {
    DecodeBlend<kRows, kMost>(p, p_stride, v, touches, keys, i * lanes, fresh,
                              o + i * lanes, o_stride);
  }
  for (; i + 2 <= vecs; i += 2) {
    DecodeBlend<kRows, 2>(p, p_stride, v, touches, keys, i * lanes, fresh,
                          o + i * lanes, o_stride);
  }
  if (i < vecs) {
    DecodeBlend<kRows, 1>(p, p_stride, v, touches, keys, i * lanes, fresh,
                          o + i * lanes, o_stride);
  }
}

template <class T>
HWY_INLINE void DecodeBlendRows(const float* p, size_t p_stride, size_t rows,
                                const T* const* v, Touches& touches,
                                size_t keys, size_t vecs, bool fresh, float* o,
                                size_t o_stride) {
  switch (rows) {
    case 1:
      return DecodeBlendWide<1, 8>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
    case 2:
      return DecodeBlendWide<2, 4>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
    case 3:
      return DecodeBlendWide<3, 2>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
    default:
      return DecodeBlendWide<4, 2>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
  }
}

// The columns of a step's v beyond the last whole vector, widened, with zeros
// behind: [keys, one vector].
template <class T>
HWY_NOINLINE void WidenRest(const T* const* v, size_t keys, size_t column,
                            size_t columns, size_t lanes, float* out,
                            const float** rows) {
  for (size_t key = 0; key < keys; ++key) {
    float* to = out + key * lanes;
    rows[key] = to;
    Widen(v[key] + column, columns, to);
    for (size_t i = columns; i < lanes; ++i) to[i] = 0.0f;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
