#include "tune/storage.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/include/heed.h"

namespace heed {
namespace {

uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

float FromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// x without its lowest `count` bits, rounded to nearest even.
uint32_t RoundedShift(uint32_t x, int count) {
  const uint32_t half = (1u << (count - 1)) - 1 + (x >> count & 1);
  return (x + half) >> count;
}

}  // namespace

float WidenF16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 0x1F;
  const uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0) {
    const float x = static_cast<float>(mantissa) * 0x1p-24f;
    return FromBits(sign | Bits(x));
  }
  if (exponent == 31) return FromBits(sign | 0x7F800000u | mantissa << 13);
  return FromBits(sign | (exponent + 127 - 15) << 23 | mantissa << 13);
}

float WidenBF16(uint16_t bits) {
  return FromBits(static_cast<uint32_t>(bits) << 16);
}

uint16_t NarrowToF16(float x) {
  const uint32_t sign = Bits(x) >> 16 & 0x8000u;
  if (std::isnan(x)) return static_cast<uint16_t>(sign | 0x7E00u);
  const float magnitude = std::fabs(x);
  uint32_t bits = 0x7C00u;
  if (magnitude < 0x1p-14f) {
    bits = static_cast<uint32_t>(std::nearbyint(magnitude * 0x1p24f));
  } else if (magnitude < 0x1p16f) {
    bits = RoundedShift(Bits(magnitude) - ((127u - 15u) << 23), 13);
  }
  return static_cast<uint16_t>(sign | bits);
}

uint16_t NarrowToBF16(float x) {
  const uint32_t bits = Bits(x);
  if (std::isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>(RoundedShift(bits, 16));
}

void Widen(int32_t dtype, const void* from, size_t count, float* to) {
  if (dtype == HEED_F32) {
    std::copy_n(static_cast<const float*>(from), count, to);
    return;
  }
  const uint16_t* const words = static_cast<const uint16_t*>(from);
  std::transform(words, words + count, to,
                 dtype == HEED_F16 ? WidenF16 : WidenBF16);
}

void Narrow(int32_t dtype, const float* from, size_t count, void* to) {
  if (dtype == HEED_F32) {
    std::copy_n(from, count, static_cast<float*>(to));
    return;
  }
  std::transform(from, from + count, static_cast<uint16_t*>(to),
                 dtype == HEED_F16 ? NarrowToF16 : NarrowToBF16);
}

double StorageRounding(int32_t dtype) {
  if (dtype == HEED_F16) return 0x1p-11;
  return dtype == HEED_BF16 ? 0x1p-8 : 0;
}

}  // namespace heed
