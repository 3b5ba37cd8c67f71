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
#include "kernels/blend-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/decode-scores-inl.h"
#include "kernels/registers-inl.h"
#include "kernels/touch-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// kVecs vectors of a row of v, widened.
template <int kVecs, class D, class T, class V = hn::Vec<D>>
HWY_INLINE void LoadWide(D d, const T* HWY_RESTRICT v, V& v0, V& v1, V& v2,
                         V& v3) {
  const size_t lanes = hn::Lanes(d);
  v0 = LoadAs(d, v);
  if constexpr (kVecs > 1) v1 = LoadAs(d, v + lanes);
  if constexpr (kVecs > 2) v2 = LoadAs(d, v + 2 * lanes);
  if constexpr (kVecs > 3) v3 = LoadAs(d, v + 3 * lanes);
}

// The accumulators of kRows rows, kVecs vectors each, take in one key. Four
// accumulators are one row's, but of one row of eight vectors all are, four and
// four, and of eight rows of two vectors each four are two rows'.
template <int kRows, int kVecs, class D, class T, class V = hn::Vec<D>>
HWY_INLINE void BlendKey(D d, const float* HWY_RESTRICT p,
                         const T* HWY_RESTRICT v, V& a00, V& a01, V& a02,
                         V& a03, V& a10, V& a11, V& a12, V& a13, V& a20, V& a21,
                         V& a22, V& a23, V& a30, V& a31, V& a32, V& a33) {
  constexpr int kQuad = kVecs == 8 ? 4 : kVecs;
  V v0 = hn::Zero(d), v1 = v0, v2 = v0, v3 = v0;
  LoadWide<kQuad>(d, v, v0, v1, v2, v3);
  if constexpr (kRows == 8) {
    static_assert(kVecs <= 2);
    AddKey<kVecs>(d, p, v0, v1, v2, v3, a00, a01, v2, v3);
    AddKey<kVecs>(d, p + 1, v0, v1, v2, v3, a02, a03, v2, v3);
    AddKey<kVecs>(d, p + 2, v0, v1, v2, v3, a10, a11, v2, v3);
    AddKey<kVecs>(d, p + 3, v0, v1, v2, v3, a12, a13, v2, v3);
    AddKey<kVecs>(d, p + 4, v0, v1, v2, v3, a20, a21, v2, v3);
    AddKey<kVecs>(d, p + 5, v0, v1, v2, v3, a22, a23, v2, v3);
    AddKey<kVecs>(d, p + 6, v0, v1, v2, v3, a30, a31, v2, v3);
    AddKey<kVecs>(d, p + 7, v0, v1, v2, v3, a32, a33, v2, v3);
    return;
  }
  AddKey<kQuad>(d, p, v0, v1, v2, v3, a00, a01, a02, a03);
  if constexpr (kVecs == 8) {
    LoadWide<kQuad>(d, v + 4 * hn::Lanes(d), v0, v1, v2, v3);
    AddKey<kQuad>(d, p, v0, v1, v2, v3, a10, a11, a12, a13);
  }
  if constexpr (kRows > 1) {
    AddKey<kQuad>(d, p + 1, v0, v1, v2, v3, a10, a11, a12, a13);
  }
  if constexpr (kRows > 2) {
    AddKey<kQuad>(d, p + 2, v0, v1, v2, v3, a20, a21, a22, a23);
  }
  if constexpr (kRows > 3) {
    AddKey<kQuad>(d, p + 3, v0, v1, v2, v3, a30, a31, a32, a33);
  }
}

// Between the accumulators, as BlendKey has them, and o.
template <int kRows, int kVecs, class D, class V = hn::Vec<D>>
HWY_INLINE void LoadSums(D d, const float* o, size_t o_stride, V& a00, V& a01,
                         V& a02, V& a03, V& a10, V& a11, V& a12, V& a13, V& a20,
                         V& a21, V& a22, V& a23, V& a30, V& a31, V& a32,
                         V& a33) {
  if constexpr (kRows == 8) {
    V none = hn::Zero(d);
    LoadRow<kVecs>(d, o + 0 * o_stride, a00, a01, none, none);
    LoadRow<kVecs>(d, o + 1 * o_stride, a02, a03, none, none);
    LoadRow<kVecs>(d, o + 2 * o_stride, a10, a11, none, none);
    LoadRow<kVecs>(d, o + 3 * o_stride, a12, a13, none, none);
    LoadRow<kVecs>(d, o + 4 * o_stride, a20, a21, none, none);
    LoadRow<kVecs>(d, o + 5 * o_stride, a22, a23, none, none);
    LoadRow<kVecs>(d, o + 6 * o_stride, a30, a31, none, none);
    LoadRow<kVecs>(d, o + 7 * o_stride, a32, a33, none, none);
    return;
  }
  constexpr int kQuad = kVecs == 8 ? 4 : kVecs;
  constexpr int kQuads = kVecs == 8 ? 2 : kRows;
  const size_t next = kVecs == 8 ? 4 * hn::Lanes(d) : o_stride;
  LoadRow<kQuad>(d, o, a00, a01, a02, a03);
  if constexpr (kQuads > 1) LoadRow<kQuad>(d, o + 1 * next, a10, a11, a12, a13);
  if constexpr (kQuads > 2) LoadRow<kQuad>(d, o + 2 * next, a20, a21, a22, a23);
  if constexpr (kQuads > 3) LoadRow<kQuad>(d, o + 3 * next, a30, a31, a32, a33);
}

template <int kRows, int kVecs, class D, class V = hn::Vec<D>>
HWY_INLINE void StoreSums(D d, V a00, V a01, V a02, V a03, V a10, V a11, V a12,
                          V a13, V a20, V a21, V a22, V a23, V a30, V a31,
                          V a32, V a33, float* o, size_t o_stride) {
  if constexpr (kRows == 8) {
    const V none = a00;
    StoreRow<kVecs>(d, a00, a01, none, none, o + 0 * o_stride);
    StoreRow<kVecs>(d, a02, a03, none, none, o + 1 * o_stride);
    StoreRow<kVecs>(d, a10, a11, none, none, o + 2 * o_stride);
    StoreRow<kVecs>(d, a12, a13, none, none, o + 3 * o_stride);
    StoreRow<kVecs>(d, a20, a21, none, none, o + 4 * o_stride);
    StoreRow<kVecs>(d, a22, a23, none, none, o + 5 * o_stride);
    StoreRow<kVecs>(d, a30, a31, none, none, o + 6 * o_stride);
    StoreRow<kVecs>(d, a32, a33, none, none, o + 7 * o_stride);
    return;
  }
  constexpr int kQuad = kVecs == 8 ? 4 : kVecs;
  constexpr int kQuads = kVecs == 8 ? 2 : kRows;
  const size_t next = kVecs == 8 ? 4 * hn::Lanes(d) : o_stride;
  StoreRow<kQuad>(d, a00, a01, a02, a03, o);
  if constexpr (kQuads > 1)
    StoreRow<kQuad>(d, a10, a11, a12, a13, o + 1 * next);
  if constexpr (kQuads > 2)
    StoreRow<kQuad>(d, a20, a21, a22, a23, o + 2 * next);
  if constexpr (kQuads > 3)
    StoreRow<kQuad>(d, a30, a31, a32, a33, o + 3 * next);
}

// kRows rows of o, kVecs vectors of it each, take in a step's keys.
//   p: the first key's weights, keys p_stride apart
//   v: rows of v, of which the columns from `column` on are taken
// Registers: kRows * kVecs accumulators, at least 8 to hide the latency of a
// multiply-add, up to 4 of v and 1 weight. (12 of four rows and three vectors,
// with 16 registers: 130 cycles a key in the cache, not 133, of f32, but 124,
// not 118, of f16 and 121, not 117, of bf16.)
template <int kRows, int kVecs, class T>
HWY_NOINLINE void DecodeBlend(const float* HWY_RESTRICT p, size_t p_stride,
                              const T* const* v, Touches& touches, size_t keys,
                              size_t column, bool fresh, float* HWY_RESTRICT o,
                              size_t o_stride) {
  static_assert(kVecs <= 4 || (kVecs == 8 && kRows == 1));
  static_assert(kRows * kVecs <= (kManyRegisters ? 16 : 8));
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  V a00 = hn::Zero(d), a01 = a00, a02 = a00, a03 = a00;
  V a10 = a00, a11 = a00, a12 = a00, a13 = a00;
  V a20 = a00, a21 = a00, a22 = a00, a23 = a00;
  V a30 = a00, a31 = a00, a32 = a00, a33 = a00;
  if (!fresh) {
    LoadSums<kRows, kVecs>(d, o, o_stride, a00, a01, a02, a03, a10, a11, a12,
                           a13, a20, a21, a22, a23, a30, a31, a32, a33);
  }
  // As many lines as two keys' v here takes.
  constexpr size_t kVecBytes = HWY_MAX_BYTES / sizeof(float) * sizeof(T);
  constexpr size_t kTouches =
      HWY_MAX(2 * kVecs * kVecBytes / kLineBytes, size_t{1});
  Touches next = touches;
  size_t key = 0;
  for (; key + 2 <= keys; key += 2) {
    Touch<kTouches>(next);
    BlendKey<kRows, kVecs>(d, p, v[key] + column, a00, a01, a02, a03, a10, a11,
                           a12, a13, a20, a21, a22, a23, a30, a31, a32, a33);
    p += p_stride;
    BlendKey<kRows, kVecs>(d, p, v[key + 1] + column, a00, a01, a02, a03, a10,
                           a11, a12, a13, a20, a21, a22, a23, a30, a31, a32,
                           a33);
    p += p_stride;
  }
  if (key < keys) {
    BlendKey<kRows, kVecs>(d, p, v[key] + column, a00, a01, a02, a03, a10, a11,
                           a12, a13, a20, a21, a22, a23, a30, a31, a32, a33);
  }
  touches = next;
  StoreSums<kRows, kVecs>(d, a00, a01, a02, a03, a10, a11, a12, a13, a20, a21,
                          a22, a23, a30, a31, a32, a33, o, o_stride);
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

// Vectors of three or four rows that are blended at once.
constexpr int kFewRowsVecs = kManyRegisters ? 4 : 2;

// Up to four rows.
template <class T>
HWY_INLINE void DecodeBlendFew(const float* p, size_t p_stride, size_t rows,
                               const T* const* v, Touches& touches, size_t keys,
                               size_t vecs, bool fresh, float* o,
                               size_t o_stride) {
  switch (rows) {
    case 1:
      return DecodeBlendWide<1, 8>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
    case 2:
      return DecodeBlendWide<2, 4>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
    case 3:
      return DecodeBlendWide<3, kFewRowsVecs>(p, p_stride, v, touches, keys,
                                              vecs, fresh, o, o_stride);
    default:
      return DecodeBlendWide<4, kFewRowsVecs>(p, p_stride, v, touches, keys,
                                              vecs, fresh, o, o_stride);
  }
}

// A panel's rows: eight at once, so that v is widened once and touches come
// evenly, else four and the others.
template <class T>
HWY_INLINE void DecodeBlendRows(const float* p, size_t p_stride, size_t rows,
                                const T* const* v, Touches& touches,
                                size_t keys, size_t vecs, bool fresh, float* o,
                                size_t o_stride) {
  if constexpr (kPanelRows > 4) {
    if (rows == 8) {
      return DecodeBlendWide<8, 2>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
    }
    if (rows > 4) {
      DecodeBlendFew(p, p_stride, 4, v, touches, keys, vecs, fresh, o,
                     o_stride);
      p += 4;
      o += 4 * o_stride;
      rows -= 4;
    }
  }
  DecodeBlendFew(p, p_stride, rows, v, touches, keys, vecs, fresh, o, o_stride);
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
