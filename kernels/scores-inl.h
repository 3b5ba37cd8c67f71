// The scores: s = k . q for a panel of rows, each one chain over the head
// width; a lane is a row.
//
// Knows keys and rows; nothing of visibility or softmax. Included once per
// target.
#if defined(HEED_KERNELS_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_SCORES_INL_H_
#undef HEED_KERNELS_SCORES_INL_H_
#else
#define HEED_KERNELS_SCORES_INL_H_
#endif

#include <cmath>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kPanelVecs = 2;  // a panel: rows of two vectors
constexpr size_t kKeyGroup =
    6;  // keys of one register tile: 6 * 2 accumulators + 2 q + 1 k = 15

// One key's accumulators take in one element of the head width.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void AddElement(D d, const float* k, V q0, V q1, V& s0, V& s1) {
  const V e = hn::Set(d, *k);
  s0 = hn::MulAdd(q0, e, s0);
  s1 = hn::MulAdd(q1, e, s1);
}

// Memory to touch ahead of use: for each key, `lines` cache lines from
// base + key * key_stride on. None if lines is 0.
struct Ahead {
  const float* base;
  int64_t key_stride;
  size_t lines;
};

constexpr size_t kLineFloats = 16;  // 64 bytes

HWY_INLINE void TouchKeys(const Ahead& ahead, size_t key, size_t keys) {
  if (ahead.lines == 0) return;
  const float* row = ahead.base + static_cast<int64_t>(key) * ahead.key_stride;
  for (size_t j = 0; j < keys; ++j) {
    for (size_t line = 0; line < ahead.lines; ++line) {
      hwy::Prefetch(row + line * kLineFloats);
    }
    row += ahead.key_stride;
  }
}

// The rows and keys of one step's scores.
struct ScoreInput {
  const float* q;    // [dim, 2 vectors], transposed and scaled, aligned
  const float* k;    // [keys, dim]
  int64_t k_stride;  // elements between keys
  size_t keys;       // 1 to kStep
  size_t dim;        // head width
  Ahead next_k;      // k of the next step
  Ahead v;           // v of this step
};

// Scores of a step's keys against one panel, and the panel's maximum over them.
//   s [keys up to whole groups, >= 2 vectors], stride s_stride, aligned
//   top [2 vectors]
// In the last group the last key repeats where keys run out: its score is
// written again and leaves the maximum as it is. Not inlined: inside the block
// function g++ 12 spills ten registers per 48 multiply-adds.
//
// Tried and no better: k packed six keys side by side, so that the broadcasts
// come from one line (D 64 and 128: within 0.3 points).
inline HWY_NOINLINE void ScoreStep(const ScoreInput& in, float* HWY_RESTRICT s,
                                   size_t s_stride, float* HWY_RESTRICT top) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const float* HWY_RESTRICT k = in.k;
  const int64_t k_stride = in.k_stride;
  const size_t dim = in.dim;
  V top0 = hn::Set(d, -HUGE_VALF), top1 = top0;
  for (size_t key = 0; key < in.keys; key += kKeyGroup) {
    const size_t left = in.keys - key;
    TouchKeys(in.next_k, key, HWY_MIN(left, kKeyGroup));
    TouchKeys(in.v, key, HWY_MIN(left, kKeyGroup));
    const float* HWY_RESTRICT k0 = k;
    const float* HWY_RESTRICT k1 = k0 + (left > 1 ? k_stride : 0);
    const float* HWY_RESTRICT k2 = k1 + (left > 2 ? k_stride : 0);
    const float* HWY_RESTRICT k3 = k2 + (left > 3 ? k_stride : 0);
    const float* HWY_RESTRICT k4 = k3 + (left > 4 ? k_stride : 0);
    const float* HWY_RESTRICT k5 = k4 + (left > 5 ? k_stride : 0);
    V s00 = hn::Zero(d), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00;
    V s30 = s00, s31 = s00, s40 = s00, s41 = s00, s50 = s00, s51 = s00;
    const float* HWY_RESTRICT qi = in.q;
    // Unrolled so that the predictor sees the loop end (D64: 34.0 to 33.5
    // cycles per 8 scores).
#pragma GCC unroll 4
    for (size_t i = 0; i < dim; ++i) {
      const V q0 = hn::Load(d, qi);
      const V q1 = hn::Load(d, qi + lanes);
      qi += kPanelVecs * lanes;
      AddElement(d, k0 + i, q0, q1, s00, s01);
      AddElement(d, k1 + i, q0, q1, s10, s11);
      AddElement(d, k2 + i, q0, q1, s20, s21);
      AddElement(d, k3 + i, q0, q1, s30, s31);
      AddElement(d, k4 + i, q0, q1, s40, s41);
      AddElement(d, k5 + i, q0, q1, s50, s51);
    }
    hn::Store(s00, d, s);
    hn::Store(s01, d, s + lanes);
    hn::Store(s10, d, s + s_stride);
    hn::Store(s11, d, s + s_stride + lanes);
    hn::Store(s20, d, s + 2 * s_stride);
    hn::Store(s21, d, s + 2 * s_stride + lanes);
    hn::Store(s30, d, s + 3 * s_stride);
    hn::Store(s31, d, s + 3 * s_stride + lanes);
    hn::Store(s40, d, s + 4 * s_stride);
    hn::Store(s41, d, s + 4 * s_stride + lanes);
    hn::Store(s50, d, s + 5 * s_stride);
    hn::Store(s51, d, s + 5 * s_stride + lanes);
    // The maximum costs add-pipe slots, which stand idle here. What it makes of
    // a NaN is free: such a row is NaN by its sum.
    top0 = hn::Max(top0, hn::Max(hn::Max(hn::Max(s00, s10), hn::Max(s20, s30)),
                                 hn::Max(s40, s50)));
    top1 = hn::Max(top1, hn::Max(hn::Max(hn::Max(s01, s11), hn::Max(s21, s31)),
                                 hn::Max(s41, s51)));
    k += static_cast<int64_t>(kKeyGroup) * k_stride;
    s += kKeyGroup * s_stride;
  }
  hn::Store(top0, d, top);
  hn::Store(top1, d, top + lanes);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
