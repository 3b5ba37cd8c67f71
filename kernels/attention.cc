// The kernels for every SIMD target and storage type, and the tables that
// publish them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

// Highway's own headers come after foreach_target.h.
#include "hwy/highway.h"
#include "kernels/attention-inl.h"
#include "kernels/decode-inl.h"
#include "kernels/kernels.h"
#include "kernels/pieces-inl.h"
#include "kernels/show-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

template <class T>
Kernels MakeFor(DType dtype) {
  const hn::ScalableTag<float> d;
  Kernels kernels;
  kernels.target = hwy::TargetName(HWY_TARGET);
  kernels.dtype = dtype;
  kernels.lanes = hn::Lanes(d);
  kernels.row_multiple = kPanelVecs * hn::Lanes(d);
  kernels.fused = HWY_NATIVE_FMA != 0;
  kernels.scratch_bytes = &ScratchBytes;
  kernels.packed_k_bytes = &PackedKBytes;
  kernels.packed_v_bytes = &PackedVBytes;
  kernels.pack = &PackKeys<T>;
  kernels.attend = &Attend<T>;
  kernels.decode_scratch_bytes = &DecodeScratchBytes;
  kernels.decode = &RunDecode<T>;
  kernels.state_floats = &StateFloats;
  kernels.decode_part = &DecodePart<T>;
  kernels.merge = &MergeParts<T>;
  kernels.show_scores = &ShowScores<T>;
  kernels.run_piece = dtype == DType::kF32 ? &RunPiece : nullptr;
  return kernels;
}

Kernels MakeKernels(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return MakeFor<F16>(dtype);
    case DType::kBF16:
      return MakeFor<BF16>(dtype);
    case DType::kF32:
      break;
  }
  return MakeFor<float>(DType::kF32);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(MakeKernels);

size_t SupportedTargets(int64_t* targets, size_t max) {
  size_t count = 0;
  for (int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0;
       left &= left - 1) {
    if (count < max) targets[count] = left & -left;
    ++count;
  }
  return count;
}

Kernels GetKernels(int64_t target, DType dtype) {
  // A chooser of our own, so that one plan's target is nobody else's.
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  static_cast<void>(chosen);  // unused where only one target is compiled
#if (HWY_TARGETS & (HWY_TARGETS - 1)) == 0
  return HWY_STATIC_DISPATCH(MakeKernels)(dtype);
#else
  return HWY_DISPATCH_TABLE(MakeKernels)[chosen.GetIndex()](dtype);
#endif
}

}  // namespace heed
#endif  // HWY_ONCE
