// The scores: s = k . q for a panel of rows, each two chains over the head
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

#include "hwy/highway.h"
#include "kernels/touch-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kPanelVecs = 2;  // a panel: rows of two vectors
// Keys of one register tile: 3 * 2 vectors * 2 chains + 2 q + 1 k = 15
// registers. 5 loads for 6 multiply-adds, against 8 for 12 with one chain and
// six keys, and no slower: loads are free beside multiply-adds
// (84.1, 83.9, 83.5 % of the peak against 83.0, 83.3, 83.7 at D 64, T 2048).
constexpr size_t kKeyGroup = 3;

// One key's accumulators take in one element of the head width, or start with
// it.
template <bool kFirst, class D, class V = hn::Vec<D>>
HWY_INLINE void AddElement(D d, const float* k, V q0, V q1, V& s0, V& s1) {
  const V e = hn::Set(d, *k);
  if constexpr (kFirst) {
    s0 = hn::Mul(q0, e);
    s1 = hn::Mul(q1, e);
  } else {
    s0 = hn::MulAdd(q0, e, s0);
    s1 = hn::MulAdd(q1, e, s1);
  }
}

// Elements of the head width in the body of a loop: so that the predictor sees
// it end (two at a time: 86 % of the peak at D 40 and 92 at D 64, not 95 and
// 96, of a loop alone).
constexpr size_t kUnrolledElements = 8;

// ALiBi for the rows of a panel: score + slope * (distance + key), keys counted
// from the step's first.
struct Slopes {
  const float* slope = nullptr;  // [vectors of the panel], log2 domain; null:
                                 // no ALiBi
  const float* distance = nullptr;  // of each row to the step's first key
  float first_key = 0.0f;           // the first of the scores
};

// The rows and keys of one step's scores.
struct ScoreInput {
  const float* q;    // [dim, 2 vectors], transposed and scaled, aligned
  const float* k;    // [keys, dim]
  int64_t k_stride;  // elements between keys
  size_t keys;       // 1 to kStep
  size_t dim;        // head width
  Slopes alibi;      // ScoreStep<true>: that leave finite scores finite
  PacedTouches* touches = nullptr;
};

// The panel's accumulators take in elements 0 and 1 of three keys, s even and t
// odd, or start with them.
template <bool kFirst, class D, class V = hn::Vec<D>>
HWY_INLINE void AddPanelElements(D d, const float* q, const float* k0,
                                 const float* k1, const float* k2, V& s00,
                                 V& s01, V& s10, V& s11, V& s20, V& s21, V& t00,
                                 V& t01, V& t10, V& t11, V& t20, V& t21) {
  const size_t lanes = hn::Lanes(d);
  const V q0 = hn::Load(d, q);
  const V q1 = hn::Load(d, q + lanes);
  AddElement<kFirst>(d, k0, q0, q1, s00, s01);
  AddElement<kFirst>(d, k1, q0, q1, s10, s11);
  AddElement<kFirst>(d, k2, q0, q1, s20, s21);
  const V r0 = hn::Load(d, q + 2 * lanes);
  const V r1 = hn::Load(d, q + 3 * lanes);
  AddElement<kFirst>(d, k0 + 1, r0, r1, t00, t01);
  AddElement<kFirst>(d, k1 + 1, r0, r1, t10, t11);
  AddElement<kFirst>(d, k2 + 1, r0, r1, t20, t21);
}

// Scores of a step's keys against one panel, and the panel's maximum over them.
//   s [keys up to whole groups] of a vector, stride s_stride, and `second`
//   further on the panel's second vector, aligned    top [2 vectors]
// A score is two chains, even and odd elements, and their sum: half the length,
// so about 0.7 of one chain's rounding error (tests/row_program.h).
// The chains start with a product, not a sum with 0: stores take the slots of
// multiply-adds, a cycle each, 1.6 of six at once, but not those of products,
// and a group's start is when the stores of the one before are due (D 64: 96.1
// to 97.5 % of the peak). The signs of zeros that this changes reach neither
// weight nor sum. In the last group the last key repeats where keys run out:
// its score is written again and leaves the maximum as it is. Not inlined:
// inside the block function g++ 12 spills ten registers per 48 multiply-adds.
//
// Tried and no better: k packed side by side, so that the broadcasts come from
// one line (D 64 and 128: within 0.3 points).
template <bool kSloped>
HWY_NOINLINE void ScoreStep(const ScoreInput& in, float* HWY_RESTRICT s,
                            size_t s_stride, size_t second,
                            float* HWY_RESTRICT top) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const float* HWY_RESTRICT k = in.k;
  const int64_t k_stride = in.k_stride;
  const size_t dim = in.dim;
  V top0 = hn::Set(d, -HUGE_VALF), top1 = top0;
  for (size_t key = 0; key < in.keys; key += kKeyGroup) {
    const size_t left = in.keys - key;
    if (HWY_UNLIKELY(in.touches != nullptr)) Touch(*in.touches);
    const float* HWY_RESTRICT k0 = k;
    const float* HWY_RESTRICT k1 = k0 + (left > 1 ? k_stride : 0);
    const float* HWY_RESTRICT k2 = k1 + (left > 2 ? k_stride : 0);
    V s00 = hn::Zero(d), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00;
    V t00 = s00, t01 = s00, t10 = s00, t11 = s00, t20 = s00, t21 = s00;
    const float* HWY_RESTRICT q = in.q;
    const size_t two = 2 * kPanelVecs * lanes;
    size_t i = 0;
    if (HWY_LIKELY(dim >= kUnrolledElements)) {
      AddPanelElements<true>(d, q, k0, k1, k2, s00, s01, s10, s11, s20, s21,
                             t00, t01, t10, t11, t20, t21);
#pragma GCC unroll 4
      for (i = 2; i < kUnrolledElements; i += 2) {
        q += two;
        AddPanelElements<false>(d, q, k0 + i, k1 + i, k2 + i, s00, s01, s10,
                                s11, s20, s21, t00, t01, t10, t11, t20, t21);
      }
      q += two;
    }
#pragma GCC unroll 4
    for (; i + 2 <= dim; i += 2) {
      AddPanelElements<false>(d, q, k0 + i, k1 + i, k2 + i, s00, s01, s10, s11,
                              s20, s21, t00, t01, t10, t11, t20, t21);
      q += two;
    }
    if (i < dim) {
      const V q0 = hn::Load(d, q);
      const V q1 = hn::Load(d, q + lanes);
      AddElement<false>(d, k0 + i, q0, q1, s00, s01);
      AddElement<false>(d, k1 + i, q0, q1, s10, s11);
      AddElement<false>(d, k2 + i, q0, q1, s20, s21);
    }
    s00 = hn::Add(s00, t00);
    s01 = hn::Add(s01, t01);
    s10 = hn::Add(s10, t10);
    s11 = hn::Add(s11, t11);
    s20 = hn::Add(s20, t20);
    s21 = hn::Add(s21, t21);
    if constexpr (kSloped) {
      // In the registers: a pass of its own takes 1.09 of the time of a call
      // without ALiBi, this 1.07 (D 64).
      const V slope0 = hn::Load(d, in.alibi.slope);
      const V slope1 = hn::Load(d, in.alibi.slope + lanes);
      const V distance0 = hn::Load(d, in.alibi.distance);
      const V distance1 = hn::Load(d, in.alibi.distance + lanes);
      // A key that repeats is where it was.
      const V next1 = hn::Set(d, left > 1 ? 1.0f : 0.0f);
      const V next2 = hn::Set(d, left > 2 ? 1.0f : 0.0f);
      V index = hn::Set(d, in.alibi.first_key + static_cast<float>(key));
      s00 = hn::MulAdd(slope0, hn::Add(distance0, index), s00);
      s01 = hn::MulAdd(slope1, hn::Add(distance1, index), s01);
      index = hn::Add(index, next1);
      s10 = hn::MulAdd(slope0, hn::Add(distance0, index), s10);
      s11 = hn::MulAdd(slope1, hn::Add(distance1, index), s11);
      index = hn::Add(index, next2);
      s20 = hn::MulAdd(slope0, hn::Add(distance0, index), s20);
      s21 = hn::MulAdd(slope1, hn::Add(distance1, index), s21);
    }
    hn::Store(s00, d, s);
    hn::Store(s01, d, s + second);
    hn::Store(s10, d, s + s_stride);
    hn::Store(s11, d, s + s_stride + second);
    hn::Store(s20, d, s + 2 * s_stride);
    hn::Store(s21, d, s + 2 * s_stride + second);
    // The maximum costs add-pipe slots, which stand idle here. What it makes of
    // a NaN is free: such a row is NaN by its sum.
    top0 = hn::Max(top0, hn::Max(hn::Max(s00, s10), s20));
    top1 = hn::Max(top1, hn::Max(hn::Max(s01, s11), s21));
    k += static_cast<int64_t>(kKeyGroup) * k_stride;
    s += kKeyGroup * s_stride;
  }
  hn::Store(top0, d, top);
  hn::Store(top1, d, top + lanes);
}

// One key's accumulator of one vector of rows takes in two elements, or starts
// with them.
template <bool kFirst, class D, class V = hn::Vec<D>>
HWY_INLINE void AddTwo(D d, const float* k, V q, V r, V& s, V& t) {
  if constexpr (kFirst) {
    s = hn::Mul(q, hn::Set(d, k[0]));
    t = hn::Mul(r, hn::Set(d, k[1]));
  } else {
    s = hn::MulAdd(q, hn::Set(d, k[0]), s);
    t = hn::MulAdd(r, hn::Set(d, k[1]), t);
  }
}

constexpr size_t kVectorKeys = 4;  // 4 * 2 chains + 2 q + 1 k = 11 registers

// The same of four keys, for `row` elements from one of q to the next.
template <bool kFirst, class D, class V = hn::Vec<D>>
HWY_INLINE void AddVectorElements(D d, const float* q, size_t row,
                                  const float* k0, const float* k1,
                                  const float* k2, const float* k3, V& s0,
                                  V& s1, V& s2, V& s3, V& t0, V& t1, V& t2,
                                  V& t3) {
  const V even = hn::Load(d, q);
  const V odd = hn::Load(d, q + row);
  AddTwo<kFirst>(d, k0, even, odd, s0, t0);
  AddTwo<kFirst>(d, k1, even, odd, s1, t1);
  AddTwo<kFirst>(d, k2, even, odd, s2, t2);
  AddTwo<kFirst>(d, k3, even, odd, s3, t3);
}

// The same scores for one of the panel's vectors, at in.q, s and top: for the
// rows of a block that fill no second one, and beside the diagonal. Without
// ALiBi and touches.
inline HWY_NOINLINE void ScoreVector(const ScoreInput& in,
                                     float* HWY_RESTRICT s, size_t s_stride,
                                     float* HWY_RESTRICT top) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t row = kPanelVecs * hn::Lanes(d);
  const size_t dim = in.dim;
  V highest = hn::Set(d, -HUGE_VALF);
  for (size_t key = 0; key < in.keys; key += kVectorKeys) {
    const size_t left = in.keys - key;
    const float* HWY_RESTRICT k0 =
        in.k + static_cast<int64_t>(key) * in.k_stride;
    const float* HWY_RESTRICT k1 = k0 + (left > 1 ? in.k_stride : 0);
    const float* HWY_RESTRICT k2 = k1 + (left > 2 ? in.k_stride : 0);
    const float* HWY_RESTRICT k3 = k2 + (left > 3 ? in.k_stride : 0);
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    V t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    const float* HWY_RESTRICT q = in.q;
    size_t i = 0;
    if (HWY_LIKELY(dim >= kUnrolledElements)) {
      AddVectorElements<true>(d, q, row, k0, k1, k2, k3, s0, s1, s2, s3, t0, t1,
                              t2, t3);
#pragma GCC unroll 4
      for (i = 2; i < kUnrolledElements; i += 2) {
        q += 2 * row;
        AddVectorElements<false>(d, q, row, k0 + i, k1 + i, k2 + i, k3 + i, s0,
                                 s1, s2, s3, t0, t1, t2, t3);
      }
      q += 2 * row;
    }
#pragma GCC unroll 4
    for (; i + 2 <= dim; i += 2) {
      AddVectorElements<false>(d, q, row, k0 + i, k1 + i, k2 + i, k3 + i, s0,
                               s1, s2, s3, t0, t1, t2, t3);
      q += 2 * row;
    }
    if (i < dim) {
      const V even = hn::Load(d, q);
      s0 = hn::MulAdd(even, hn::Set(d, k0[i]), s0);
      s1 = hn::MulAdd(even, hn::Set(d, k1[i]), s1);
      s2 = hn::MulAdd(even, hn::Set(d, k2[i]), s2);
      s3 = hn::MulAdd(even, hn::Set(d, k3[i]), s3);
    }
    s0 = hn::Add(s0, t0);
    s1 = hn::Add(s1, t1);
    s2 = hn::Add(s2, t2);
    s3 = hn::Add(s3, t3);
    hn::Store(s0, d, s);
    hn::Store(s1, d, s + s_stride);
    hn::Store(s2, d, s + 2 * s_stride);
    hn::Store(s3, d, s + 3 * s_stride);
    highest = hn::Max(highest, hn::Max(hn::Max(s0, s1), hn::Max(s2, s3)));
    s += kVectorKeys * s_stride;
  }
  hn::Store(highest, d, top);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
