// Few rows against many keys (decoding): k and v are read once, where they lie.
//
//   for each step of 48 keys:  scores -> softmax -> blend
//
// Memory is the limit: a key of four rows at dim 128 is 128 multiply-adds of a
// vector, 64 cycles, and 1 KB of f32, some 270 cycles of one of two cores. So
// nothing is packed to memory; each row of k is transposed in registers, in
// pairs of elements, which are the two chains of a score. The chains are those
// of attention-inl.h, so the bits are. Included once per target.
#if defined(HEED_KERNELS_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_DECODE_INL_H_
#undef HEED_KERNELS_DECODE_INL_H_
#else
#define HEED_KERNELS_DECODE_INL_H_
#endif

#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/mask-inl.h"
#include "kernels/pack-inl.h"
#include "kernels/softmax-inl.h"
#include "kernels/state-inl.h"
#include "kernels/task-inl.h"

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
constexpr size_t kLineBytes = 64;

// Rows of k or v of one step. Keys that the step lacks repeat its last one.
template <class T>
struct StepRows {
  const T* at[kStep + kDecodeKeys];
};

// Rows to touch ahead of use, line by line in the order of memory, as evenly as
// other rows are used meanwhile: k of the next step while this one's v is
// blended, and v while k is scored. (Both a whole step ahead are 48 KB of f32
// at dim 128 and leave the L1 before they are used. Across the rows, as the
// scores read them, the CPU's own prefetcher does not see a stream.)
//
// A touch that finds all buffers for misses in use is dropped: whatever asks
// for lines faster than memory gives them loses some of them, and waits for
// them later. So of f32, where memory is the limit, each touch also loads a
// line that was touched some lines before, which holds the touches to the speed
// of memory: 207 cycles a key, not 235, with one row of dim 128, 198, not 205,
// with four. (12 lines: 204 and 220; 64: 224 and 200. 16-bit elements are bound
// by arithmetic: 136, not 127, with four rows.)
template <class T>
constexpr size_t kLinesInFlight = std::is_same<T, float>() ? 32 : 0;

template <class T>
struct LineCursor {
  const T* const* row = nullptr;
  size_t element = 0;  // of *row, that comes next

  HWY_INLINE const T* Take(size_t dim) {
    const T* line = *row + element;
    element += kLineBytes / sizeof(T);
    if (element >= dim) {
      element = 0;
      ++row;
    }
    return line;
  }
};

template <class T>
struct Touches {
  LineCursor<T> ahead, behind;
  const T* const* end = nullptr;
  size_t dim = 0;        // elements of a row
  size_t in_flight = 0;  // lines that `behind` is behind
};

template <class T>
HWY_INLINE void Touch(Touches<T>& next) {
  if (next.ahead.row == next.end) return;
  hwy::Prefetch(next.ahead.Take(next.dim));
  if constexpr (kLinesInFlight<T> != 0) {
    if (next.in_flight == kLinesInFlight<T>) {
      static_cast<void>(
          *reinterpret_cast<const volatile char*>(next.behind.Take(next.dim)));
    } else {
      ++next.in_flight;
    }
  }
}

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
                          Touches<T>& /*touches*/, size_t dim, size_t /*rows*/,
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
template <int kUpper, class D, class T, class V = hn::Vec<D>>
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

template <class D, class V = hn::Vec<D>>
HWY_INLINE void AddPair(D d, const float* q, V a, V b, V& sum_a, V& sum_b) {
  const V pair = SetPair(d, q);
  sum_a = hn::MulAdd(pair, a, sum_a);
  sum_b = hn::MulAdd(pair, b, sum_b);
}

// Even chain + odd chain, a lane per key.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V JoinChains(D d, V sum_a, V sum_b) {
  return hn::Add(hn::ConcatEven(d, sum_b, sum_a),
                 hn::ConcatOdd(d, sum_b, sum_a));
}

// The accumulators of up to four rows take in four elements of k, whose pairs
// of q begin at q.
template <int kRows, int kUpper, class D, class T, class V = hn::Vec<D>>
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
template <int kRows, class D, class T, class V = hn::Vec<D>>
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
                            Touches<T>& touches, size_t dim,
                            float* HWY_RESTRICT s, size_t s_stride) {
  const DecodeKeyTag d;
  using V = hn::Vec<DecodeKeyTag>;
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  V b0 = a0, b1 = a0, b2 = a0, b3 = a0;
  const size_t whole = dim / kDecodeDims * kDecodeDims;
  // A line of v for each line of k.
  constexpr size_t kTouches =
      HWY_MAX(kDecodeKeys * kDecodeDims * sizeof(T) / kLineBytes, size_t{1});
  Touches<T> next = touches;
  size_t i = 0;
  for (; i < whole; i += kDecodeDims) {
    for (size_t n = 0; n < kTouches; ++n) Touch(next);
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
                          Touches<T>& touches, size_t dim, size_t rows,
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

// Scores of keys [step, end) for the panel at `row`, and their maxima; the
// step's v is touched meanwhile.
template <class T>
HWY_INLINE void DecodeScores(const Task& t, const StepRows<T>& k,
                             Touches<T>& touches, size_t row, size_t step,
                             size_t end) {
  const DecodeRowTag d;
  const size_t rows = HWY_MIN(t.at.panel, t.rows - row);
  const float* q = t.scratch + t.at.q + row * PairsDim(t.b.dim_qk);
  float* s = t.Scores(step) + row;
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

// Accumulator n of DecodeBlend: vector n % kVecs of row n / kVecs.
template <int kVecs>
HWY_INLINE float* PlaceOf(float* o, size_t o_stride, size_t lanes, int n) {
  return o + static_cast<size_t>(n / kVecs) * o_stride +
         static_cast<size_t>(n % kVecs) * lanes;
}

// The accumulators of kRows rows, kVecs vectors each, take in one key.
template <int kRows, int kVecs, class D, class T, class V = hn::Vec<D>>
HWY_INLINE void BlendKey(D d, const float* HWY_RESTRICT p,
                         const T* HWY_RESTRICT v, V& a0, V& a1, V& a2, V& a3,
                         V& a4, V& a5, V& a6, V& a7) {
  const size_t lanes = hn::Lanes(d);
  const V w0 = hn::Set(d, p[0]);
  if constexpr (kRows == 1) {
    a0 = hn::MulAdd(w0, LoadAs(d, v), a0);
    if constexpr (kVecs > 1) a1 = hn::MulAdd(w0, LoadAs(d, v + lanes), a1);
    if constexpr (kVecs > 2) {
      static_assert(kVecs == 8);
      a2 = hn::MulAdd(w0, LoadAs(d, v + 2 * lanes), a2);
      a3 = hn::MulAdd(w0, LoadAs(d, v + 3 * lanes), a3);
      a4 = hn::MulAdd(w0, LoadAs(d, v + 4 * lanes), a4);
      a5 = hn::MulAdd(w0, LoadAs(d, v + 5 * lanes), a5);
      a6 = hn::MulAdd(w0, LoadAs(d, v + 6 * lanes), a6);
      a7 = hn::MulAdd(w0, LoadAs(d, v + 7 * lanes), a7);
    }
  } else if constexpr (kVecs == 1) {
    const V v0 = LoadAs(d, v);
    a0 = hn::MulAdd(w0, v0, a0);
    a1 = hn::MulAdd(hn::Set(d, p[1]), v0, a1);
    if constexpr (kRows > 2) a2 = hn::MulAdd(hn::Set(d, p[2]), v0, a2);
    if constexpr (kRows > 3) a3 = hn::MulAdd(hn::Set(d, p[3]), v0, a3);
  } else if constexpr (kVecs == 2) {
    const V v0 = LoadAs(d, v), v1 = LoadAs(d, v + lanes);
    a0 = hn::MulAdd(w0, v0, a0);
    a1 = hn::MulAdd(w0, v1, a1);
    const V w1 = hn::Set(d, p[1]);
    a2 = hn::MulAdd(w1, v0, a2);
    a3 = hn::MulAdd(w1, v1, a3);
    if constexpr (kRows > 2) {
      const V w2 = hn::Set(d, p[2]);
      a4 = hn::MulAdd(w2, v0, a4);
      a5 = hn::MulAdd(w2, v1, a5);
    }
    if constexpr (kRows > 3) {
      const V w3 = hn::Set(d, p[3]);
      a6 = hn::MulAdd(w3, v0, a6);
      a7 = hn::MulAdd(w3, v1, a7);
    }
  } else {
    static_assert(kRows == 2 && kVecs == 4);
    const V w1 = hn::Set(d, p[1]);
    const V v0 = LoadAs(d, v), v1 = LoadAs(d, v + lanes);
    a0 = hn::MulAdd(w0, v0, a0);
    a1 = hn::MulAdd(w0, v1, a1);
    a4 = hn::MulAdd(w1, v0, a4);
    a5 = hn::MulAdd(w1, v1, a5);
    const V v2 = LoadAs(d, v + 2 * lanes), v3 = LoadAs(d, v + 3 * lanes);
    a2 = hn::MulAdd(w0, v2, a2);
    a3 = hn::MulAdd(w0, v3, a3);
    a6 = hn::MulAdd(w1, v2, a6);
    a7 = hn::MulAdd(w1, v3, a7);
  }
}

// kRows rows of o, kVecs vectors of it each, take in a step's keys.
//   p: the first key's weights, keys p_stride apart
//   v: rows of v, of which the columns from `column` on are taken
// Registers: kRows * kVecs accumulators, at least 8 to hide the latency of a
// multiply-add, kVecs of v and 1 weight.
template <int kRows, int kVecs, class T>
HWY_NOINLINE void DecodeBlend(const float* HWY_RESTRICT p, size_t p_stride,
                              const T* const* v, Touches<T>& touches,
                              size_t keys, size_t column, bool fresh,
                              float* HWY_RESTRICT o, size_t o_stride) {
  constexpr int kSums = kRows * kVecs;
  static_assert(kSums <= 8);
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0,
    a7 = a0;
  const auto at = [&](int n) HWY_ATTR {
    return PlaceOf<kVecs>(o, o_stride, lanes, n);
  };
  if (!fresh) {
    a0 = hn::Load(d, o);
    if constexpr (kSums > 1) a1 = hn::Load(d, at(1));
    if constexpr (kSums > 2) a2 = hn::Load(d, at(2));
    if constexpr (kSums > 3) a3 = hn::Load(d, at(3));
    if constexpr (kSums > 4) a4 = hn::Load(d, at(4));
    if constexpr (kSums > 5) a5 = hn::Load(d, at(5));
    if constexpr (kSums > 6) a6 = hn::Load(d, at(6));
    if constexpr (kSums > 7) a7 = hn::Load(d, at(7));
  }
  // A line of k for each line of v, over two keys.
  constexpr size_t kVecBytes = HWY_MAX_BYTES / sizeof(float) * sizeof(T);
  constexpr size_t kTouches =
      HWY_MAX(2 * kVecs * kVecBytes / kLineBytes, size_t{1});
  Touches<T> next = touches;
  size_t key = 0;
  for (; key + 2 <= keys; key += 2) {
    for (size_t n = 0; n < kTouches; ++n) Touch(next);
    BlendKey<kRows, kVecs>(d, p, v[key] + column, a0, a1, a2, a3, a4, a5, a6,
                           a7);
    p += p_stride;
    BlendKey<kRows, kVecs>(d, p, v[key + 1] + column, a0, a1, a2, a3, a4, a5,
                           a6, a7);
    p += p_stride;
  }
  if (key < keys) {
    BlendKey<kRows, kVecs>(d, p, v[key] + column, a0, a1, a2, a3, a4, a5, a6,
                           a7);
  }
  touches = next;
  hn::Store(a0, d, o);
  if constexpr (kSums > 1) hn::Store(a1, d, at(1));
  if constexpr (kSums > 2) hn::Store(a2, d, at(2));
  if constexpr (kSums > 3) hn::Store(a3, d, at(3));
  if constexpr (kSums > 4) hn::Store(a4, d, at(4));
  if constexpr (kSums > 5) hn::Store(a5, d, at(5));
  if constexpr (kSums > 6) hn::Store(a6, d, at(6));
  if constexpr (kSums > 7) hn::Store(a7, d, at(7));
}

// Columns [0, vecs vectors) of kRows rows, `kMost` vectors at a time.
template <int kRows, int kMost, class T>
HWY_INLINE void DecodeBlendWide(const float* p, size_t p_stride,
                                const T* const* v, Touches<T>& touches,
                                size_t keys, size_t vecs, bool fresh, float* o,
                                size_t o_stride) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  size_t i = 0;
  for (; i + kMost <= vecs; i += kMost) {
    DecodeBlend<kRows, kMost>(p, p_stride, v, touches, keys, i * lanes, fresh,
                              o + i * lanes, o_stride);
  }
  for (; i + 2 <= vecs; i += 2) {
    DecodeBlend<kRows, 2>(p, p_stride, v, touches, keys, i * lanes, fresh,
                          o + i * lanes, o_stride);
  }
  if (i < vecs) {
    DecodeBlend<kRows, 1>(p, p_stride, v, touches, keys, i * lanes, fresh,
                          o + i * lanes, o_stride);
  }
}

template <class T>
HWY_INLINE void DecodeBlendRows(const float* p, size_t p_stride, size_t rows,
                                const T* const* v, Touches<T>& touches,
                                size_t keys, size_t vecs, bool fresh, float* o,
                                size_t o_stride) {
  switch (rows) {
    case 1:
      return DecodeBlendWide<1, 8>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
    case 2:
      return DecodeBlendWide<2, 4>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
    case 3:
      return DecodeBlendWide<3, 2>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
    default:
      return DecodeBlendWide<4, 2>(p, p_stride, v, touches, keys, vecs, fresh,
                                   o, o_stride);
  }
}

// The columns of a step's v beyond the last whole vector, widened, with zeros
// behind: [keys, one vector].
template <class T>
HWY_NOINLINE void WidenRest(const T* const* v, size_t keys, size_t column,
                            size_t columns, size_t lanes, float* out,
                            const float** rows) {
  for (size_t key = 0; key < keys; ++key) {
    float* to = out + key * lanes;
    rows[key] = to;
    Widen(v[key] + column, columns, to);
    for (size_t i = columns; i < lanes; ++i) to[i] = 0.0f;
  }
}

// Blends the step's keys [t.pending, key_end) into o; k of the next step is
// touched meanwhile.
template <class T>
HWY_INLINE void DecodePending(Task& t, const StepRows<T>& v,
                              Touches<T>& touches, size_t key_end) {
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
    const auto blend = [&](size_t first, size_t rows, size_t begin, size_t end,
                           size_t /*triangle*/, bool fresh) HWY_ATTR {
      const float* p = t.Scores(begin) + first;
      float* o = t.o + first * t.at.o_stride;
      const size_t key = begin - t.tile_begin;
      DecodeBlendRows(p, t.at.s_stride, rows, v.at + key, touches, end - begin,
                      whole, fresh, o, t.at.o_stride);
      if (rest != 0) {
        Touches<float> none;
        DecodeBlendRows(p, t.at.s_stride, rows, rest_rows + key, none,
                        end - begin, 1, fresh, o + whole * lanes,
                        t.at.o_stride);
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
HWY_INLINE void PointAt(const Block& b, size_t step, size_t end, int64_t stride,
                        const F& at, const T** rows) {
  size_t n = 0;
  for (size_t key = step; key < end;) {
    const size_t run = HWY_MIN(RunOfKeys(b, key), end - key);
    const T* row = at(key);
    for (size_t i = 0; i < run; ++i) {
      rows[n++] = row;
      row += stride;
    }
    key += run;
  }
  for (; n < kStep + kDecodeKeys; ++n) rows[n] = rows[n - 1];
}

// A decode at work: the task and its keys' rows.
template <class T>
struct Decode {
  Task t;
  size_t end = 0;    // keys of this call end here
  StepRows<T> k[2];  // of this step and the next; which is which alternates
  StepRows<T> v;
};

template <class T>
HWY_INLINE void PointAtK(const Block& b, size_t step, size_t end,
                         StepRows<T>& rows) {
  PointAt(
      b, step, HWY_MIN(step + kStep, end), b.k_stride,
      [&](size_t key) HWY_ATTR { return KeyAt<T>(b, key); }, rows.at);
}

template <class T>
HWY_INLINE void PointAtV(const Block& b, size_t step, size_t end,
                         StepRows<T>& rows) {
  PointAt(
      b, step, HWY_MIN(step + kStep, end), b.v_stride,
      [&](size_t key) HWY_ATTR { return ValueAt<T>(b, key); }, rows.at);
}

HWY_INLINE Layout DecodeLayout(size_t rows, size_t dim_qk, size_t dim_v) {
  Tile tile;
  tile.row_block = rows;
  tile.key_tile = kStep;
  const PathSizes path = {hn::Lanes(DecodeRowTag()), PairsDim(dim_qk),
                          kStep * hn::Lanes(hn::ScalableTag<float>())};
  return MakeLayout(tile, dim_v, path, 0);
}

// Rows of q as f32 times the scale, in pairs, panel by panel.
template <class T>
HWY_NOINLINE void PackPairs(const Task& t) {
  const Block& b = t.b;
  const hn::CappedTag<float, 1> d1;
  const size_t dim = PairsDim(b.dim_qk);
  for (size_t row = 0; row < t.rows; ++row) {
    const T* q = static_cast<const T*>(b.q) + t.tokens[row] * b.q_stride_token +
                 static_cast<int64_t>(HeadOf(t, row)) * b.q_stride_head;
    const size_t in_panel = row % t.at.panel;
    float* HWY_RESTRICT to =
        t.scratch + t.at.q + (row - in_panel) * dim + 2 * in_panel;
    for (size_t i = 0; i < dim; ++i) {
      const float x =
          i < b.dim_qk ? hn::GetLane(LoadAs(d1, q + i)) * b.q_scale : 0.0f;
      to[i / 2 * kPairFloats + i % 2] = x;
    }
  }
}

template <class T>
HWY_INLINE Touches<T> TouchesOf(const StepRows<T>& rows, size_t keys,
                                size_t dim) {
  // Rows without elements may be anywhere.
  if (dim == 0) keys = 0;
  return {{rows.at, 0}, {rows.at, 0}, rows.at + keys, dim, 0};
}

// Keys [step, end) of one step, not past the end of what the rows see.
template <class T>
HWY_INLINE void DecodeStep(Decode<T>& w, size_t step, size_t end) {
  Task& t = w.t;
  t.tile_begin = step;
  t.pending = step;
  StepRows<T>& k = w.k[step / kStep % 2];
  StepRows<T>& next_k = w.k[1 - step / kStep % 2];
  PointAtV<T>(t.b, step, w.end, w.v);
  Touches<T> touch_v = TouchesOf(w.v, end - step, t.b.dim_v);
  Touches<T> touch_k;
  if (step + kStep < w.end) {
    PointAtK<T>(t.b, step + kStep, w.end, next_k);
    touch_k =
        TouchesOf(next_k, HWY_MIN(kStep, w.end - step - kStep), t.b.dim_qk);
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
    DecodeScores(t, k, touch_v, row, step, row_end);
    WeighPanel<1>(DecodeRowTag(), t, range, row, step, row_end, view,
                  []() HWY_ATTR {});
    scored = true;
    t.hidden |= view == MaskView::kMixed;
  }
  if (scored) {
    DecodePending(t, w.v, touch_k, end);
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
  const size_t step = begin / kStep;
  PointAtK<T>(w.t.b, step * kStep, end, w.k[step % 2]);
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
  const size_t begin = t.ranges[0].begin;
  const size_t end = t.ranges[t.rows - 1].end;
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
  const size_t begin = HWY_MAX(t.ranges[0].begin, chunk_begin * kChunk);
  const size_t end = HWY_MIN(t.ranges[t.rows - 1].end, chunk_end * kChunk);
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
  const size_t begin = t.ranges[0].begin;
  const size_t end = HWY_MIN(t.ranges[t.rows - 1].end, chunk_end * kChunk);
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

// One step's scores of one panel as `stage` shows them: shown(row, key, value)
// for each.
template <class T, class F>
HWY_INLINE void ShowStep(Task& t, const StepRows<T>& k, ScoreStage stage,
                         size_t row, size_t step, size_t end, const F& shown) {
  const DecodeRowTag d;
  Touches<T> none;
  DecodeScores(t, k, none, row, step, end);
  const bool biased =
      stage == ScoreStage::kBiased || stage == ScoreStage::kWeights;
  if (stage != ScoreStage::kScaled && t.biased) {
    const MaskView view =
        biased ? ViewOf(t.seen == nullptr, false) : MaskView::kPlain;
    BiasStep<1>(d, t, row, step, end - step, view);
  }
  if (biased) HideStep<1>(d, t, row, step, end - step);
  for (size_t key = step; key < end; ++key) {
    float* s = t.Scores(key) + row;
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
                 scores[t.tokens[r] * stride_token +
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
