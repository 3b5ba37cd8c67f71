// Scores and weights to look at: what a decode computes on its way, step by
// step. Included once per target.
#if defined(HEED_KERNELS_SHOW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_SHOW_INL_H_
#undef HEED_KERNELS_SHOW_INL_H_
#else
#define HEED_KERNELS_SHOW_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/decode-inl.h"
#include "kernels/kernels.h"
#include "kernels/mask-inl.h"
#include "kernels/state-inl.h"
#include "kernels/task-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One step's scores of one panel as `stage` shows them: shown(row, key, value)
// for each.
template <class T, class F>
HWY_INLINE void ShowStep(Task& t, const StepRows<T>& k, ScoreStage stage,
                         size_t row, size_t step, size_t end, const F& shown) {
  const DecodeRowTag d;
  Touches none = {};
  DecodeScores(t, k, none, row, step, end);
  const bool biased =
      stage == ScoreStage::kBiased || stage == ScoreStage::kWeights;
  if (stage != ScoreStage::kScaled && t.biased) {
    const MaskView view =
        biased ? ViewOf(t.seen == nullptr, false) : MaskView::kPlain;
    BiasStep<1>(d, t, row, step, end - step, view);
  }
  if (biased) HideStep<1>(d, t, row, step, end, end);
  for (size_t key = step; key < end; ++key) {
    float* s = t.Scores(row, key);
    if (stage == ScoreStage::kWeights) {
      auto ignored = hn::Zero(d);
      const auto w = WeighAnyMaximum(
          d, hn::Load(d, s), hn::Load(d, t.Row(kTotalM) + row), ignored);
      hn::Store(hn::Mul(w, hn::Load(d, t.Row(kTotalL) + row)), d, s);
    } else {
      hn::Store(hn::Mul(hn::Load(d, s), hn::Set(d, kLn2)), d, s);
    }
    for (size_t r = row; r < HWY_MIN(row + t.at.panel, t.rows); ++r) {
      shown(r, key, s[r - row]);
    }
  }
}

template <class T>
void ShowScores(const Block& b, ScoreStage stage, float* scores,
                int64_t stride_token, int64_t stride_head) {
  Block shown = b;
  // The soft cap alone.
  if (stage == ScoreStage::kCapped) shown.bias.slopes = nullptr;
  Decode<T> w = MakeDecode<T>(shown);
  Task& t = w.t;
  if (stage == ScoreStage::kWeights) {
    // The rows' totals, as a decode leaves them, first.
    AttendRows(w);
    if (b.bias.sinks != nullptr) {
      AddSinks(t, t.Row(kTotalM), t.Row(kTotalL), t.scratch + t.at.o_total);
    }
    for (size_t r = 0; r < t.rows; ++r) {
      const float sum = t.Row(kTotalL)[r];
      t.Row(kTotalL)[r] = IsEmpty(t, r) ? 0.0f : 1.0f / sum;
    }
  }
  PackPairs<T>(t);
  for (size_t step = 0; step < b.len_k; step += kStep) {
    const size_t end = HWY_MIN(step + kStep, b.len_k);
    PointAtK<T>(b, step, end, w.k[0]);
    t.tile_begin = step;
    for (size_t row = 0; row < t.rows; row += t.at.panel) {
      ShowStep(t, w.k[0], stage, row, step, end,
               [&](size_t r, size_t key, float value) HWY_ATTR {
                 scores[t.Token(r) * stride_token +
                        static_cast<int64_t>(HeadOf(t, r)) * stride_head +
                        static_cast<int64_t>(key)] = value;
               });
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
