#include "bench/softmax_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/softmax_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void SoftmaxRow(float* HWY_RESTRICT row, size_t visible, size_t width) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  float largest = row[0];
  size_t i = 0;
  auto most = hn::Set(d, row[0]);
  for (; i + lanes <= visible; i += lanes) {
    most = hn::Max(most, hn::LoadU(d, row + i));
  }
  largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < visible; ++i) largest = std::max(largest, row[i]);

  const auto shift = hn::Set(d, largest);
  auto sums = hn::Zero(d);
  float sum = 0;
  for (i = 0; i + lanes <= visible; i += lanes) {
    const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, row + i), shift));
    hn::StoreU(e, d, row + i);
    sums = hn::Add(sums, e);
  }
  sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < visible; ++i) {
    row[i] = hn::GetLane(hn::Exp(d, hn::Set(d, row[i] - largest)));
    sum += row[i];
  }

  const float inverse = 1 / sum;
  const auto scale = hn::Set(d, inverse);
  for (i = 0; i + lanes <= visible; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, row + i), scale), d, row + i);
  }
  for (; i < visible; ++i) row[i] *= inverse;
  std::fill(row + visible, row + width, 0.0f);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(SoftmaxRow);

void SoftmaxRow(float* row, size_t visible, size_t width) {
  HWY_DYNAMIC_DISPATCH(SoftmaxRow)(row, visible, width);
}

}  // namespace heed
#endif  // HWY_ONCE
