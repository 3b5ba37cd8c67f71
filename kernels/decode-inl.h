// Few rows against many keys (decoding): k and v are read once, where they lie.
//
//   for each step of 48 keys:  scores -> softmax -> blend
//
// Memory is the limit: a key of four rows at dim 128 is 128 multiply-adds of a
// vector, 64 cycles, and 1 KB of f32, 160 to 270 cycles of one of two cores. So
// nothing is packed to memory. The chains are those of attention-inl.h, so the
// bits are. Included once per target.
#if defined(HEED_KERNELS_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_DECODE_INL_H_
#undef HEED_KERNELS_DECODE_INL_H_
#else
#define HEED_KERNELS_DECODE_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/convert-inl.h"
#include "kernels/decode-blend-inl.h"
#include "kernels/decode-scores-inl.h"
#include "kernels/kernels.h"
#include "kernels/mask-inl.h"
#include "kernels/pack-inl.h"
#include "kernels/softmax-inl.h"
#include "kernels/state-inl.h"
#include "kernels/task-inl.h"
#include "kernels/touch-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of k or v of one step, and the memory they are in. Keys that the step
// lacks repeat its last one.
template <class T>
struct StepRows {
  const T* at[kStep + kDecodeKeys];
  Run runs[kStep];
  size_t run_count;
};

// Scores of keys [step, end) for the panel at `row`, and their maxima.
template <class T>
HWY_INLINE void DecodeScores(const Task& t, const StepRows<T>& k,
                             Touches& touches, size_t row, size_t step,
                             size_t end) {
  const DecodeRowTag d;
  const size_t rows = HWY_MIN(t.at.panel, t.rows - row);
  const float* q = t.scratch + t.at.q + row * PairsDim(t.b.dim_qk);
  float* s = t.Scores(row, step);
  for (size_t key = 0; key < end - step; key += kDecodeKeys) {
    ScoreKeys(q, k.at + key, touches, t.b.dim_qk, rows, s + key * t.at.s_stride,
              t.at.s_stride);
  }
  auto top = hn::Set(d, -HUGE_VALF);
  for (size_t key = 0; key < end - step; ++key) {
    top = hn::Max(top, hn::Load(d, s + key * t.at.s_stride));
  }
  hn::Store(top, d, t.Row(kTop) + row);
}

// Blends the step's keys [t.pending, key_end) into o.
template <class T>
HWY_INLINE void DecodePending(Task& t, const StepRows<T>& v, Touches& touches,
                              size_t key_end) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const size_t whole = t.b.dim_v / lanes;
  const size_t rest = t.b.dim_v % lanes;
  const bool visible_only = t.hidden && !IsFinite<T>(t.b, t.pending, key_end);
  const float* rest_rows[kStep];
  float* rest_v = t.scratch + t.at.stage;
  if (rest != 0) {
    WidenRest(v.at, key_end - t.pending, whole * lanes, rest, lanes, rest_v,
              rest_rows);
  }
  for (size_t row = 0; row < t.rows; row += t.at.panel) {
    const auto blend = [&](size_t first, size_t rows, const GroupKeys& keys,
                           bool fresh) HWY_ATTR {
      const float* p = t.Scores(row, keys.begin) + (first - row);
      float* o = t.o + first * t.at.o_stride;
      const size_t key = keys.begin - t.tile_begin;
      const size_t count = keys.end - keys.begin;
      DecodeBlendRows(p, t.at.s_stride, rows, v.at + key, touches, count, whole,
                      fresh, o, t.at.o_stride);
      if (rest != 0) {
        Touches none = {};
        DecodeBlendRows(p, t.at.s_stride, rows, rest_rows + key, none, count, 1,
                        fresh, o + whole * lanes, t.at.o_stride);
      }
    };
    const size_t rows = HWY_MIN(t.at.panel, t.rows - row);
    if (visible_only) {
      BlendVisible(t, row, rows, key_end, blend);
    } else {
      BlendInRange(t, row, rows, key_end, /*triangles=*/false, blend);
    }
  }
  t.pending = key_end;
  t.o_fresh = false;
  t.hidden = false;
}

// Points `rows` at the keys of [step, end) by at(key), page by page.
template <class T, class F>
HWY_INLINE void PointAt(const Block& b, size_t step, size_t end, size_t dim,
                        int64_t stride, const F& at, StepRows<T>& rows) {
  const bool on_end = stride == static_cast<int64_t>(dim);
  size_t n = 0;
  rows.run_count = 0;
  const auto add_run = [&](const T* row, size_t count) HWY_ATTR {
    // Rows without elements may be anywhere.
    if (dim == 0) return;
    rows.runs[rows.run_count++] = {reinterpret_cast<const char*>(row),
                                   count * dim * sizeof(T)};
  };
  for (size_t key = step; key < end;) {
    const size_t run = HWY_MIN(RunOfKeys(b, key), end - key);
    const T* row = at(key);
    if (on_end) add_run(row, run);
    for (size_t i = 0; i < run; ++i) {
      if (!on_end) add_run(row, 1);
      rows.at[n++] = row;
      row += stride;
    }
    key += run;
  }
  for (; n < kStep + kDecodeKeys; ++n) rows.at[n] = rows.at[n - 1];
}

// A decode at work: the task and its keys' rows.
template <class T>
struct Decode {
  Task t;
  size_t end = 0;  // keys of this call end here
  // Of this step and the next; which is which alternates.
  StepRows<T> k[2], v[2];
};

template <class T>
HWY_INLINE void PointAtK(const Block& b, size_t step, size_t end,
                         StepRows<T>& rows) {
  PointAt(
      b, step, HWY_MIN(step + kStep, end), b.dim_qk, b.k_stride,
      [&](size_t key) HWY_ATTR { return KeyAt<T>(b, key); }, rows);
}

// The step of keys from `step` on, in w.k and w.v.
template <class T>
HWY_INLINE void PointAtStep(Decode<T>& w, size_t step) {
  const Block& b = w.t.b;
  const size_t n = step / kStep % 2;
  PointAtK<T>(b, step, w.end, w.k[n]);
  PointAt(
      b, step, HWY_MIN(step + kStep, w.end), b.dim_v, b.v_stride,
      [&](size_t key) HWY_ATTR { return ValueAt<T>(b, key); }, w.v[n]);
}

HWY_INLINE Layout DecodeLayout(size_t rows, size_t dim_qk, size_t dim_v) {
  Tile tile;
  tile.row_block = rows;
  tile.key_tile = kStep;
  const size_t panel = hn::Lanes(DecodeRowTag());
  const PathSizes path = {panel, panel, PairsDim(dim_qk),
                          kStep * hn::Lanes(hn::ScalableTag<float>())};
  return MakeLayout(tile, dim_v, path, 0);
}

// Rows of q as f32 times the scale, in pairs, panel by panel. (One element
// after another this took as long as 10 to 30 keys.)
template <class T>
HWY_NOINLINE void PackPairs(const Task& t) {
  const Block& b = t.b;
  const hn::CappedTag<float, kDecodeDims> d;
  const hn::CappedTag<float, 1> d1;
  const size_t dim = PairsDim(b.dim_qk);
  HWY_ALIGN float read[kDecodeDims];
  const size_t in_last = t.rows % t.at.panel;
  if (in_last > 4) {
    // ScoreKeys takes them for a whole panel.
    float* last = t.scratch + t.at.q + (t.rows - in_last) * dim;
    std::fill_n(last, t.at.panel * dim, 0.0f);
  }
  for (size_t row = 0; row < t.rows; ++row) {
    const T* q = static_cast<const T*>(b.q) + t.Token(row) * b.q_stride_token +
                 static_cast<int64_t>(HeadOf(t, row)) * b.q_stride_head;
    const size_t in_panel = row % t.at.panel;
    float* HWY_RESTRICT to =
        t.scratch + t.at.q + (row - in_panel) * dim + 2 * in_panel;
    for (size_t i = 0; i < dim; i += kDecodeDims) {
      if (i + kDecodeDims <= b.dim_qk) {
        for (size_t j = 0; j < kDecodeDims; j += hn::Lanes(d)) {
          const auto x = LoadAs(d, q + i + j);
          hn::Store(hn::Mul(x, hn::Set(d, b.q_scale)), d, read + j);
        }
      } else {
        for (size_t j = 0; j < kDecodeDims; ++j) {
          read[j] = i + j < b.dim_qk
                        ? hn::GetLane(LoadAs(d1, q + i + j)) * b.q_scale
                        : 0.0f;
        }
      }
      for (size_t j = 0; j < kDecodeDims; j += 2) {
        to[0] = read[j];
        to[1] = read[j + 1];
        to += kPairFloats;
      }
    }
  }
}

template <class T>
HWY_INLINE LineCursor LinesOf(const StepRows<T>& rows) {
  return {nullptr, 0, rows.runs, rows.runs + rows.run_count};
}

// Whether a step touches k and v of the next one in turns, or first its own v,
// then the next one's k. Two streams at once are faster: a bare loop reads them
// in 134 cycles a key of dim 128 in f32 where it takes 156 for bursts of one
// and the other. But a whole step ahead what is touched has left the L1 when it
// is used, which costs where arithmetic is the limit. Cycles a key of dim 128
// from memory, one core, best of five runs, bursts -> turns:
//   rows   f32          bf16         f16
//   1      202 -> 170   116 -> 86    105 -> 84
//   2      217 -> 172   110 -> 98     97 -> 94
//   3      200 -> 152   114 -> 125   105 -> 117
//   4      179 -> 150   126 -> 135   121 -> 130
// (Loads that follow the touches and so hold them to the speed of memory: 209,
// not 223, of bursts, 163, not 150, of turns. All of k, then all of v for a
// chunk of 768 keys: 230. Half a step ahead: 172. Touches into the L2 or past
// it: no better.)
template <class T>
HWY_INLINE bool InTurns(size_t rows) {
  return std::is_same<T, float>() || rows <= 2;
}

// Keys [step, end) of one step, not past the end of what the rows see.
template <class T>
HWY_INLINE void DecodeStep(Decode<T>& w, size_t step, size_t end) {
  Task& t = w.t;
  t.tile_begin = step;
  t.pending = step;
  const size_t now = step / kStep % 2;
  const bool in_turns = InTurns<T>(t.rows);
  Touches touches = {};
  Touches next_k = {};
  if (!in_turns) touches.first = LinesOf(w.v[now]);
  if (step + kStep < w.end) {
    PointAtStep(w, step + kStep);
    next_k.first = LinesOf(w.k[1 - now]);
    if (in_turns) touches = {next_k.first, LinesOf(w.v[1 - now]), true};
  }
  bool scored = false;
  for (size_t row = 0; row < t.rows; row += t.at.panel) {
    const PanelRange range = RangeOf(t, row);
    const size_t row_end = HWY_MIN(end, range.highest_end);
    if (step >= row_end || end <= range.lowest_begin) continue;
    const MaskView view = MaskOf(t, row, step, row_end);
    if (view == MaskView::kHidden) {
      t.hidden = true;
      ClearPanel(t, row, step, row_end);
      continue;
    }
    DecodeScores(t, w.k[now], touches, row, step, row_end);
    WeighPanel<1>(DecodeRowTag(), t, range, row, step, row_end, row_end,
                  t.biased, view, []() HWY_ATTR {});
    scored = true;
    t.hidden |= view == MaskView::kMixed;
  }
  if (scored) {
    DecodePending(t, w.v[now], in_turns ? touches : next_k, end);
  } else {
    t.hidden = false;
  }
}

// Keys [begin, end) of one chunk into the state t.m, t.l, t.o.
template <class T>
HWY_INLINE void DecodeChunk(Decode<T>& w, size_t begin, size_t end) {
  StartChunk(w.t);
  for (size_t step = begin / kStep * kStep; step < end; step += kStep) {
    DecodeStep(w, step, HWY_MIN(step + kStep, end));
  }
  if (w.t.o_fresh) ClearBlend(w.t);
}

// Makes ready for keys [begin, end).
template <class T>
HWY_INLINE void StartDecode(Decode<T>& w, size_t begin, size_t end) {
  w.end = end;
  if (begin >= end) return;
  PackPairs<T>(w.t);
  PointAtStep(w, begin / kStep * kStep);
}

// Runs f(chunk's first key, its end) for the chunks of [begin, end).
template <class F>
HWY_INLINE void ForChunks(size_t begin, size_t end, const F& f) {
  for (size_t chunk = begin / kChunk; chunk * kChunk < end; ++chunk) {
    f(HWY_MAX(begin, chunk * kChunk), HWY_MIN(end, (chunk + 1) * kChunk));
  }
}

template <class T>
HWY_INLINE Decode<T> MakeDecode(const Block& b) {
  return {MakeTask(b, DecodeLayout(b.rows, b.dim_qk, b.dim_v)), 0, {}, {}};
}

// All keys of the task's rows into the total, kTotalM, kTotalL and o_total.
template <class T>
HWY_INLINE void AttendRows(Decode<T>& w) {
  Task& t = w.t;
  float* o_total = t.scratch + t.at.o_total;
  const size_t begin = t.Sees(0).begin;
  const size_t end = t.Sees(t.rows - 1).end;
  t.m = t.Row(kTotalM);
  t.l = t.Row(kTotalL);
  t.o = o_total;
  StartDecode(w, begin, end);
  if (begin >= end) {
    StartChunk(t);
    ClearBlend(t);
  }
  bool first = true;
  ForChunks(begin, end, [&](size_t from, size_t to) HWY_ATTR {
    DecodeChunk(w, from, to);
    if (!first) MergeChunk(t, {t.m, t.l, t.o}, o_total);
    first = false;
    t.m = t.Row(kM);
    t.l = t.Row(kL);
    t.o = t.scratch + t.at.o;
  });
}

template <class T>
void RunDecode(const Block& b) {
  Decode<T> w = MakeDecode<T>(b);
  AttendRows(w);
  WriteRows<T>(w.t, w.t.scratch + w.t.at.o_total);
}

size_t DecodeScratchBytes(size_t rows, size_t dim_qk, size_t dim_v) {
  return DecodeLayout(rows, dim_qk, dim_v).floats * sizeof(float);
}

// A chunk's state in memory: m, l, seen [each up to a cache line], o.
struct StateLayout {
  size_t line;  // floats of m, of l and of seen
  size_t floats;
};

HWY_INLINE StateLayout MakeStateLayout(size_t rows, size_t dim_v) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const size_t padded = RoundUp(rows, hn::Lanes(DecodeRowTag()));
  const size_t line = RoundUp(RoundUp(padded, kLineFloats), lanes);
  return {line, 3 * line + RoundUp(rows * RoundUp(dim_v, lanes), kLineFloats)};
}

size_t StateFloats(size_t rows, size_t dim_v) {
  return MakeStateLayout(rows, dim_v).floats;
}

template <class T>
void DecodePart(const Block& b, size_t chunk_begin, size_t chunk_end,
                float* states) {
  Decode<T> w = MakeDecode<T>(b);
  Task& t = w.t;
  const StateLayout layout = MakeStateLayout(b.rows, b.dim_v);
  const size_t begin = HWY_MAX(t.Sees(0).begin, chunk_begin * kChunk);
  const size_t end = HWY_MIN(t.Sees(t.rows - 1).end, chunk_end * kChunk);
  StartDecode(w, begin, end);
  ForChunks(begin, end, [&](size_t from, size_t to) HWY_ATTR {
    float* state = states + from / kChunk * layout.floats;
    t.m = state;
    t.l = state + layout.line;
    t.o = state + 3 * layout.line;
    DecodeChunk(w, from, to);
    if (t.seen == nullptr) return;
    float* seen = state + 2 * layout.line;
    for (size_t r = 0; r < t.rows; ++r) {
      seen[r] = static_cast<float>(t.seen[r]);
      t.seen[r] = 0;
    }
  });
}

template <class T>
void MergeParts(const Block& b, size_t chunk_end, const float* states) {
  Task t = MakeTask(b, DecodeLayout(b.rows, b.dim_qk, b.dim_v));
  const StateLayout layout = MakeStateLayout(b.rows, b.dim_v);
  float* o_total = t.scratch + t.at.o_total;
  t.m = t.Row(kTotalM);
  t.l = t.Row(kTotalL);
  t.o = o_total;
  // A state without keys changes nothing that is merged into it.
  StartChunk(t);
  ClearBlend(t);
  const size_t begin = t.Sees(0).begin;
  const size_t end = HWY_MIN(t.Sees(t.rows - 1).end, chunk_end * kChunk);
  if (begin < end) {
    ForChunks(begin, end, [&](size_t from, size_t) HWY_ATTR {
      const float* state = states + from / kChunk * layout.floats;
      MergeChunk(t, {state, state + layout.line, state + 3 * layout.line},
                 o_total);
      if (t.seen == nullptr) return;
      const float* seen = state + 2 * layout.line;
      for (size_t r = 0; r < t.rows; ++r) {
        if (seen[r] != 0.0f) t.seen[r] = 1;
      }
    });
  }
  WriteRows<T>(t, o_total);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
