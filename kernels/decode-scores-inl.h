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

// Blocks of 128 bits in a vector of keys, four keys each. More than one on x86
// only: SVE of 256 bits orders the halves of its vectors in another way.
#undef HEED_DECODE_BLOCKS
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_MAX_BYTES >= 32
#define HEED_DECODE_BLOCKS HWY_MIN(HWY_MAX_BYTES / 16, 4)
#else
#define HEED_DECODE_BLOCKS 1
#endif

// Keys whose scores are made together, a lane each.
constexpr size_t kDecodeKeys =
    HWY_TARGET == HWY_SCALAR ? 1 : 4 * HEED_DECODE_BLOCKS;
using DecodeKeyTag = hn::CappedTag<float, kDecodeKeys>;

// Elements of the head width that a row of k is read in.
constexpr size_t kDecodeDims = 8;

// A panel: rows for which k is transposed once, one vector of them.
constexpr size_t kPanelRows = HWY_TARGET == HWY_SCALAR  ? 1
                              : HEED_DECODE_BLOCKS == 4 ? 8
                                                        : 4;
using DecodeRowTag = hn::CappedTag<float, kPanelRows>;

// q of a panel: for each pair of elements the pairs of its rows.
constexpr size_t kPairFloats = 2 * kPanelRows;

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
constexpr size_t kDimsRead = std::is_same<T, BF16>() && HEED_DECODE_BLOCKS > 1
                                 ? kDecodeDims
                                 : kDecodeDims / 2;

#if HEED_DECODE_BLOCKS > 1
// Lanes [0, Lanes(d) / blocks) of every other row from k[0] on, a block each.
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const T* const* k, size_t i) {
  const hn::Half<D> dh;
#if HEED_DECODE_BLOCKS == 2
  return hn::Combine(d, hn::LoadU(dh, k[2] + i), hn::LoadU(dh, k[0] + i));
#else
  const hn::Half<decltype(dh)> dq;
  return hn::Combine(
      d, hn::Combine(dh, hn::LoadU(dq, k[6] + i), hn::LoadU(dq, k[4] + i)),
      hn::Combine(dh, hn::LoadU(dq, k[2] + i), hn::LoadU(dq, k[0] + i)));
#endif
}
#endif

// Elements [i + 4 * kUpper, + 4) of every other key from k[0] on, a block each;
// kUpper is 0 where four are read at once.
template <int kUpper, class D, class T>
HWY_INLINE hn::Vec<D> LoadKeys(D d, const T* const* k, size_t i) {
#if HEED_DECODE_BLOCKS == 1
  return LoadAs(d, k[0] + i);
#else
  if constexpr (std::is_same<T, float>()) {
    return LoadBlocks(d, k, i);
  } else {
    const auto* words = reinterpret_cast<const uint16_t* const*>(k);
    if constexpr (std::is_same<T, F16>()) {
      const hn::Rebind<uint16_t, D> d16;
      return WidenWords<T>(d, LoadBlocks(d16, words, i));
    } else {
      const hn::Repartition<uint16_t, D> d16;
      const auto read = LoadBlocks(d16, words, i);
      const auto zero = hn::Zero(d16);
      if constexpr (kUpper == 0) {
        return hn::BitCast(d, hn::InterleaveLower(d16, zero, read));
      } else {
        return hn::BitCast(d, hn::InterleaveUpper(d16, zero, read));
      }
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
  const auto x = hn::BitCast(pairs, LoadKeys<kUpper>(d, k, i));
  const auto y = hn::BitCast(pairs, LoadKeys<kUpper>(d, k + 1, i));
  a0 = hn::BitCast(d, hn::InterleaveLower(pairs, x, y));
  a1 = hn::BitCast(d, hn::InterleaveUpper(pairs, x, y));
  k += kDecodeKeys / 2;
  const auto z = hn::BitCast(pairs, LoadKeys<kUpper>(d, k, i));
  const auto w = hn::BitCast(pairs, LoadKeys<kUpper>(d, k + 1, i));
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
#if HEED_DECODE_BLOCKS > 1
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

// The accumulators of kRows rows take in one pair of elements of k, whose pairs
// of q begin at q.
template <int kRows, class D, class V = hn::Vec<D> >
HWY_INLINE void AddPairs(D d, const float* HWY_RESTRICT q, V a, V b, V& a0,
                         V& b0, V& a1, V& b1, V& a2, V& b2, V& a3, V& b3) {
  AddPair(d, q, a, b, a0, b0);
  if constexpr (kRows > 1) AddPair(d, q + 2, a, b, a1, b1);
  if constexpr (kRows > 2) AddPair(d, q + 4, a, b, a2, b2);
  if constexpr (kRows > 3) AddPair(d, q + 6, a, b, a3, b3);
}

// The accumulators of up to eight rows take in four elements of k, whose pairs
// of q begin at q.
template <int kRows, int kUpper, class D, class T, class V = hn::Vec<D> >
HWY_INLINE void AddFour(D d, const T* const* k, size_t i,
                        const float* HWY_RESTRICT q, V& a0, V& b0, V& a1, V& b1,
                        V& a2, V& b2, V& a3, V& b3, V& a4, V& b4, V& a5, V& b5,
                        V& a6, V& b6, V& a7, V& b7) {
  constexpr int kFirst = HWY_MIN(kRows, 4);
  V c0, c1, e0, e1;
  LoadPairs<kUpper>(d, k, i, c0, c1, e0, e1);
  AddPairs<kFirst>(d, q, c0, e0, a0, b0, a1, b1, a2, b2, a3, b3);
  if constexpr (kRows > 4) {
    AddPairs<4>(d, q + 8, c0, e0, a4, b4, a5, b5, a6, b6, a7, b7);
  }
  q += kPairFloats;
  AddPairs<kFirst>(d, q, c1, e1, a0, b0, a1, b1, a2, b2, a3, b3);
  if constexpr (kRows > 4) {
    AddPairs<4>(d, q + 8, c1, e1, a4, b4, a5, b5, a6, b6, a7, b7);
  }
}

// Elements [i, i + kDecodeDims).
template <int kRows, class D, class T, class V = hn::Vec<D> >
HWY_INLINE void AddDims(D d, const T* const* k, size_t i,
                        const float* HWY_RESTRICT q, V& a0, V& b0, V& a1, V& b1,
                        V& a2, V& b2, V& a3, V& b3, V& a4, V& b4, V& a5, V& b5,
                        V& a6, V& b6, V& a7, V& b7) {
  constexpr bool kOneRead = kDimsRead<T> == kDecodeDims;
  AddFour<kRows, 0>(d, k, i, q, a0, b0, a1, b1, a2, b2, a3, b3, a4, b4, a5, b5,
                    a6, b6, a7, b7);
  AddFour<kRows, kOneRead ? 1 : 0>(d, k, kOneRead ? i : i + 4,
                                   q + 2 * kPairFloats, a0, b0, a1, b1, a2, b2,
                                   a3, b3, a4, b4, a5, b5, a6, b6, a7, b7);
}

// Each block of x to s, `stride` apart.
template <class D>
HWY_INLINE void StoreBlocks(D /*d*/, hn::Vec<D> x, float* HWY_RESTRICT s,
                            size_t stride) {
#if HEED_DECODE_BLOCKS == 1
  static_cast<void>(stride);
  hn::Store(x, D(), s);
#else
  const hn::Half<D> dh;
  const auto lower = hn::LowerHalf(dh, x), upper = hn::UpperHalf(dh, x);
#if HEED_DECODE_BLOCKS == 2
  hn::Store(lower, dh, s);
  hn::Store(upper, dh, s + stride);
#else
  const hn::Half<decltype(dh)> dq;
  hn::Store(hn::LowerHalf(dq, lower), dq, s);
  hn::Store(hn::UpperHalf(dq, lower), dq, s + stride);
  hn::Store(hn::LowerHalf(dq, upper), dq, s + 2 * stride);
  hn::Store(hn::UpperHalf(dq, upper), dq, s + 3 * stride);
#endif
#endif
}

// The chains of four rows, joined, to s [kDecodeKeys, 4], stride s_stride.
template <class D, class V = hn::Vec<D> >
HWY_INLINE void StoreFour(D d, V a0, V b0, V a1, V b1, V a2, V b2, V a3, V b3,
                          float* HWY_RESTRICT s, size_t s_stride) {
  V t0, t1, t2, t3;
  Transpose4(d, JoinChains(d, a0, b0), JoinChains(d, a1, b1),
             JoinChains(d, a2, b2), JoinChains(d, a3, b3), t0, t1, t2, t3);
  StoreBlocks(d, t0, s, 4 * s_stride);
  StoreBlocks(d, t1, s + s_stride, 4 * s_stride);
  StoreBlocks(d, t2, s + 2 * s_stride, 4 * s_stride);
  StoreBlocks(d, t3, s + 3 * s_stride, 4 * s_stride);
}

// Scores of kDecodeKeys keys for kRows rows; the panel's other rows become 0.
//   q: the panel's pairs, zeros from dim up to whole reads of k
//   s [kDecodeKeys, kPanelRows], stride s_stride
// Registers: two accumulators a row + 4 of k + 1 of q, 13 for four rows, 21 for
// eight.
template <int kRows, class T>
HWY_NOINLINE void ScoreRows(const float* HWY_RESTRICT q, const T* const* k,
                            Touches& touches, size_t dim, float* HWY_RESTRICT s,
                            size_t s_stride) {
  const DecodeKeyTag d;
  using V = hn::Vec<DecodeKeyTag>;
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  V b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  V a4 = a0, a5 = a0, a6 = a0, a7 = a0;
  V b4 = a0, b5 = a0, b6 = a0, b7 = a0;
  const size_t whole = dim / kDecodeDims * kDecodeDims;
  // As many lines as are read of k.
  constexpr size_t kTouches =
      HWY_MAX(kDecodeKeys * kDecodeDims * sizeof(T) / kLineBytes, size_t{1});
  Touches next = touches;
  size_t i = 0;
  for (; i < whole; i += kDecodeDims) {
    Touch<kTouches>(next);
    AddDims<kRows>(d, k, i, q, a0, b0, a1, b1, a2, b2, a3, b3, a4, b4, a5, b5,
                   a6, b6, a7, b7);
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
    AddDims<kRows>(d, rows, 0, q, a0, b0, a1, b1, a2, b2, a3, b3, a4, b4, a5,
                   b5, a6, b6, a7, b7);
  }
  StoreFour(d, a0, b0, a1, b1, a2, b2, a3, b3, s, s_stride);
  if constexpr (kPanelRows > 4) {
    StoreFour(d, a4, b4, a5, b5, a6, b6, a7, b7, s + 4, s_stride);
  }
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
    case 4:
      return ScoreRows<4>(q, k, touches, dim, s, s_stride);
    default:
      break;
  }
  // Of five to seven rows the others are 0 in q.
  if constexpr (kPanelRows > 4) {
    return ScoreRows<kPanelRows>(q, k, touches, dim, s, s_stride);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
