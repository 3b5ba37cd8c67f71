// Scores of a few rows: each row of k is transposed in registers, in pairs of
// elements, which are the two chains of a score. Included once per target.
#if defined(HEED_KERNELS_DECODE_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_DECODE_SCORES_INL_H_
#undef HEED_KERNELS_DECODE_SCORES_INL_H_
#else
#define HEED_KERNELS_DECODE_SCORES_INL_H_
#endif

#include <type_traits>

#include "hwy/highway.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/pack-inl.h"
#include "kernels/task-inl.h"
#include "kernels/touch-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A panel: one vector of four rows.
using DecodeRowTag = hn::CappedTag<float, 4>;

// Whether a vector of keys has two blocks of 128 bits. On x86 only: SVE of 256
// bits orders the halves of its vectors in another way.
#undef HEED_DECODE_TWO_BLOCKS
#define HEED_DECODE_TWO_BLOCKS \
  (HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_MAX_BYTES >= 32)
constexpr bool kTwoBlocks = HEED_DECODE_TWO_BLOCKS;

// Keys whose scores are made together, a lane each.
constexpr size_t kDecodeKeys = kTwoBlocks                 ? 8
                               : HWY_TARGET == HWY_SCALAR ? 1
                                                          : 4;
using DecodeKeyTag = hn::CappedTag<float, kDecodeKeys>;

// Elements of the head width that a row of k is read in.
constexpr size_t kDecodeDims = 8;

// q of a panel: for each pair of elements the pairs of its rows.
constexpr size_t kDecodeRows = HWY_TARGET == HWY_SCALAR ? 1 : 4;
constexpr size_t kPairFloats = 2 * kDecodeRows;

// The head width up to whole reads of k.
HWY_INLINE size_t PairsDim(size_t dim_qk) {
  return RoundUp(dim_qk, kDecodeDims);
}

#if HWY_TARGET == HWY_SCALAR

// Scores of one key for one row.
template <class T>
HWY_INLINE void ScoreKeys(const float* HWY_RESTRICT q, const T* const* k,
                          Touches& /*touches*/, size_t dim, size_t /*rows*/,
                          float* HWY_RESTRICT s, size_t /*s_stride*/) {
  const hn::CappedTag<float, 1> d;
  auto even = hn::Zero(d), odd = even;
  for (size_t i = 0; i < dim; ++i) {
    const auto e = LoadAs(d, k[0] + i);
    const auto x = hn::Set(d, q[i / 2 * kPairFloats + i % 2]);
    if (i % 2 == 0) {
      even = hn::MulAdd(x, e, even);
    } else {
      odd = hn::MulAdd(x, e, odd);
    }
  }
  s[0] = hn::GetLane(hn::Add(even, odd));
}

#else

// Elements of k that are read at once. A bf16 is the upper half of its f32:
// eight are read and interleaved with zeros, an instruction less than widening
// four and four.
template <class T>
constexpr size_t kDimsRead = std::is_same<T, BF16>() && kTwoBlocks
                                 ? kDecodeDims
                                 : kDecodeDims / 2;

// Elements [i + 4 * kUpper, + 4) of key `low` and, in a second block, of key
// `high`; kUpper is 0 where four are read at once.
template <int kUpper, class D, class T>
HWY_INLINE hn::Vec<D> LoadKeys(D d, const T* low, const T* high, size_t i) {
#if !HEED_DECODE_TWO_BLOCKS
  static_cast<void>(high);
  return LoadAs(d, low + i);
#else
  if constexpr (std::is_same<T, float>()) {
    const hn::Half<D> dh;
    return hn::Combine(d, hn::LoadU(dh, high + i), hn::LoadU(dh, low + i));
  } else if constexpr (std::is_same<T, F16>()) {
    const hn::Rebind<uint16_t, D> d16;
    const hn::Half<decltype(d16)> dh;
    return WidenWords<T>(d, hn::Combine(d16, hn::LoadU(dh, &high[i].bits),
                                        hn::LoadU(dh, &low[i].bits)));
  } else {
    const hn::Repartition<uint16_t, D> d16;
    const hn::Half<decltype(d16)> dh;
    const auto both = hn::Combine(d16, hn::LoadU(dh, &high[i].bits),
                                  hn::LoadU(dh, &low[i].bits));
    const auto zero = hn::Zero(d16);
    if constexpr (kUpper == 0) {
      return hn::BitCast(d, hn::InterleaveLower(d16, zero, both));
    } else {
      return hn::BitCast(d, hn::InterleaveUpper(d16, zero, both));
    }
  }
#endif
}

// Two pairs of elements of kDecodeKeys keys: of pairs 0 and 1, `a` has the
// first half of the keys, `b` the second, each key's even and odd element side
// by side.
template <int kUpper, class D, class T, class V = hn::Vec<D> >
HWY_INLINE void LoadPairs(D d, const T* const* k, size_t i, V& a0, V& a1, V& b0,
                          V& b1) {
  const hn::Repartition<uint64_t, D> pairs;
  constexpr size_t kHalf = kDecodeKeys / 2;
  constexpr size_t kBlock = kTwoBlocks ? 2 : 0;
  const auto x = hn::BitCast(pairs, LoadKeys<kUpper>(d, k[0], k[kBlock], i));
  const auto y =
      hn::BitCast(pairs, LoadKeys<kUpper>(d, k[1], k[kBlock + 1], i));
  a0 = hn::BitCast(d, hn::InterleaveLower(pairs, x, y));
  a1 = hn::BitCast(d, hn::InterleaveUpper(pairs, x, y));
  k += kHalf;
  const auto z = hn::BitCast(pairs, LoadKeys<kUpper>(d, k[0], k[kBlock], i));
  const auto w =
      hn::BitCast(pairs, LoadKeys<kUpper>(d, k[1], k[kBlock + 1], i));
  b0 = hn::BitCast(d, hn::InterleaveLower(pairs, z, w));
  b1 = hn::BitCast(d, hn::InterleaveUpper(pairs, z, w));
}

// A row's pair of q in every pair of lanes.
template <class D>
HWY_INLINE hn::Vec<D> SetPair(D d, const float* q) {
  const hn::Repartition<uint64_t, D> pairs;
  uint64_t bits;
  hwy::CopyBytes<sizeof(bits)>(q, &bits);
  return hn::BitCast(d, hn::Set(pairs, bits));
}

template <class D, class V = hn::Vec<D> >
HWY_INLINE void AddPair(D d, const float* q, V a, V b, V& sum_a, V& sum_b) {
  const V pair = SetPair(d, q);
  sum_a = hn::MulAdd(pair, a, sum_a);
  sum_b = hn::MulAdd(pair, b, sum_b);
}

// Even chain + odd chain, a lane per key.
template <class D, class V = hn::Vec<D> >
HWY_INLINE V JoinChains(D d, V sum_a, V sum_b) {
#if HEED_DECODE_TWO_BLOCKS
  return hn::Add(hn::ConcatEven(d, sum_b, sum_a),
                 hn::ConcatOdd(d, sum_b, sum_a));
#else
  // Highway 1.0.3 takes part of a vector of SVE_256 for a whole one in
  // ConcatEven and ConcatOdd, so within blocks of 128 bits.
  const V lower = hn::InterleaveLower(d, sum_a, sum_b);
  const V upper = hn::InterleaveUpper(d, sum_a, sum_b);
  return hn::Add(hn::InterleaveLower(d, lower, upper),
                 hn::InterleaveUpper(d, lower, upper));
#endif
}

// The accumulators of up to four rows take in four elements of k, whose pairs
// of q begin at q.
template <int kRows, int kUpper, class D, class T, class V = hn::Vec<D> >
HWY_INLINE void AddFour(D d, const T* const* k, size_t i,
                        const float* HWY_RESTRICT q, V& a0, V& b0, V& a1, V& b1,
                        V& a2, V& b2, V& a3, V& b3) {
  V c0, c1, e0, e1;
  LoadPairs<kUpper>(d, k, i, c0, c1, e0, e1);
  AddPair(d, q, c0, e0, a0, b0);
  if constexpr (kRows > 1) AddPair(d, q + 2, c0, e0, a1, b1);
  if constexpr (kRows > 2) AddPair(d, q + 4, c0, e0, a2, b2);
  if constexpr (kRows > 3) AddPair(d, q + 6, c0, e0, a3, b3);
  q += kPairFloats;
  AddPair(d, q, c1, e1, a0, b0);
  if constexpr (kRows > 1) AddPair(d, q + 2, c1, e1, a1, b1);
  if constexpr (kRows > 2) AddPair(d, q + 4, c1, e1, a2, b2);
  if constexpr (kRows > 3) AddPair(d, q + 6, c1, e1, a3, b3);
}

// Elements [i, i + kDecodeDims).
template <int kRows, class D, class T, class V = hn::Vec<D> >
HWY_INLINE void AddDims(D d, const T* const* k, size_t i,
                        const float* HWY_RESTRICT q, V& a0, V& b0, V& a1, V& b1,
                        V& a2, V& b2, V& a3, V& b3) {
  constexpr bool kOneRead = kDimsRead<T> == kDecodeDims;
  AddFour<kRows, 0>(d, k, i, q, a0, b0, a1, b1, a2, b2, a3, b3);
  AddFour<kRows, kOneRead ? 1 : 0>(d, k, kOneRead ? i : i + 4,
                                   q + 2 * kPairFloats, a0, b0, a1, b1, a2, b2,
                                   a3, b3);
}

// Scores of kDecodeKeys keys for kRows rows; the rows up to four become 0.
//   q: the panel's pairs, zeros from dim up to whole reads of k
//   s [kDecodeKeys, 4], stride s_stride
// Registers, for four rows: 8 accumulators + 4 of k + 1 of q.
template <int kRows, class T>
HWY_NOINLINE void ScoreRows(const float* HWY_RESTRICT q, const T* const* k,
                            Touches& touches, size_t dim, float* HWY_RESTRICT s,
                            size_t s_stride) {
  const DecodeKeyTag d;
  using V = hn::Vec<DecodeKeyTag>;
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  V b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  const size_t whole = dim / kDecodeDims * kDecodeDims;
  // As many lines as are read of k.
  constexpr size_t kTouches =
      HWY_MAX(kDecodeKeys * kDecodeDims * sizeof(T) / kLineBytes, size_t{1});
  Touches next = touches;
  size_t i = 0;
  for (; i < whole; i += kDecodeDims) {
    Touch<kTouches>(next);
    AddDims<kRows>(d, k, i, q, a0, b0, a1, b1, a2, b2, a3, b3);
    q += kDecodeDims / 2 * kPairFloats;
  }
  touches = next;
  if (whole < dim) {
    // The last elements by way of the stack, with zeros behind.
    T rest[kDecodeKeys][kDecodeDims] = {};
    const T* rows[kDecodeKeys];
    for (size_t n = 0; n < kDecodeKeys; ++n) {
      rows[n] = rest[n];
      for (i = whole; i < dim; ++i) rest[n][i - whole] = k[n][i];
    }
    AddDims<kRows>(d, rows, 0, q, a0, b0, a1, b1, a2, b2, a3, b3);
  }
  V t0, t1, t2, t3;
  Transpose4(d, JoinChains(d, a0, b0), JoinChains(d, a1, b1),
             JoinChains(d, a2, b2), JoinChains(d, a3, b3), t0, t1, t2, t3);
  const DecodeRowTag dr;
#if !HEED_DECODE_TWO_BLOCKS
  hn::Store(t0, dr, s);
  hn::Store(t1, dr, s + s_stride);
  hn::Store(t2, dr, s + 2 * s_stride);
  hn::Store(t3, dr, s + 3 * s_stride);
#else
  hn::Store(hn::LowerHalf(dr, t0), dr, s);
  hn::Store(hn::LowerHalf(dr, t1), dr, s + s_stride);
  hn::Store(hn::LowerHalf(dr, t2), dr, s + 2 * s_stride);
  hn::Store(hn::LowerHalf(dr, t3), dr, s + 3 * s_stride);
  hn::Store(hn::UpperHalf(dr, t0), dr, s + 4 * s_stride);
  hn::Store(hn::UpperHalf(dr, t1), dr, s + 5 * s_stride);
  hn::Store(hn::UpperHalf(dr, t2), dr, s + 6 * s_stride);
  hn::Store(hn::UpperHalf(dr, t3), dr, s + 7 * s_stride);
#endif
}

template <class T>
HWY_INLINE void ScoreKeys(const float* HWY_RESTRICT q, const T* const* k,
                          Touches& touches, size_t dim, size_t rows,
                          float* HWY_RESTRICT s, size_t s_stride) {
  switch (rows) {
    case 1:
      return ScoreRows<1>(q, k, touches, dim, s, s_stride);
    case 2:
      return ScoreRows<2>(q, k, touches, dim, s, s_stride);
    case 3:
      return ScoreRows<3>(q, k, touches, dim, s, s_stride);
    default:
      return ScoreRows<4>(q, k, touches, dim, s, s_stride);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
