// RoPE (Su et al. 2021, section 3.4.2): pairs of a head's elements turned by an
// angle each. Included once per target.
#if defined(HEED_KERNELS_ROPE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ROPE_INL_H_
#undef HEED_KERNELS_ROPE_INL_H_
#else
#define HEED_KERNELS_ROPE_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
HWY_INLINE void Turn(V c, V s, V& a, V& b) {
  const V turned = hn::MulSub(a, c, hn::Mul(b, s));
  b = hn::MulAdd(b, c, hn::Mul(a, s));
  a = turned;
}

template <class D>
HWY_INLINE void TurnApart(D d, const float* c, const float* s, float* first,
                          float* second) {
  auto a = hn::LoadU(d, first), b = hn::LoadU(d, second);
  Turn(hn::LoadU(d, c), hn::LoadU(d, s), a, b);
  hn::StoreU(a, d, first);
  hn::StoreU(b, d, second);
}

void TurnHalves(const float* c, const float* s, size_t pairs, float* head) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    TurnApart(d, c + i, s + i, head + i, head + pairs + i);
  }
  for (; i < pairs; ++i) {
    TurnApart(d1, c + i, s + i, head + i, head + pairs + i);
  }
}

void TurnInterleaved(const float* c, const float* s, size_t pairs,
                     float* head) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    V a, b;
    hn::LoadInterleaved2(d, head + 2 * i, a, b);
    Turn(hn::LoadU(d, c + i), hn::LoadU(d, s + i), a, b);
    hn::StoreInterleaved2(a, b, d, head + 2 * i);
  }
  for (; i < pairs; ++i) {
    TurnApart(d1, c + i, s + i, head + 2 * i, head + 2 * i + 1);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
