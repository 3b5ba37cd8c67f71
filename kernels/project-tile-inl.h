// The register tile of a projection: a few rows by one panel of outputs, one
// chain per output over the inputs of a chunk.
//
// Knows rows, a panel and sums; nothing of chunks or blocks. Included once per
// target.
#if defined(HEED_KERNELS_PROJECT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_PROJECT_TILE_INL_H_
#undef HEED_KERNELS_PROJECT_TILE_INL_H_
#else
#define HEED_KERNELS_PROJECT_TILE_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The tile, and with it the width of a panel in vectors.
// 16 registers: 6 * 2 sums + 2 of w + 1 of x = 15. 32: 8 * 3 + 3 + 1 = 28; then
// 11 loads feed 24 multiply-adds.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 || HWY_TARGET == HWY_RVV
constexpr size_t kTileRows = 8;
constexpr size_t kPanelVectors = 3;
#else
constexpr size_t kTileRows = 6;
constexpr size_t kPanelVectors = 2;
#endif

// One tile: y = base + x w over `inputs` inputs.
template <class T>
struct ProjectTile {
  const float* x;  // [rows, inputs]
  size_t x_stride;
  const T* w;  // [inputs, panel]
  size_t inputs;
  const float* base;  // [rows, panel] with base_stride: bias (0), or y itself
  size_t base_stride;
  float* y;  // [rows, panel]
  size_t y_stride;
  // Memory that is wanted next: a line is touched at each input, `ahead_step`
  // bytes further each time.
  const char* ahead;
  size_t ahead_step;
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE void TakeInput(D d, const float* x, V w0, V w1, V w2, V& s0, V& s1,
                          V& s2) {
  const V v = hn::Set(d, *x);
  s0 = hn::MulAdd(v, w0, s0);
  s1 = hn::MulAdd(v, w1, s1);
  if constexpr (kPanelVectors > 2) s2 = hn::MulAdd(v, w2, s2);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void AddRow(D d, const float* base, V s0, V s1, V s2, float* y) {
  const size_t lanes = hn::Lanes(d);
  hn::Store(hn::Add(hn::Load(d, base), s0), d, y);
  hn::Store(hn::Add(hn::Load(d, base + lanes), s1), d, y + lanes);
  if constexpr (kPanelVectors > 2) {
    hn::Store(hn::Add(hn::Load(d, base + 2 * lanes), s2), d, y + 2 * lanes);
  }
}

// Not inlined, as BlendTile is not: inside a larger function g++ 12 spills.
template <size_t kRows, class T>
HWY_NOINLINE void RunTile(const ProjectTile<T>& tile) {
  static_assert(1 <= kRows && kRows <= kTileRows);
  static_assert(kTileRows <= 8 && kPanelVectors <= 3);
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V s00 = hn::Zero(d), s01 = s00, s02 = s00, s10 = s00, s11 = s00, s12 = s00;
  V s20 = s00, s21 = s00, s22 = s00, s30 = s00, s31 = s00, s32 = s00;
  V s40 = s00, s41 = s00, s42 = s00, s50 = s00, s51 = s00, s52 = s00;
  V s60 = s00, s61 = s00, s62 = s00, s70 = s00, s71 = s00, s72 = s00;
  const size_t stride = tile.x_stride;
  const float* HWY_RESTRICT x0 = tile.x;
  const float* HWY_RESTRICT x3 = x0 + 3 * stride;
  const float* HWY_RESTRICT x6 = x0 + 6 * stride;
  const T* HWY_RESTRICT w = tile.w;
  const char* ahead = tile.ahead;
  // Sums that are not near come while the inputs are multiplied.
  for (size_t row = 0; row < kRows; ++row) {
    const float* to = tile.y + row * tile.y_stride;
    hwy::Prefetch(to);
    hwy::Prefetch(to + kPanelVectors * lanes - 1);
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < tile.inputs; ++i) {
    hwy::Prefetch(ahead);
    ahead += tile.ahead_step;
    const V w0 = LoadAs(d, w), w1 = LoadAs(d, w + lanes);
    V w2 = w0;
    if constexpr (kPanelVectors > 2) w2 = LoadAs(d, w + 2 * lanes);
    w += kPanelVectors * lanes;
    TakeInput(d, x0, w0, w1, w2, s00, s01, s02);
    if constexpr (kRows > 1)
      TakeInput(d, x0 + stride, w0, w1, w2, s10, s11, s12);
    if constexpr (kRows > 2)
      TakeInput(d, x0 + 2 * stride, w0, w1, w2, s20, s21, s22);
    if constexpr (kRows > 3) TakeInput(d, x3, w0, w1, w2, s30, s31, s32);
    if constexpr (kRows > 4)
      TakeInput(d, x3 + stride, w0, w1, w2, s40, s41, s42);
    if constexpr (kRows > 5)
      TakeInput(d, x3 + 2 * stride, w0, w1, w2, s50, s51, s52);
    if constexpr (kRows > 6) TakeInput(d, x6, w0, w1, w2, s60, s61, s62);
    if constexpr (kRows > 7)
      TakeInput(d, x6 + stride, w0, w1, w2, s70, s71, s72);
    ++x0;
    ++x3;
    ++x6;
  }
  const float* base = tile.base;
  float* y = tile.y;
  const size_t b = tile.base_stride, o = tile.y_stride;
  AddRow(d, base, s00, s01, s02, y);
  if constexpr (kRows > 1) AddRow(d, base + b, s10, s11, s12, y + o);
  if constexpr (kRows > 2) AddRow(d, base + 2 * b, s20, s21, s22, y + 2 * o);
  if constexpr (kRows > 3) AddRow(d, base + 3 * b, s30, s31, s32, y + 3 * o);
  if constexpr (kRows > 4) AddRow(d, base + 4 * b, s40, s41, s42, y + 4 * o);
  if constexpr (kRows > 5) AddRow(d, base + 5 * b, s50, s51, s52, y + 5 * o);
  if constexpr (kRows > 6) AddRow(d, base + 6 * b, s60, s61, s62, y + 6 * o);
  if constexpr (kRows > 7) AddRow(d, base + 7 * b, s70, s71, s72, y + 7 * o);
}

// rows <= kTileRows.
template <class T>
HWY_INLINE void RunTileOf(size_t rows, const ProjectTile<T>& tile) {
  switch (rows) {
    case 1:
      return RunTile<1>(tile);
    case 2:
      return RunTile<2>(tile);
    case 3:
      return RunTile<3>(tile);
    case 4:
      return RunTile<4>(tile);
    case 5:
      return RunTile<5>(tile);
    default:
      break;
  }
  if constexpr (kTileRows > 6) {
    if (rows == 7) return RunTile<7>(tile);
    if (rows == 8) return RunTile<8>(tile);
  }
  return RunTile<6>(tile);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
