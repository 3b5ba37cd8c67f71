// The state of a task's rows: running maximum m, sum l and blend o. What both
// paths, attention-inl.h and decode-inl.h, do with it: start, take in a step of
// scores, choose what to blend, merge, write. Included once per target.
#if defined(HEED_KERNELS_STATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_STATE_INL_H_
#undef HEED_KERNELS_STATE_INL_H_
#else
#define HEED_KERNELS_STATE_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "hwy/highway.h"
#include "kernels/convert-inl.h"
#include "kernels/mask-inl.h"
#include "kernels/softmax-inl.h"
#include "kernels/task-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE size_t ClampTo(size_t key, size_t low, size_t high) {
  return key < low ? low : HWY_MIN(key, high);
}

// A state that has seen no key. o is left as it is: its first blend starts from
// zero.
HWY_INLINE void StartChunk(Task& t) {
  const hn::ScalableTag<float> d;
  for (size_t r = 0; r < t.rows_padded; r += hn::Lanes(d)) {
    hn::Store(hn::Set(d, kNoMaximum), d, t.m + r);
    hn::Store(hn::Zero(d), d, t.l + r);
  }
  t.o_fresh = true;
}

// Multiplies the rows of o that factor says. (Left to the next blend, which
// loads these rows anyway: 76.6 to 77.7 % of the peak where maxima rise in
// every step, 84.1 to 83.6 where they do not. Most of what rising costs is that
// blends end there.)
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
  const Range first = t.Sees(row);
  const Range last = t.Sees(row + t.at.panel - 1);
  return {first.begin, last.begin, first.end, last.end};
}

// Hides from the panel's rows at `row` the keys of [begin, end), within one
// step, that their ranges leave out; of two vectors the first has no scores
// from first_end on.
template <int kVecs, class D>
HWY_INLINE void HideStep(D d, const Task& t, size_t row, size_t begin,
                         size_t first_end, size_t end) {
  SeenKeys seen;
  float* first = t.Row(kFirst) + row;
  float* last = t.Row(kLast) + row;
  for (size_t r = 0; r < kVecs * hn::Lanes(d); ++r) {
    const Range range = t.Sees(row + r);
    first[r] = static_cast<float>(ClampTo(range.begin, begin, end) - begin);
    last[r] = static_cast<float>(ClampTo(range.end, begin, end) - begin);
  }
  seen.begin = first;
  seen.end = last;
  for (size_t half = 0; half < kVecs; ++half) {
    const size_t top = row + half * hn::Lanes(d);
    const size_t low = top + hn::Lanes(d) - 1;
    const size_t scored = half == 0 ? first_end : end;
    seen.all_begin[half] = ClampTo(t.Sees(low).begin, begin, scored) - begin;
    seen.all_end[half] = ClampTo(t.Sees(top).end, begin, scored) - begin;
    seen.keys[half] = scored - begin;
  }
  HideKeys<kVecs>(d, t.Scores(row, begin), t.at.s_stride, t.at.s_second, seen,
                  t.Row(kTop) + row);
}

// ALiBi for the panel's rows and keys from `begin` on, within one step.
HWY_INLINE Slopes SlopesOf(const Task& t, size_t row, size_t begin) {
  const size_t step = begin / kStep * kStep;
  float* distance = t.Row(kDistance) + row;
  for (size_t r = 0; r < t.at.panel; ++r) {
    distance[r] = static_cast<float>(static_cast<int64_t>(step) -
                                     t.Token(row + r) - t.b.bias.position);
  }
  return {t.Row(kSlope) + row, distance, static_cast<float>(begin - step)};
}

// Soft cap, ALiBi and mask for one panel and keys from `begin` on, within one
// step.
template <int kVecs, class D>
HWY_INLINE void BiasStep(D d, const Task& t, size_t row, size_t begin,
                         size_t keys, MaskView view) {
  const Bias& b = t.b.bias;
  ScoreBias bias;
  if (b.softcap != 0.0f) {
    bias.cap = b.softcap * kLog2E;
    bias.cap_slope = 2.0f / b.softcap;
  }
  if (b.slopes != nullptr) bias.alibi = SlopesOf(t, row, begin);
  if (view == MaskView::kMixed) {
    float* mask = t.scratch + t.at.mask;
    FillMask(t, row, begin, keys, mask);
    bias.mask = mask;
  } else if (bias.alibi.slope == nullptr) {
    if (bias.cap != 0.0f) {
      CapScores<kVecs>(d, bias, t.Scores(row, begin), t.at.s_stride,
                       t.at.s_second, keys, t.Row(kTop) + row);
    }
    return;
  }
  BiasScores<kVecs>(d, bias, t.Scores(row, begin), t.at.s_stride, t.at.s_second,
                    keys, t.Row(kTop) + row);
}

// What the mask says of a step to a panel; plain if there is none.
HWY_INLINE MaskView MaskOf(Task& t, size_t row, size_t step, size_t end) {
  if (t.seen == nullptr) return MaskView::kPlain;
  const MaskView view = ViewPanel(t, row, step, end - step);
  if (view == MaskView::kHidden) return view;
  MarkSeen(t, row, step, end, view);
  return view;
}

// The panel's scores of [step, end) and their maxima become weights: bias,
// unless the scores have theirs, and hide, raise maxima, rescale, weigh.
// `blend_pending` blends what was weighed with the old maximum, which goes into
// o before o is rescaled. Of two vectors the first has no scores from first_end
// on: its rows do not see those keys.
template <int kVecs, class D, class F>
HWY_INLINE void WeighPanel(D d, Task& t, const PanelRange& range, size_t row,
                           size_t step, size_t first_end, size_t end,
                           bool biased, MaskView view, const F& blend_pending) {
  if (biased) BiasStep<kVecs>(d, t, row, step, end - step, view);
  if (range.lowest_end < end || range.highest_begin > step) {
    HideStep<kVecs>(d, t, row, step, first_end, end);
  }
  if (RaiseMaximum<kVecs>(d, t.Row(kTop) + row, t.m + row, t.l + row,
                          t.Row(kFactor) + row)) {
    blend_pending();
    if (!t.o_fresh) {
      ScaleRows(t.o + row * t.at.o_stride,
                HWY_MIN(kVecs * hn::Lanes(d), t.rows - row), t.at.o_stride,
                t.Row(kFactor) + row);
    }
  }
  WeighStep<kVecs>(d, t.Scores(row, step), t.at.s_stride, t.at.s_second,
                   first_end - step, t.m + row, t.l + row);
  if constexpr (kVecs == 2) {
    if (first_end < end) {
      const size_t second = row + hn::Lanes(d);
      WeighStep<1>(d, t.Scores(row, first_end) + t.at.s_second, t.at.s_stride,
                   0, end - first_end, t.m + second, t.l + second);
    }
  }
}

// Weights of 0 for the panel's keys [step, end), which the mask hides.
HWY_INLINE void ClearPanel(const Task& t, size_t row, size_t step, size_t end) {
  for (size_t r = 0; r < t.at.panel; r += t.at.s_stride) {
    std::fill_n(t.Scores(row + r, step), (end - step) * t.at.s_stride, 0.0f);
  }
}

// Keys [begin, end) that all rows of a group see, and keys beside them that
// only some do: `lead` before, of which row i does not see the first i, and
// `trail` after, of which it sees the first i. Each is 0 or the rows but one.
struct GroupKeys {
  size_t begin, end, lead, trail;
};

// Blends keys [t.pending, key_end) into rows [row, row + rows) by
// blend(row, rows, keys, fresh). Rows that see different keys are blended
// together over the keys that all see, one by one over the rest, each in key
// order; where each row sees one key more or less than the one before, as plain
// causal and windowed calls do, all together, if blend takes `triangles`.
template <class F>
HWY_INLINE void BlendInRange(const Task& t, size_t row, size_t rows,
                             size_t key_end, bool triangles, const F& blend) {
  const Range top = t.Sees(row), low = t.Sees(row + rows - 1);
  const size_t lowest_begin = ClampTo(top.begin, t.pending, key_end);
  const size_t begin = ClampTo(low.begin, t.pending, key_end);
  const size_t end = ClampTo(top.end, t.pending, key_end);
  const size_t highest_end = ClampTo(low.end, t.pending, key_end);
  if (!t.o_fresh && lowest_begin >= highest_end) return;
  if (begin > end) {
    // No key that all see.
    for (size_t r = 0; r < rows; ++r) {
      const Range seen = t.Sees(row + r);
      const size_t row_end = ClampTo(seen.end, t.pending, key_end);
      const size_t row_begin = ClampTo(seen.begin, t.pending, row_end);
      blend(row + r, 1, {row_begin, row_end, 0, 0}, t.o_fresh);
    }
    return;
  }
  const bool one_by_one = triangles && t.b.group == 1;
  GroupKeys keys = {begin, end, 0, 0};
  if (one_by_one && begin == lowest_begin + rows - 1) keys.lead = rows - 1;
  if (one_by_one && highest_end == end + rows - 1) keys.trail = rows - 1;
  bool fresh = t.o_fresh;
  if (keys.lead == 0 && lowest_begin != begin) {
    for (size_t r = 0; r < rows; ++r) {
      const size_t row_begin = ClampTo(t.Sees(row + r).begin, t.pending, begin);
      if (row_begin < begin || fresh) {
        blend(row + r, 1, {row_begin, begin, 0, 0}, fresh);
      }
    }
    fresh = false;
  }
  blend(row, rows, keys, fresh);
  if (keys.trail == 0 && highest_end != end) {
    for (size_t r = 0; r < rows; ++r) {
      const size_t row_end = ClampTo(t.Sees(row + r).end, end, key_end);
      if (row_end > end) blend(row + r, 1, {end, row_end, 0, 0}, false);
    }
  }
}

// The same where the mask hides some of the keys and their v is not finite: a
// weight of 0 would not do, so each row blends its runs of visible keys.
template <class F>
HWY_NOINLINE void BlendVisible(const Task& t, size_t row, size_t rows,
                               size_t key_end, const F& blend) {
  for (size_t r = row; r < row + rows; ++r) {
    const Range seen = t.Sees(r);
    const size_t end = ClampTo(seen.end, t.pending, key_end);
    size_t key = ClampTo(seen.begin, t.pending, end);
    bool fresh = t.o_fresh;
    if (fresh) {
      blend(r, 1, {key, key, 0, 0}, true);
      fresh = false;
    }
    while ((key = FindKey(t, r, key, end, true)) < end) {
      const size_t last = FindKey(t, r, key, end, false);
      blend(r, 1, {key, last, 0, 0}, false);
      key = last;
    }
  }
}

// Whether v holds neither NaN nor infinity in keys [begin, end).
template <class T>
HWY_NOINLINE bool IsFinite(const Block& b, size_t begin, size_t end) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const size_t lanes = hn::Lanes(d);
  for (size_t key = begin; key < end; ++key) {
    const T* v = ValueAt<T>(b, key);
    auto largest = hn::Zero(d);
    auto largest1 = hn::Zero(d1);
    size_t i = 0;
    // x - x is 0 for a finite x, else NaN, which no later sum loses.
    for (; i + lanes <= b.dim_v; i += lanes) {
      const auto x = LoadAs(d, v + i);
      largest = hn::Add(largest, hn::Sub(x, x));
    }
    for (; i < b.dim_v; ++i) {
      const auto x = LoadAs(d1, v + i);
      largest1 = hn::Add(largest1, hn::Sub(x, x));
    }
    if (!hn::AllTrue(d, hn::Eq(largest, largest)) ||
        !hn::AllTrue(d1, hn::Eq(largest1, largest1))) {
      return false;
    }
  }
  return true;
}

// o = 0 for all rows, where no key was blended.
HWY_INLINE void ClearBlend(Task& t) {
  for (size_t i = 0; i < t.rows * t.at.o_stride; ++i) t.o[i] = 0.0f;
  t.o_fresh = false;
}

// A state apart from the task's: what one chunk left.
struct ChunkState {
  const float* m;
  const float* l;
  const float* o;
};

// Merges a chunk's state into the total at kTotalM, kTotalL and o_total,
// exactly rescaled.
HWY_INLINE void MergeChunk(Task& t, const ChunkState& chunk, float* o_total) {
  const hn::ScalableTag<float> d;
  float* factor = t.Row(kFactor);
  float* total_factor = t.Row(kTotalFactor);
  MergeSums(t.Row(kTotalM), t.Row(kTotalL), chunk.m, chunk.l, total_factor,
            factor, t.rows_padded);
  for (size_t row = 0; row < t.rows; ++row) {
    const auto a = hn::Set(d, total_factor[row]);
    const auto b = hn::Set(d, factor[row]);
    const float* HWY_RESTRICT from = chunk.o + row * t.at.o_stride;
    float* HWY_RESTRICT to = o_total + row * t.at.o_stride;
    for (size_t i = 0; i < t.at.o_stride; i += hn::Lanes(d)) {
      const auto old = hn::Mul(hn::Load(d, to + i), a);
      hn::Store(hn::MulAdd(hn::Load(d, from + i), b, old), d, to + i);
    }
  }
}

// Takes each row's sink into the denominator: a key of score sink without a
// value.
HWY_INLINE void AddSinks(Task& t, float* m, float* l, float* o) {
  const hn::ScalableTag<float> d;
  float* sink = t.Row(kTop);
  float* factor = t.Row(kFactor);
  for (size_t r = 0; r < t.rows_padded; ++r) {
    sink[r] = t.b.bias.sinks[HeadOf(t, HWY_MIN(r, t.rows - 1))];
  }
  for (size_t r = 0; r < t.rows_padded; r += hn::Lanes(d)) {
    const auto natural = hn::Load(d, sink + r);
    const auto none = hn::Eq(natural, hn::Set(d, -HUGE_VALF));
    const auto z = hn::IfThenElse(
        none, natural, ClampFinite(d, hn::Mul(natural, hn::Set(d, kLog2E))));
    const auto old = hn::Load(d, m + r);
    const auto up = hn::Ceil(z);
    const auto raised = hn::IfThenElse(hn::Gt(up, old), up, old);
    const auto a = Pow2OrZero(d, hn::Sub(old, raised));
    auto sum = hn::Mul(hn::Load(d, l + r), a);
    static_cast<void>(WeighAnyMaximum(d, z, raised, sum));
    hn::Store(raised, d, m + r);
    hn::Store(sum, d, l + r);
    hn::Store(a, d, factor + r);
  }
  ScaleRows(o, t.rows, t.at.o_stride, factor);
}

// Whether the row saw no key.
HWY_INLINE bool IsEmpty(const Task& t, size_t row) {
  if (t.seen != nullptr) return t.seen[row] == 0;
  const Range seen = t.Sees(row);
  return seen.begin >= seen.end;
}

// out = o / l and lse = ln 2 * (m + log2 l), of the total; rows that saw no key
// are 0 and -inf, or their sink.
template <class T>
HWY_INLINE void WriteRows(Task& t, float* o) {
  const Block& b = t.b;
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const size_t lanes = hn::Lanes(d);
  float* m = t.Row(kTotalM);
  float* l = t.Row(kTotalL);
  if (b.bias.sinks != nullptr) AddSinks(t, m, l, o);
  float* lse = t.Row(kFactor);
  for (size_t r = 0; r < t.rows_padded; r += lanes) {
    const auto sum = hn::Load(d, l + r);
    if (b.lse != nullptr) {
      const auto log = hn::Add(hn::Load(d, m + r), Log2(d, sum));
      hn::Store(hn::Mul(hn::Set(d, kLn2), log), d, lse + r);
    }
    hn::Store(hn::Div(hn::Set(d, 1.0f), sum), d, l + r);
  }
  RowWalk walk(b, 0);
  for (size_t row = 0; row < t.rows; ++row, walk.Next()) {
    T* HWY_RESTRICT to = static_cast<T*>(b.out) +
                         walk.Offset(b.out_stride_token, b.out_stride_head);
    const float* HWY_RESTRICT from = o + row * t.at.o_stride;
    const bool empty = IsEmpty(t, row);
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
      float value = lse[row];
      if (empty) {
        value = b.bias.sinks != nullptr ? b.bias.sinks[walk.head] : -HUGE_VALF;
      }
      b.lse[walk.Offset(b.lse_stride_token, b.lse_stride_head)] = value;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
