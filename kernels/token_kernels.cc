// Norms, projections and RoPE for every SIMD target, and the tables that
// publish them.
#include "kernels/token_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/token_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

// Highway's own headers come after foreach_target.h.
#include "hwy/highway.h"
#include "kernels/norm-inl.h"
#include "kernels/project-inl.h"
#include "kernels/rope-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void AddTo(const float* x, size_t n, float* y) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  }
  for (; i < n; ++i) y[i] = x[i] + y[i];
}

TokenKernels MakeTokenKernels() {
  TokenKernels kernels;
  kernels.target = hwy::TargetName(HWY_TARGET);
  kernels.lanes = hn::Lanes(hn::ScalableTag<float>());
  kernels.fused = HWY_NATIVE_FMA != 0;
  kernels.row_multiple = kTileRows;
  kernels.panel_columns = PanelColumns();
  kernels.project[static_cast<size_t>(DType::kF32)] = &Project<float>;
  kernels.project[static_cast<size_t>(DType::kF16)] = &Project<F16>;
  kernels.project[static_cast<size_t>(DType::kBF16)] = &Project<BF16>;
  kernels.norm = &Norm;
  kernels.turn_interleaved = &TurnInterleaved;
  kernels.turn_halves = &TurnHalves;
  kernels.add = &AddTo;
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(MakeTokenKernels);

TokenKernels GetTokenKernels(int64_t target) {
  // A chooser of our own, so that one block's target is nobody else's.
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  static_cast<void>(chosen);  // unused where only one target is compiled
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
  return HWY_STATIC_DISPATCH(MakeTokenKernels)();
#else
  return HWY_DISPATCH_TABLE(MakeTokenKernels)[chosen.GetIndex()]();
#endif
}

}  // namespace heed
#endif  // HWY_ONCE
