// Packing: query rows to transposed, scaled panels; value rows to column tiles;
// key rows side by side. 16-bit elements widen on the way; but for that and the
// one multiplication by the scale they are copies. Included once per target.
#if defined(HEED_KERNELS_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_PACK_INL_H_
#undef HEED_KERNELS_PACK_INL_H_
#else
#define HEED_KERNELS_PACK_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/blend-inl.h"
#include "kernels/convert-inl.h"
#include "kernels/scores-inl.h"
#include "kernels/task-inl.h"
#include "kernels/touch-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// Transposes 4 x 4 within each block of 128 bits: block b of `out_i` is element
// i of the four inputs' block b.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void Transpose4(D d, V r0, V r1, V r2, V r3, V& c0, V& c1, V& c2,
                           V& c3) {
  const hn::Repartition<uint64_t, D> dd;
  const V lo01 = hn::InterleaveLower(d, r0, r1),
          hi01 = hn::InterleaveUpper(d, r0, r1);
  const V lo23 = hn::InterleaveLower(d, r2, r3),
          hi23 = hn::InterleaveUpper(d, r2, r3);
  const auto lo01d = hn::BitCast(dd, lo01), lo23d = hn::BitCast(dd, lo23);
  const auto hi01d = hn::BitCast(dd, hi01), hi23d = hn::BitCast(dd, hi23);
  c0 = hn::BitCast(d, hn::InterleaveLower(dd, lo01d, lo23d));
  c1 = hn::BitCast(d, hn::InterleaveUpper(dd, lo01d, lo23d));
  c2 = hn::BitCast(d, hn::InterleaveLower(dd, hi01d, hi23d));
  c3 = hn::BitCast(d, hn::InterleaveUpper(dd, hi01d, hi23d));
}
#endif

// Rows of q that are transposed together, within vectors of 128 bits. (Eight in
// 256 bits halve the instructions and win nothing: at T 128 packing waits for
// q.)
constexpr size_t kPackRows = HWY_TARGET == HWY_SCALAR ? 1 : 4;

// kPackRows rows of q, element i of row r to out[i * panel + r], times scale.
//   rows: pointers to [dim]    out: [dim, panel] at the first of the rows
HWY_INLINE void PackRows(const float* const* rows, size_t dim, float scale,
                         size_t panel, float* HWY_RESTRICT out) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, kPackRows> d;
  const auto factor = hn::Set(d, scale);
  for (; i + 4 <= dim; i += 4) {
    auto c0 = hn::Zero(d), c1 = c0, c2 = c0, c3 = c0;
    Transpose4(d, hn::LoadU(d, rows[0] + i), hn::LoadU(d, rows[1] + i),
               hn::LoadU(d, rows[2] + i), hn::LoadU(d, rows[3] + i), c0, c1, c2,
               c3);
    hn::StoreU(hn::Mul(c0, factor), d, out + i * panel);
    hn::StoreU(hn::Mul(c1, factor), d, out + (i + 1) * panel);
    hn::StoreU(hn::Mul(c2, factor), d, out + (i + 2) * panel);
    hn::StoreU(hn::Mul(c3, factor), d, out + (i + 3) * panel);
  }
#endif
  for (; i < dim; ++i) {
    for (size_t r = 0; r < kPackRows; ++r) {
      out[i * panel + r] = rows[r][i] * scale;
    }
  }
}

// A row of q as f32: where it lies, or widened to `stage` [dim].
HWY_INLINE const float* AsFloats(const float* row, size_t /*dim*/,
                                 float* /*stage*/) {
  return row;
}
template <class T>
HWY_INLINE const float* AsFloats(const T* row, size_t dim, float* stage) {
  Widen(row, dim, stage);
  return stage;
}

// Touches rows [first, first + rows) of q or out, `dim` elements each.
template <class T>
HWY_INLINE void TouchRows(const Block& b, const T* array, int64_t stride_token,
                          int64_t stride_head, size_t first, size_t rows,
                          size_t dim) {
  RowWalk walk(b, first);
  for (size_t r = 0; r < rows; ++r, walk.Next()) {
    const T* row = array + walk.Offset(stride_token, stride_head);
    for (size_t i = 0; i < dim; i += kLineBytes / sizeof(T)) {
      hwy::Prefetch(row + i);
    }
  }
}

// The panel of q at row `first` of a block to out [dim, panel]; padding rows
// repeat the last. With tile.prefetch touches the next panel, which is packed
// when this one has been scored.
//   stage [kPackRows, dim]: room to widen 16-bit rows
template <class T>
HWY_NOINLINE void PackQ(const Block& b, size_t first, float* HWY_RESTRICT stage,
                        float* HWY_RESTRICT out) {
  const hn::ScalableTag<float> df;
  const size_t panel = kPanelVecs * hn::Lanes(df);
  const size_t dim = b.dim_qk;
  const T* q = static_cast<const T*>(b.q);
  const size_t rows = HWY_MIN(panel, b.rows - first);
  RowWalk walk(b, first);
  const float* group[kPackRows] = {};
  const float* last = nullptr;
  for (size_t r = 0; r < panel; r += kPackRows) {
    for (size_t i = 0; i < kPackRows; ++i) {
      if (r + i < rows) {
        last = AsFloats(q + walk.Offset(b.q_stride_token, b.q_stride_head), dim,
                        stage + i * dim);
        walk.Next();
      }
      group[i] = last;
    }
    PackRows(group, dim, b.q_scale, panel, out + r);
  }
  const size_t next = first + rows;
  if (b.tile.prefetch) {
    TouchRows(b, q, b.q_stride_token, b.q_stride_head, next,
              HWY_MIN(panel, b.rows - next), dim);
  }
}

// Keys [0, keys) of k, rows `stride` apart, side by side: out [keys, dim].
template <class T>
HWY_NOINLINE void PackK(const T* k, int64_t stride, size_t keys, size_t dim,
                        float* HWY_RESTRICT out) {
  for (size_t key = 0; key < keys; ++key) {
    Widen(k, dim, out);
    k += stride;
    out += dim;
  }
}

// Keys [0, keys) of v to keys [first, first + keys) of column tiles of room
// keys: the tile of vectors [c, c + vecs) is [room, vecs * lanes] at
// out + c * lanes * room. Columns beyond dim in the last vector are 0.
template <class T>
HWY_NOINLINE void PackV(const T* v, int64_t stride, size_t first, size_t keys,
                        size_t dim, size_t room, float* HWY_RESTRICT out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const size_t vecs = (dim + lanes - 1) / lanes;
  const ColumnTiles tiles = CutColumns(vecs);
  for (size_t c = 0; c < vecs;) {
    const size_t tile =
        c < tiles.first_end ? tiles.first_vecs : tiles.rest_vecs;
    float* HWY_RESTRICT to = out + c * lanes * room + first * tile * lanes;
    const T* from = v + c * lanes;
    const size_t columns = HWY_MIN(tile * lanes, dim - c * lanes);
    if (columns == tile * lanes) {
      for (size_t key = 0; key < keys; ++key) {
        for (size_t i = 0; i < columns; i += lanes) {
          hn::StoreU(LoadAs(d, from + i), d, to + i);
        }
        from += stride;
        to += columns;
      }
    } else {
      for (size_t key = 0; key < keys; ++key) {
        Widen(from, columns, to);
        for (size_t i = columns; i < tile * lanes; ++i) to[i] = 0.0f;
        from += stride;
        to += tile * lanes;
      }
    }
    c += tile;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
