// One task: a block of query rows against all their keys, by the row program.
//
//   for each chunk of 768 keys:  for each key tile:  scores -> for each step of
//   48: softmax -> blend then merge the chunk into the rows; at the end
//   normalise and write.
//
// Lanes are rows in scores and softmax, value columns in the blend, so nothing
// is ever summed across lanes and every tile size gives the same bits. Milakov
// & Gimelshein 2018 (online softmax), Rabe & Staats 2021 (memory O(tile)), Dao
// et al. 2022 (tiling); the integer running maximum is heed's own. Included
// once per target.
#if defined(HEED_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_INL_H_
#undef HEED_KERNELS_ATTENTION_INL_H_
#else
#define HEED_KERNELS_ATTENTION_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/blend-inl.h"
#include "kernels/kernels.h"
#include "kernels/key-copies-inl.h"
#include "kernels/mask-inl.h"
#include "kernels/pack-inl.h"
#include "kernels/scores-inl.h"
#include "kernels/softmax-inl.h"
#include "kernels/state-inl.h"
#include "kernels/task-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A panel: rows of two whole vectors.
using RowTag = hn::ScalableTag<float>;

HWY_INLINE Layout PrefillLayout(const Tile& tile, size_t dim_qk, size_t dim_v) {
  const PathSizes path = {kPanelVecs * hn::Lanes(RowTag()), StripRows(), dim_qk,
                          kPackRows * dim_qk};
  return MakeLayout(tile, dim_v, path, tile.pack_k == Pack::kTile ? dim_qk : 0);
}

// Scores of any row, StripRows() elements from key to key.
HWY_INLINE float* ScoresOf(const Task& t, size_t row, size_t key) {
  const size_t of_strip = row % StripRows();
  return t.Scores(row - of_strip, key) + of_strip;
}

// Column tiles of one width: vectors [begin, end) of a row of o, `vecs` at a
// time.
struct ColumnSpan {
  size_t begin, end, vecs;
};

// Blends keys of the tile into rows [row, row + rows), all columns of the span.
HWY_INLINE void BlendColumns(const Task& t, const ColumnSpan& span, size_t row,
                             size_t rows, const GroupKeys& keys, bool fresh) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  BlendInput in;
  const size_t key_begin = keys.begin - keys.lead;
  for (size_t pair = 0; pair < kRowPairs; ++pair) {
    in.p[pair] = ScoresOf(t, row + 2 * pair, key_begin);
  }
  in.keys = keys.end - keys.begin;
  in.lead = keys.lead;
  in.trail = keys.trail;
  const size_t width = span.vecs * lanes;
  if (t.packed_v != nullptr) {
    in.v_stride = static_cast<int64_t>(width);
    in.column_stride = width * t.v_room;
    in.v = t.packed_v + (key_begin - t.tile_begin) * width +
           span.begin * lanes * t.v_room;
  } else {
    in.v_stride = t.b.v_stride;
    in.column_stride = width;
    in.v = static_cast<const float*>(t.b.v) +
           static_cast<int64_t>(key_begin) * in.v_stride + span.begin * lanes;
  }
  in.columns = (span.end - span.begin) / span.vecs;
  Blend(in, rows, span.vecs, fresh,
        t.o + row * t.at.o_stride + span.begin * lanes, t.at.o_stride);
}

// Blends rows and keys of one span, as BlendInRange asks. Not a lambda: those
// are not inlined here, which costs 0.5 % of all instructions at dim 64.
struct SpanBlender {
  const Task& t;
  const ColumnSpan& span;

  HWY_INLINE void operator()(size_t row, size_t rows, const GroupKeys& keys,
                             bool fresh) const {
    BlendColumns(t, span, row, rows, keys, fresh);
  }
};

// Touches the rows of out that the blend is about to finish, so that writing
// them does not wait for memory (dim 40, 77 keys, 16 heads: 66 to 68 % of the
// peak).
template <class T>
HWY_INLINE void TouchOut(const Task& t, size_t row, size_t rows) {
  const Block& b = t.b;
  TouchRows(b, static_cast<const T*>(b.out), b.out_stride_token,
            b.out_stride_head, row, rows, b.dim_v);
}

// Rows outside, columns inside: the weights of a row group and, for widths up
// to 64, the whole v tile stay in the L1 (columns outside: 0.1 to 1.3 points of
// peak less, D 64 and 128).
template <class T>
HWY_INLINE void BlendSpan(const Task& t, const ColumnSpan& span, size_t key_end,
                          bool visible_only) {
  if (span.begin == span.end) return;
  const size_t group = GroupRows(span.vecs);
  const SpanBlender blend = {t, span};
  const bool touches = t.b.tile.prefetch && span.begin == 0 && key_end == t.end;
  for (size_t row = 0; row < t.rows; row += group) {
    const size_t rows = HWY_MIN(group, t.rows - row);
    if (touches) TouchOut<T>(t, row, rows);
    if (HWY_UNLIKELY(visible_only)) {
      BlendVisible(t, row, rows, key_end, blend);
    } else {
      BlendInRange(t, row, rows, key_end, /*triangles=*/true, blend);
    }
  }
}

// Blends all weighed keys below key_end into o.
template <class T>
HWY_INLINE void BlendPending(Task& t, size_t key_end) {
  if (t.pending >= key_end) return;
  const bool visible_only = t.hidden && !IsFinite<T>(t.b, t.pending, key_end);
  const ColumnTiles tiles = CutColumns(t.o_vecs);
  BlendSpan<T>(t, {0, tiles.first_end, tiles.first_vecs}, key_end,
               visible_only);
  BlendSpan<T>(t, {tiles.first_end, t.o_vecs, tiles.rest_vecs}, key_end,
               visible_only);
  t.pending = key_end;
  t.o_fresh = false;
  t.hidden = false;
}

// The rows of k from key t.tile_begin on, as f32.
struct KeyRows {
  const float* k;
  int64_t stride;
};

// Plans what a step's scores touch on the side, from the panel at `row` on: the
// v of these keys and the k of the next. Spread over the panels: 384 lines of
// dim 64 during the first alone filled the L1's miss buffers (dim 64, T 197:
// 72 to 73 % of the peak).
HWY_INLINE void PlanTouches(Task& t, const KeyRows& keys, size_t row,
                            size_t begin, size_t end) {
  const Block& b = t.b;
  RowRun v;
  if (t.packed_v != nullptr) {
    const size_t width = t.at.o_stride;
    v = RunOfRows(t.packed_v + (begin - t.tile_begin) * width, width,
                  static_cast<int64_t>(width), end - begin);
  } else {
    v = RunOfRows(static_cast<const float*>(b.v) +
                      static_cast<int64_t>(begin) * b.v_stride,
                  b.dim_v, b.v_stride, end - begin);
  }
  RowRun k;
  if (b.tile.pack_k != Pack::kTile) {
    k = RunOfRows(
        keys.k + static_cast<int64_t>(end - t.tile_begin) * keys.stride,
        b.dim_qk, keys.stride, HWY_MIN(kStep, b.len_k - end));
  }
  const size_t panels = (t.rows - row + t.at.panel - 1) / t.at.panel;
  t.touches.Plan(v, k, panels * ((end - begin + kKeyGroup - 1) / kKeyGroup));
}

// Whether the panel's second vector holds padding rows alone. (Biases are laid
// out for two.)
HWY_INLINE bool OneVector(const Task& t, size_t row) {
  return !t.biased && t.rows - row <= hn::Lanes(RowTag());
}

// Keys [begin, end) of one step for the panel, or the vector of rows, at `row`.
HWY_INLINE ScoreInput InputOf(const Task& t, const KeyRows& keys, size_t row,
                              size_t begin, size_t end) {
  const size_t in_panel = row % t.at.panel;
  ScoreInput in;
  in.q = t.scratch + t.at.q + (row - in_panel) * t.b.dim_qk + in_panel;
  in.k = keys.k + static_cast<int64_t>(begin - t.tile_begin) * keys.stride;
  in.k_stride = keys.stride;
  in.keys = end - begin;
  in.dim = t.b.dim_qk;
  return in;
}

// Scores of keys [begin, end) of one step for the vector of rows at `row`.
HWY_INLINE void ScoreRows(const Task& t, const KeyRows& keys, size_t row,
                          size_t begin, size_t end) {
  ScoreVector(InputOf(t, keys, row, begin, end), ScoresOf(t, row, begin),
              t.at.s_stride, t.Row(kTop) + row);
}

// Scores of keys [begin, end) of one step for the panel at `row`; none for the
// first of its vectors from first_end on. `sloped`: with ALiBi.
HWY_INLINE void ScorePanel(Task& t, const KeyRows& keys, size_t row,
                           size_t begin, size_t first_end, size_t end,
                           bool sloped) {
  ScoreInput in = InputOf(t, keys, row, begin, first_end);
  if (t.b.tile.prefetch) in.touches = &t.touches;
  float* s = t.Scores(row, begin);
  float* top = t.Row(kTop) + row;
  if (sloped) {
    in.alibi = SlopesOf(t, row, begin);
    ScoreStep<true>(in, s, t.at.s_stride, t.at.s_second, top);
  } else {
    ScoreStep<false>(in, s, t.at.s_stride, t.at.s_second, top);
  }
  if (first_end < end) {
    // HideStep takes the maximum of both parts.
    ScoreRows(t, keys, row + hn::Lanes(RowTag()), first_end, end);
  }
}

// Where the scores of the first of a panel's vectors end: its rows see no key
// from there on. (T 128, causal: a tenth of all scores less, 68.8 to 69.5 % of
// the peak.)
HWY_INLINE size_t FirstVectorEnd(const Task& t, size_t row, size_t begin,
                                 size_t end) {
  if (t.biased) return end;
  const size_t last = row + hn::Lanes(RowTag()) - 1;
  const size_t seen = ClampTo(t.Sees(last).end, begin, end);
  // A panel's scores are made in whole groups anyway.
  return end - seen < kKeyGroup ? end : seen;
}

// Packs q up to the panel at `row`.
template <class T>
HWY_INLINE void TakePanel(Task& t, size_t row) {
  for (; t.rows_packed <= row; t.rows_packed += t.at.panel) {
    PackQ<T>(t.b, t.rows_packed, t.scratch + t.at.stage,
             t.scratch + t.at.q + t.rows_packed * t.b.dim_qk);
  }
}

// The tile's k as the scores read it and, in t.packed_v, its v as the blend
// does.
template <class T>
HWY_INLINE KeyRows TakeTile(Task& t, size_t keys) {
  const Block& b = t.b;
  const size_t key_begin = t.tile_begin;
  const int64_t dim = static_cast<int64_t>(b.dim_qk);
  t.packed_v = nullptr;
  if (b.tile.pack_v == Pack::kTile) {
    float* packed = t.scratch + t.at.v;
    t.v_room = b.tile.key_tile;
    CopyV<T>(b, key_begin, keys, 0, t.v_room, packed);
    t.packed_v = packed;
  } else if (b.tile.pack_v == Pack::kCall) {
    t.v_room = TileKeys(b, key_begin);
    t.packed_v = b.packed_v + key_begin * t.at.o_stride;
  }
  if (b.tile.pack_k == Pack::kNone) {
    return {reinterpret_cast<const float*>(KeyAt<T>(b, key_begin)), b.k_stride};
  }
  if (b.tile.pack_k == Pack::kCall) {
    return {b.packed_k + key_begin * b.dim_qk, dim};
  }
  float* packed = t.scratch + t.at.k;
  CopyK<T>(b, key_begin, keys, packed);
  return {packed, dim};
}

// Blends what is pending below key_begin and passes over [key_begin, key_end),
// which no row sees.
template <class T>
HWY_INLINE void SkipTo(Task& t, size_t key_begin, size_t key_end) {
  BlendPending<T>(t, key_begin);
  t.pending = key_end;
}

// Keys [key_begin, key_end) of one tile; key_begin is a step's first key. A
// step at a time: a panel's scores of one step (3 KB) are weighed while they
// are in the L1, and the step's keys stay there while the panels pass over
// them.
template <class T>
HWY_INLINE void RunTile(Task& t, size_t key_begin, size_t key_end) {
  t.tile_begin = key_begin;
  t.pending = key_begin;
  KeyRows keys = {nullptr, 0};
  for (size_t step = key_begin; step < key_end; step += kStep) {
    const size_t step_end = HWY_MIN(step + kStep, key_end);
    size_t first = step, last = step_end;
    if (t.seen != nullptr && HasBlocks(t.b.bias)) {
      CutToBlocks(t, &first, &last);
      if (first != step) SkipTo<T>(t, step, first);
    }
    bool scored = false, hidden = false;
    for (size_t row = 0; row < t.rows; row += t.at.panel) {
      const PanelRange range = RangeOf(t, row);
      const size_t begin = HWY_MAX(first, range.lowest_begin);
      const size_t end = HWY_MIN(last, range.highest_end);
      if (begin >= end) continue;
      const MaskView view = MaskOf(t, row, begin, end);
      if (view == MaskView::kHidden) {
        hidden = true;
        ClearPanel(t, row, begin, end);
        continue;
      }
      if (keys.k == nullptr) keys = TakeTile<T>(t, key_end - key_begin);
      TakePanel<T>(t, row);
      if (t.b.tile.prefetch && !scored) PlanTouches(t, keys, row, begin, end);
      const bool sloped = t.slopes_alone && view == MaskView::kPlain;
      const auto blend = [&]() HWY_ATTR { BlendPending<T>(t, first); };
      if (OneVector(t, row)) {
        ScoreRows(t, keys, row, begin, end);
        WeighPanel<1>(RowTag(), t, range, row, begin, end, end, false, view,
                      blend);
      } else {
        const size_t first_end = FirstVectorEnd(t, row, begin, end);
        ScorePanel(t, keys, row, begin, first_end, end, sloped);
        WeighPanel<kPanelVecs>(RowTag(), t, range, row, begin, first_end, end,
                               t.biased && !sloped, view, blend);
      }
      scored = true;
      hidden |= view == MaskView::kMixed;
    }
    if (hidden && !scored) {
      SkipTo<T>(t, step, step_end);
    } else {
      t.hidden |= hidden;
      if (last != step_end) SkipTo<T>(t, last, step_end);
    }
  }
  BlendPending<T>(t, key_end);
}

// Keys [key_begin, key_end) of one chunk, tile by tile; tiles are counted from
// the chunk's first key.
template <class T>
HWY_INLINE void RunChunk(Task& t, size_t key_begin, size_t key_end) {
  StartChunk(t);
  const size_t tile = t.b.tile.key_tile;
  const size_t chunk = key_begin / kChunk * kChunk;
  for (size_t begin = chunk + (key_begin - chunk) / tile * tile;
       begin < key_end; begin += tile) {
    RunTile<T>(t, begin, HWY_MIN(begin + tile, key_end));
  }
}

template <class T>
void Attend(const Block& b) {
  Task t = MakeTask(b, PrefillLayout(b.tile, b.dim_qk, b.dim_v));
  float* o_total = t.scratch + t.at.o_total;
  const size_t begin = t.Sees(0).begin;
  const size_t end = t.Sees(t.rows - 1).end;
  t.end = end;
  const size_t first_chunk = begin / kChunk;
  // The first chunk that the block sees is the total; its m, l and o start
  // there.
  t.m = t.Row(kTotalM);
  t.l = t.Row(kTotalL);
  t.o = o_total;
  if (begin < end) {
    for (size_t chunk = first_chunk; chunk * kChunk < end; ++chunk) {
      RunChunk<T>(t, HWY_MAX(begin, chunk * kChunk),
                  HWY_MIN(end, (chunk + 1) * kChunk));
      if (chunk == first_chunk) {
        if (t.o_fresh) ClearBlend(t);
      } else if (!t.o_fresh) {
        MergeChunk(t, {t.m, t.l, t.o}, o_total);
      }
      t.m = t.Row(kM);
      t.l = t.Row(kL);
      t.o = t.scratch + t.at.o;
    }
  } else {
    StartChunk(t);
    ClearBlend(t);
  }
  WriteRows<T>(t, o_total);
}

size_t ScratchBytes(const Tile& tile, size_t dim_qk, size_t dim_v) {
  return PrefillLayout(tile, dim_qk, dim_v).floats * sizeof(float);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
