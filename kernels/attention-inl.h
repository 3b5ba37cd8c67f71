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

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/blend-inl.h"
#include "kernels/kernels.h"
#include "kernels/pack-inl.h"
#include "kernels/scores-inl.h"
#include "kernels/softmax-inl.h"
#include "kernels/task-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE size_t ClampTo(size_t key, size_t low, size_t high) {
  return key < low ? low : HWY_MIN(key, high);
}

// Column tiles of one width: vectors [begin, end) of a row of o, `vecs` at a
// time.
struct ColumnSpan {
  size_t begin, end, vecs;
};

// Blends keys [key_begin, key_end) of the tile into rows [row, row + rows), all
// columns of the span.
HWY_INLINE void BlendColumns(const Task& t, const ColumnSpan& span, size_t row,
                             size_t rows, size_t key_begin, size_t key_end,
                             size_t triangle, bool fresh) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  BlendInput in;
  in.p = t.Scores(key_begin) + row;
  in.p_stride = t.at.s_stride;
  in.keys = key_end - key_begin;
  in.triangle = triangle;
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

// Blends keys [t.pending, key_end) into rows [row, row + rows). Rows that see
// different keys are blended together over the keys that all see, one by one
// over the rest, each in key order.
HWY_INLINE void BlendGroup(const Task& t, const ColumnSpan& span, size_t row,
                           size_t rows, size_t key_end) {
  const Range* ranges = t.ranges + row;
  const size_t lowest_begin = ClampTo(ranges[0].begin, t.pending, key_end);
  const size_t begin = ClampTo(ranges[rows - 1].begin, t.pending, key_end);
  const size_t end = ClampTo(ranges[0].end, t.pending, key_end);
  const size_t highest_end = ClampTo(ranges[rows - 1].end, t.pending, key_end);
  if (!t.o_fresh && lowest_begin >= highest_end) return;
  if (lowest_begin == begin && begin <= end) {
    // The common case: full rows, and the diagonal of a plain causal call,
    // where each row sees one key more than the one before.
    const bool diagonal =
        t.b.group == 1 && rows > 1 && highest_end == end + rows - 1;
    BlendColumns(t, span, row, rows, begin, end, diagonal ? rows - 1 : 0,
                 t.o_fresh);
    if (diagonal || highest_end == end) return;
    for (size_t r = 0; r < rows; ++r) {
      const size_t row_end = ClampTo(ranges[r].end, t.pending, key_end);
      if (row_end > end)
        BlendColumns(t, span, row + r, 1, end, row_end, 0, false);
    }
    return;
  }
  for (size_t r = 0; r < rows; ++r) {
    const size_t row_end = ClampTo(ranges[r].end, t.pending, key_end);
    const size_t row_begin = ClampTo(ranges[r].begin, t.pending, row_end);
    BlendColumns(t, span, row + r, 1, row_begin, row_end, 0, t.o_fresh);
  }
}

// Rows outside, columns inside: the weights of a row group and, for widths up
// to 64, the whole v tile stay in the L1 (columns outside: 0.1 to 1.3 points of
// peak less, D 64 and 128).
HWY_INLINE void BlendSpan(const Task& t, const ColumnSpan& span,
                          size_t key_end) {
  if (span.begin == span.end) return;
  const size_t group = GroupRows(span.vecs);
  for (size_t row = 0; row < t.rows; row += group) {
    BlendGroup(t, span, row, HWY_MIN(group, t.rows - row), key_end);
  }
}

// Blends all weighed keys below key_end into o.
HWY_INLINE void BlendPending(Task& t, size_t key_end) {
  if (t.pending >= key_end) return;
  const size_t first = FirstColumnTileVecs(t.o_vecs);
  BlendSpan(t, {0, first, first}, key_end);
  BlendSpan(t, {first, t.o_vecs, 2}, key_end);
  t.pending = key_end;
  t.o_fresh = false;
}

// Multiplies the rows of o that factor says.
HWY_INLINE void ScaleRows(float* o, size_t rows, size_t o_stride,
                          const float* factor) {
  const hn::ScalableTag<float> d;
  for (size_t row = 0; row < rows; ++row) {
    if (factor[row] == 1.0f) continue;
    const auto a = hn::Set(d, factor[row]);
    for (size_t i = 0; i < o_stride; i += hn::Lanes(d)) {
      float* HWY_RESTRICT x = o + row * o_stride + i;
      hn::Store(hn::Mul(hn::Load(d, x), a), d, x);
    }
  }
}

// The keys that the rows of one panel see, as far as a step cares.
struct PanelRange {
  size_t lowest_begin, highest_begin, lowest_end, highest_end;
};

HWY_INLINE PanelRange RangeOf(const Task& t, size_t row) {
  const Range& first = t.ranges[row];
  const Range& last = t.ranges[row + t.at.panel - 1];
  return {first.begin, last.begin, first.end, last.end};
}

// Hides from the panel's rows at `row` the keys of the step that they do not
// see.
HWY_INLINE void HideStep(const Task& t, size_t row, size_t step, size_t keys) {
  float* first = t.Row(kFirst) + row;
  float* last = t.Row(kLast) + row;
  for (size_t r = 0; r < t.at.panel; ++r) {
    const Range& range = t.ranges[row + r];
    first[r] =
        static_cast<float>(ClampTo(range.begin, step, step + kStep) - step);
    last[r] = static_cast<float>(ClampTo(range.end, step, step + kStep) - step);
  }
  HideKeys(t.Scores(step) + row, t.at.s_stride, keys, first, last,
           t.Row(kTop) + row);
}

// The rows of k from key t.tile_begin on, as f32.
struct KeyRows {
  const float* k;
  int64_t stride;
};

// Scores of keys [step, end), one step's at most, for the panel at `row`. The
// first panel also touches the v of this step and the k of the next, if the
// tile says so: +3 points where they come from the L3 (D 128, T 8192), -1 where
// not.
HWY_INLINE void ScorePanel(const Task& t, const KeyRows& keys, size_t row,
                           size_t step, size_t end) {
  const int64_t key = static_cast<int64_t>(step - t.tile_begin);
  ScoreInput in;
  in.q = t.scratch + t.at.q + row * t.b.dim_qk;
  in.k = keys.k + key * keys.stride;
  in.k_stride = keys.stride;
  in.keys = end - step;
  in.dim = t.b.dim_qk;
  in.next_k = in.v = {nullptr, 0, 0};
  if (t.b.tile.prefetch && row == 0) {
    if (t.b.tile.pack_k != Pack::kTile && step + 2 * kStep <= t.b.len_k) {
      in.next_k = {in.k + static_cast<int64_t>(kStep) * keys.stride,
                   keys.stride, (t.b.dim_qk + kLineFloats - 1) / kLineFloats};
    }
    if (t.packed_v != nullptr) {
      const int64_t stride = static_cast<int64_t>(t.at.o_stride);
      in.v = {t.packed_v + key * stride, stride,
              (t.at.o_stride + kLineFloats - 1) / kLineFloats};
    }
  }
  ScoreStep(in, t.Scores(step) + row, t.at.s_stride, t.Row(kTop) + row);
}

// Those scores become weights: raise maxima, rescale, weigh.
HWY_INLINE void WeighPanel(Task& t, const PanelRange& range, size_t row,
                           size_t step, size_t end) {
  if (range.lowest_end < end || range.highest_begin > step) {
    HideStep(t, row, step, end - step);
  }
  if (RaiseMaximum(t.Row(kTop) + row, t.m + row, t.l + row,
                   t.Row(kFactor) + row)) {
    // Weights before this step are to the old maximum: they go into o before o
    // is rescaled.
    BlendPending(t, step);
    if (!t.o_fresh) {
      ScaleRows(t.o + row * t.at.o_stride, HWY_MIN(t.at.panel, t.rows - row),
                t.at.o_stride, t.Row(kFactor) + row);
    }
  }
  WeighStep(t.Scores(step) + row, t.at.s_stride, end - step, t.m + row,
            t.l + row);
}

// Scores and weights of the tile's keys up to key_end, a step at a time: a
// panel's scores of one step (3 KB) are weighed while they are in the L1, and
// the step's keys stay there while the panels pass over them.
HWY_INLINE void ScoreAndWeigh(Task& t, const KeyRows& keys, size_t key_end) {
  for (size_t step = t.tile_begin; step < key_end; step += kStep) {
    const size_t step_end = HWY_MIN(step + kStep, key_end);
    for (size_t row = 0; row < t.rows; row += t.at.panel) {
      const PanelRange range = RangeOf(t, row);
      const size_t end = HWY_MIN(step_end, range.highest_end);
      if (step >= end || step_end <= range.lowest_begin) continue;
      ScorePanel(t, keys, row, step, end);
      WeighPanel(t, range, row, step, end);
    }
  }
}

// Keys of the tile that begins at key_begin: tiles do not reach past their
// chunk, nor past the last key.
HWY_INLINE size_t TileKeys(const Block& b, size_t key_begin) {
  const size_t chunk_end = (key_begin / kChunk + 1) * kChunk;
  return HWY_MIN(b.tile.key_tile, HWY_MIN(chunk_end, b.len_k) - key_begin);
}

// Keys [key_begin, key_end) of one tile; key_begin is a step's first key.
template <class T>
HWY_INLINE void RunTile(Task& t, size_t key_begin, size_t key_end) {
  const Block& b = t.b;
  const size_t keys = key_end - key_begin;
  const int64_t key = static_cast<int64_t>(key_begin);
  t.tile_begin = key_begin;
  t.pending = key_begin;
  KeyRows rows_of_k = {nullptr, static_cast<int64_t>(b.dim_qk)};
  if (b.tile.pack_k == Pack::kNone) {
    rows_of_k = {static_cast<const float*>(b.k) + key * b.k_stride, b.k_stride};
  } else if (b.tile.pack_k == Pack::kTile) {
    float* packed = t.scratch + t.at.k;
    PackK(static_cast<const T*>(b.k) + key * b.k_stride, b.k_stride, keys,
          b.dim_qk, packed);
    rows_of_k.k = packed;
  } else {
    rows_of_k.k = b.packed_k + key * rows_of_k.stride;
  }
  t.packed_v = nullptr;
  if (b.tile.pack_v == Pack::kTile) {
    float* packed = t.scratch + t.at.v;
    t.v_room = b.tile.key_tile;
    PackV(static_cast<const T*>(b.v) + key * b.v_stride, b.v_stride, keys,
          b.dim_v, t.v_room, packed);
    t.packed_v = packed;
  } else if (b.tile.pack_v == Pack::kCall) {
    t.v_room = TileKeys(b, key_begin);
    t.packed_v = b.packed_v + key_begin * t.at.o_stride;
  }
  ScoreAndWeigh(t, rows_of_k, key_end);
  BlendPending(t, key_end);
}

// A state that has seen no key. o is left as it is: its first blend starts from
// zero.
HWY_INLINE void StartChunk(Task& t) {
  for (size_t r = 0; r < t.rows_padded; ++r) {
    t.m[r] = kNoMaximum;
    t.l[r] = 0.0f;
  }
  t.o_fresh = true;
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

// Merges the chunk's state into the total, exactly rescaled.
HWY_INLINE void MergeChunk(Task& t, float* o_total) {
  const hn::ScalableTag<float> d;
  float* factor = t.Row(kFactor);
  float* total_factor = t.Row(kTotalFactor);
  MergeSums(t.Row(kTotalM), t.Row(kTotalL), t.Row(kM), t.Row(kL), total_factor,
            factor, t.rows_padded);
  for (size_t row = 0; row < t.rows; ++row) {
    const auto a = hn::Set(d, total_factor[row]);
    const auto b = hn::Set(d, factor[row]);
    const float* HWY_RESTRICT from = t.o + row * t.at.o_stride;
    float* HWY_RESTRICT to = o_total + row * t.at.o_stride;
    for (size_t i = 0; i < t.at.o_stride; i += hn::Lanes(d)) {
      const auto old = hn::Mul(hn::Load(d, to + i), a);
      hn::Store(hn::MulAdd(hn::Load(d, from + i), b, old), d, to + i);
    }
  }
}

// out = o / l and lse = ln 2 * (m + log2 l); rows that saw no key are 0 and
// -inf.
template <class T>
HWY_INLINE void WriteRows(const Task& t, const float* m, float* l,
                          const float* o) {
  const Block& b = t.b;
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const size_t lanes = hn::Lanes(d);
  float* lse = t.Row(kFactor);
  for (size_t r = 0; r < t.rows_padded; r += lanes) {
    const auto sum = hn::Load(d, l + r);
    if (b.lse != nullptr) {
      const auto log = hn::Add(hn::Load(d, m + r), Log2(d, sum));
      hn::Store(hn::Mul(hn::Set(d, kLn2), log), d, lse + r);
    }
    hn::Store(hn::Div(hn::Set(d, 1.0f), sum), d, l + r);
  }
  int64_t token = static_cast<int64_t>(b.row_begin / b.group);
  int64_t head = static_cast<int64_t>(b.row_begin % b.group);
  for (size_t row = 0; row < t.rows; ++row) {
    T* HWY_RESTRICT to = static_cast<T*>(b.out) + token * b.out_stride_token +
                         head * b.out_stride_head;
    const float* HWY_RESTRICT from = o + row * t.at.o_stride;
    const bool empty = t.ranges[row].begin >= t.ranges[row].end;
    const auto r = hn::Set(d, l[row]);
    size_t i = 0;
    if (empty) {
      for (; i < b.dim_v; ++i) to[i] = T{0};
    }
    for (; i + lanes <= b.dim_v; i += lanes) {
      StoreAs(d, hn::MulAdd(r, hn::Load(d, from + i), hn::Zero(d)), to + i);
    }
    if (i < b.dim_v) {
      // The last columns by way of the scratch, which is padded to a whole
      // vector.
      float* HWY_RESTRICT rest = t.Row(kTotalFactor);
      hn::Store(hn::MulAdd(r, hn::Load(d, from + i), hn::Zero(d)), d, rest);
      for (; i < b.dim_v; ++i, ++rest) StoreAs(d1, hn::LoadU(d1, rest), to + i);
    }
    if (b.lse != nullptr) {
      b.lse[token * b.lse_stride_token + head * b.lse_stride_head] =
          empty ? -HUGE_VALF : lse[row];
    }
    if (++head == static_cast<int64_t>(b.group)) {
      head = 0;
      ++token;
    }
  }
}

template <class T>
void Attend(const Block& b) {
  Task t = MakeTask(b);
  float* o_total = t.scratch + t.at.o_total;
  const size_t begin = t.ranges[0].begin;
  const size_t end = t.ranges[t.rows - 1].end;
  const size_t first_chunk = begin / kChunk;
  // The first chunk that the block sees is the total; its m, l and o start
  // there.
  t.m = t.Row(kTotalM);
  t.l = t.Row(kTotalL);
  t.o = o_total;
  if (begin < end) {
    PackQ<T>(b, t.rows_padded, t.scratch + t.at.stage, t.scratch + t.at.q);
    for (size_t chunk = first_chunk; chunk * kChunk < end; ++chunk) {
      RunChunk<T>(t, HWY_MAX(begin, chunk * kChunk),
                  HWY_MIN(end, (chunk + 1) * kChunk));
      if (chunk != first_chunk) MergeChunk(t, o_total);
      t.m = t.Row(kM);
      t.l = t.Row(kL);
      t.o = t.scratch + t.at.o;
    }
  } else {
    StartChunk(t);
  }
  WriteRows<T>(t, t.Row(kTotalM), t.Row(kTotalL), o_total);
}

size_t ScratchBytes(const Tile& tile, size_t dim_qk, size_t dim_v) {
  return MakeLayout(tile, dim_qk, dim_v).floats * sizeof(float);
}

size_t PackedKBytes(size_t len_k, size_t dim_qk) {
  return len_k * dim_qk * sizeof(float);
}

size_t PackedVBytes(size_t len_k, size_t dim_v) {
  const hn::ScalableTag<float> d;
  return len_k * RoundUp(dim_v, hn::Lanes(d)) * sizeof(float);
}

// v as its tiles follow each other, each packed by itself: a task then reads
// one run of memory a tile. (Columns as long as len_k put the eight column
// tiles of dim 128, T 8192 into the same sets of the L2: 80 % of the peak,
// not 86.)
template <class T>
void PackKeys(const Block& b, size_t key_begin, size_t key_end) {
  const hn::ScalableTag<float> d;
  if (b.packed_k != nullptr) {
    PackK(static_cast<const T*>(b.k) +
              static_cast<int64_t>(key_begin) * b.k_stride,
          b.k_stride, key_end - key_begin, b.dim_qk,
          b.packed_k + key_begin * b.dim_qk);
  }
  if (b.packed_v == nullptr) return;
  const size_t o_stride = RoundUp(b.dim_v, hn::Lanes(d));
  while (key_begin < key_end) {
    const size_t room = TileKeys(b, key_begin);
    PackV(static_cast<const T*>(b.v) +
              static_cast<int64_t>(key_begin) * b.v_stride,
          b.v_stride, HWY_MIN(room, key_end - key_begin), b.dim_v, room,
          b.packed_v + key_begin * o_stride);
    key_begin += room;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
