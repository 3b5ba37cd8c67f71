// Storage types, element by element: f16 and bf16 widen to f32 exactly and
// narrow to the nearest, ties to even, as kernels/convert-inl.h does with
// vectors. Without branches, so that a loop over them can be vectorised.
#ifndef HEED_RUNTIME_CONVERT_H_
#define HEED_RUNTIME_CONVERT_H_

#include <cstdint>
#include <cstring>

#include "kernels/kernels.h"

namespace heed {

inline uint32_t BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float FloatOf(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

inline float ToFloat(float x) { return x; }

inline float ToFloat(BF16 x) { return FloatOf(uint32_t{x.bits} << 16); }

inline float ToFloat(F16 x) {
  const uint32_t sign = (uint32_t{x.bits} & 0x8000u) << 16;
  const uint32_t a = (uint32_t{x.bits} & 0x7FFFu) << 13;
  const uint32_t normal = a + ((127u - 15u) << 23);
  // Subnormals: the mantissa as that of 2^-14, less 2^-14, is exact.
  const uint32_t base = 0x38800000u;
  const uint32_t small = BitsOf(FloatOf(a | base) - FloatOf(base));
  const uint32_t finite = a < 0x00800000u ? small : normal;
  return FloatOf(sign | (a < 0x0F800000u ? finite : a | 0x7F800000u));
}

inline void FromFloat(float x, float* to) { *to = x; }

inline void FromFloat(float x, BF16* to) {
  const uint32_t bits = BitsOf(x);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  to->bits = static_cast<uint16_t>(is_nan ? nan : rounded);
}

inline void FromFloat(float x, F16* to) {
  const uint32_t bits = BitsOf(x);
  const uint32_t a = bits & 0x7FFFFFFFu;
  // Normal results: move the exponent's bias, round at bit 13; a carry may make
  // it infinite.
  const uint32_t normal =
      (a - ((127u - 15u) << 23) + 0xFFFu + ((a >> 13) & 1u)) >> 13;
  // Subnormal results, below 2^-14: adding 0.5 puts the lowest bit of the
  // result at bit 0.
  const uint32_t half = 0x3F000000u;
  const uint32_t small = BitsOf(FloatOf(a) + FloatOf(half)) - half;
  uint32_t out = a < 0x38800000u ? small : normal;
  // 65536 and above, infinity included, are infinite; NaN stays NaN.
  out = a < 0x47800000u ? out : 0x7C00u;
  out = a > 0x7F800000u ? 0x7E00u : out;
  to->bits = static_cast<uint16_t>(out | (bits >> 31 << 15));
}

}  // namespace heed

#endif  // HEED_RUNTIME_CONVERT_H_
