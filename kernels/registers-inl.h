// Vector registers: how large a register tile may be. Included once per target.
#if defined(HEED_KERNELS_REGISTERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_REGISTERS_INL_H_
#undef HEED_KERNELS_REGISTERS_INL_H_
#else
#define HEED_KERNELS_REGISTERS_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

// Targets of 32 vector registers (AVX-512, 64-bit Arm, RISC-V) and of 16. On
// x86 better targets have lower numbers.
#if HWY_ARCH_X86
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3;
#else
constexpr bool kManyRegisters = HWY_ARCH_ARM_A64 || HWY_ARCH_RVV;
#endif

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
