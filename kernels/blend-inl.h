// The blend: rows of o += weights * v, each output column one chain in key
// order.
//
// Knows weights, value columns and accumulators; nothing of visibility.
// Included once per target.
#if defined(HEED_KERNELS_BLEND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_BLEND_INL_H_
#undef HEED_KERNELS_BLEND_INL_H_
#else
#define HEED_KERNELS_BLEND_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/registers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows whose scores lie side by side, key after key, in a strip: a vector's.
// The L1 then reads a row group's weights as one or two streams. (All rows of a
// block side by side, 4 to 7 cache lines a key: a blend of 192 keys ran at 87
// to 95 % of the peak, so at 98.) Two at least, for BlendInput::p.
HWY_INLINE size_t StripRows() {
  return HWY_MAX(hn::Lanes(hn::ScalableTag<float>()), size_t{2});
}

constexpr size_t kRowPairs = 3;

// Weights and values of one register tile.
struct BlendInput {
  // Weights of the first key to rows 0 and 1, 2 and 3, 4 and 5: strips are an
  // even number of rows, so a pair lies in one. StripRows() elements between
  // keys.
  const float* p[kRowPairs];
  const float* v;        // [keys, columns of the first tile]
  int64_t v_stride;      // elements between keys
  size_t column_stride;  // elements from one column tile to the next
  size_t columns;        // column tiles
  // Keys in order: `lead` that row i sees without the first i, `keys` that
  // every row sees, `trail` of which row i sees the first i. lead and trail are
  // 0 or the rows but one: the edges of a window and the causal diagonal.
  size_t lead, keys, trail;
};

// One row's accumulators take in one key.
template <int kVecs, class D, class V = hn::Vec<D>>
HWY_INLINE void AddKey(D d, const float* p, V v0, V v1, V v2, V v3, V& a0,
                       V& a1, V& a2, V& a3) {
  const V w = hn::Set(d, *p);
  a0 = hn::MulAdd(w, v0, a0);
  if constexpr (kVecs > 1) a1 = hn::MulAdd(w, v1, a1);
  if constexpr (kVecs > 2) a2 = hn::MulAdd(w, v2, a2);
  if constexpr (kVecs > 3) a3 = hn::MulAdd(w, v3, a3);
}

template <int kVecs, class D, class V = hn::Vec<D>>
HWY_INLINE void LoadRow(D d, const float* row, V& a0, V& a1, V& a2, V& a3) {
  const size_t lanes = hn::Lanes(d);
  a0 = hn::LoadU(d, row);
  if constexpr (kVecs > 1) a1 = hn::LoadU(d, row + lanes);
  if constexpr (kVecs > 2) a2 = hn::LoadU(d, row + 2 * lanes);
  if constexpr (kVecs > 3) a3 = hn::LoadU(d, row + 3 * lanes);
}

template <int kVecs, class D, class V = hn::Vec<D>>
HWY_INLINE void StoreRow(D d, V a0, V a1, V a2, V a3, float* row) {
  const size_t lanes = hn::Lanes(d);
  hn::Store(a0, d, row);
  if constexpr (kVecs > 1) hn::Store(a1, d, row + lanes);
  if constexpr (kVecs > 2) hn::Store(a2, d, row + 2 * lanes);
  if constexpr (kVecs > 3) hn::Store(a3, d, row + 3 * lanes);
}

// o [kRows, kVecs vectors], stride o_stride, aligned: o = (fresh ? 0 : o) +
// weights * v. Registers: kRows * kVecs accumulators + kVecs of v + 1 weight:
// of 16, 6 x 2 (15) and 4 x 3 (16); of 32, 6 x 4 (29). Not inlined: inside the
// block function g++ 12 spills the accumulators (KERNELS measured +11 %).
template <int kRows, int kVecs>
HWY_NOINLINE void BlendTile(const BlendInput& in, bool fresh,
                            float* HWY_RESTRICT o, size_t o_stride) {
  static_assert(1 <= kRows && kRows <= 6 && 1 <= kVecs && kVecs <= 4);
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const size_t p_stride = StripRows();
  for (size_t column = 0; column < in.columns; ++column) {
    V a00 = hn::Zero(d), a01 = a00, a02 = a00, a03 = a00;
    V a10 = a00, a11 = a00, a12 = a00, a13 = a00;
    V a20 = a00, a21 = a00, a22 = a00, a23 = a00;
    V a30 = a00, a31 = a00, a32 = a00, a33 = a00;
    V a40 = a00, a41 = a00, a42 = a00, a43 = a00;
    V a50 = a00, a51 = a00, a52 = a00, a53 = a00;
    if (!fresh) {
      LoadRow<kVecs>(d, o, a00, a01, a02, a03);
      if constexpr (kRows > 1)
        LoadRow<kVecs>(d, o + o_stride, a10, a11, a12, a13);
      if constexpr (kRows > 2)
        LoadRow<kVecs>(d, o + 2 * o_stride, a20, a21, a22, a23);
      if constexpr (kRows > 3)
        LoadRow<kVecs>(d, o + 3 * o_stride, a30, a31, a32, a33);
      if constexpr (kRows > 4)
        LoadRow<kVecs>(d, o + 4 * o_stride, a40, a41, a42, a43);
      if constexpr (kRows > 5)
        LoadRow<kVecs>(d, o + 5 * o_stride, a50, a51, a52, a53);
    }
    const float* HWY_RESTRICT p0 = in.p[0];
    const float* HWY_RESTRICT p2 = in.p[1];
    const float* HWY_RESTRICT p4 = in.p[2];
    const float* HWY_RESTRICT v = in.v + column * in.column_stride;
    V v0 = hn::Zero(d), v1 = v0, v2 = v0, v3 = v0;
    // A key that a row does not see is not multiplied: its v may be NaN.
    for (size_t key = 0; key < in.lead; ++key) {
      LoadRow<kVecs>(d, v, v0, v1, v2, v3);
      AddKey<kVecs>(d, p0, v0, v1, v2, v3, a00, a01, a02, a03);
      if constexpr (kRows > 2) {
        if (key > 0)
          AddKey<kVecs>(d, p0 + 1, v0, v1, v2, v3, a10, a11, a12, a13);
      }
      if constexpr (kRows > 3) {
        if (key > 1) AddKey<kVecs>(d, p2, v0, v1, v2, v3, a20, a21, a22, a23);
      }
      if constexpr (kRows > 4) {
        if (key > 2)
          AddKey<kVecs>(d, p2 + 1, v0, v1, v2, v3, a30, a31, a32, a33);
      }
      if constexpr (kRows > 5) {
        if (key > 3) AddKey<kVecs>(d, p4, v0, v1, v2, v3, a40, a41, a42, a43);
      }
      p0 += p_stride;
      p2 += p_stride;
      p4 += p_stride;
      v += in.v_stride;
    }
    // Unrolled so that the predictor sees the loop end (D64: 37.6 to 35.9
    // cycles per 8 scores).
#pragma GCC unroll 4
    for (size_t key = 0; key < in.keys; ++key) {
      LoadRow<kVecs>(d, v, v0, v1, v2, v3);
      AddKey<kVecs>(d, p0, v0, v1, v2, v3, a00, a01, a02, a03);
      if constexpr (kRows > 1)
        AddKey<kVecs>(d, p0 + 1, v0, v1, v2, v3, a10, a11, a12, a13);
      if constexpr (kRows > 2)
        AddKey<kVecs>(d, p2, v0, v1, v2, v3, a20, a21, a22, a23);
      if constexpr (kRows > 3)
        AddKey<kVecs>(d, p2 + 1, v0, v1, v2, v3, a30, a31, a32, a33);
      if constexpr (kRows > 4)
        AddKey<kVecs>(d, p4, v0, v1, v2, v3, a40, a41, a42, a43);
      if constexpr (kRows > 5)
        AddKey<kVecs>(d, p4 + 1, v0, v1, v2, v3, a50, a51, a52, a53);
      p0 += p_stride;
      p2 += p_stride;
      p4 += p_stride;
      v += in.v_stride;
    }
    for (size_t key = 0; key < in.trail; ++key) {
      LoadRow<kVecs>(d, v, v0, v1, v2, v3);
      if constexpr (kRows > 1) {
        if (key < 1)
          AddKey<kVecs>(d, p0 + 1, v0, v1, v2, v3, a10, a11, a12, a13);
      }
      if constexpr (kRows > 2) {
        if (key < 2) AddKey<kVecs>(d, p2, v0, v1, v2, v3, a20, a21, a22, a23);
      }
      if constexpr (kRows > 3) {
        if (key < 3)
          AddKey<kVecs>(d, p2 + 1, v0, v1, v2, v3, a30, a31, a32, a33);
      }
      if constexpr (kRows > 4) {
        if (key < 4) AddKey<kVecs>(d, p4, v0, v1, v2, v3, a40, a41, a42, a43);
      }
      if constexpr (kRows > 5) {
        if (key < 5)
          AddKey<kVecs>(d, p4 + 1, v0, v1, v2, v3, a50, a51, a52, a53);
      }
      p0 += p_stride;
      p2 += p_stride;
      p4 += p_stride;
      v += in.v_stride;
    }
    StoreRow<kVecs>(d, a00, a01, a02, a03, o);
    if constexpr (kRows > 1)
      StoreRow<kVecs>(d, a10, a11, a12, a13, o + o_stride);
    if constexpr (kRows > 2)
      StoreRow<kVecs>(d, a20, a21, a22, a23, o + 2 * o_stride);
    if constexpr (kRows > 3)
      StoreRow<kVecs>(d, a30, a31, a32, a33, o + 3 * o_stride);
    if constexpr (kRows > 4)
      StoreRow<kVecs>(d, a40, a41, a42, a43, o + 4 * o_stride);
    if constexpr (kRows > 5)
      StoreRow<kVecs>(d, a50, a51, a52, a53, o + 5 * o_stride);
    o += kVecs * lanes;
  }
}

// Vectors of the widest column tile, and rows of the largest register tile of
// so many vectors.
constexpr size_t kMostVecs = kManyRegisters ? 4 : 3;
constexpr size_t GroupRows(size_t vecs) {
  return vecs == 3 && !kManyRegisters ? 4 : 6;
}

// The tile for `rows` rows: whole groups but at the end of a block.
template <int kVecs>
HWY_INLINE void BlendRows(const BlendInput& in, size_t rows, bool fresh,
                          float* o, size_t o_stride) {
  switch (rows) {
    case 1:
      return BlendTile<1, kVecs>(in, fresh, o, o_stride);
    case 2:
      return BlendTile<2, kVecs>(in, fresh, o, o_stride);
    case 3:
      return BlendTile<3, kVecs>(in, fresh, o, o_stride);
    case 4:
      return BlendTile<4, kVecs>(in, fresh, o, o_stride);
    default:
      break;
  }
  if constexpr (GroupRows(kVecs) == 6) {
    if (rows == 5) return BlendTile<5, kVecs>(in, fresh, o, o_stride);
    return BlendTile<6, kVecs>(in, fresh, o, o_stride);
  }
}

// `vecs` is 1 to kMostVecs; rows <= GroupRows(vecs).
HWY_INLINE void Blend(const BlendInput& in, size_t rows, size_t vecs,
                      bool fresh, float* o, size_t o_stride) {
  if constexpr (kMostVecs == 4) {
    if (vecs == 4) return BlendRows<4>(in, rows, fresh, o, o_stride);
  }
  if (vecs == 2) return BlendRows<2>(in, rows, fresh, o, o_stride);
  if (vecs == 3) return BlendRows<3>(in, rows, fresh, o, o_stride);
  return BlendRows<1>(in, rows, fresh, o, o_stride);
}

// The vectors of a row of o in column tiles: tiles of first_vecs up to vector
// `first_end`, then of rest_vecs. One-vector tiles have too few chains, so five
// vectors are 3 + 2, not 2 + 2 + 1.
struct ColumnTiles {
  size_t first_end, first_vecs, rest_vecs;
};

HWY_INLINE ColumnTiles CutColumns(size_t vecs) {
  if (vecs <= kMostVecs) return {vecs, vecs, vecs};
  if (kManyRegisters && vecs != 5) {
    // Threes until fours are left: 6 = 3 + 3, 7 = 3 + 4, 9 = 3 + 3 + 3.
    return {3 * ((4 - vecs % 4) % 4), 3, 4};
  }
  return {vecs % 2 != 0 ? size_t{3} : size_t{0}, 3, 2};
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
