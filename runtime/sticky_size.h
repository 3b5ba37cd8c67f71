// Sizes of memory, which stick at SIZE_MAX instead of overflowing.
#ifndef HEED_RUNTIME_STICKY_SIZE_H_
#define HEED_RUNTIME_STICKY_SIZE_H_

#include <cstddef>
#include <cstdint>

namespace heed {

inline size_t Times(size_t a, size_t b) {
  size_t product;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

inline size_t Plus(size_t a, size_t b) {
  size_t sum;
  return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

// Two cache lines between the slices of two workers: x86 fetches lines in
// pairs, and an odd distance keeps slices off each other's L1 sets.
constexpr size_t kSliceGap = 128;

inline size_t RoundUp(size_t value, size_t multiple) {
  return value + (multiple - value % multiple) % multiple;
}

// Rounded up to a cache line.
inline size_t ToLine(size_t bytes) {
  const size_t up = Plus(bytes, 63);
  return up == SIZE_MAX ? SIZE_MAX : up & ~size_t{63};
}

}  // namespace heed

#endif  // HEED_RUNTIME_STICKY_SIZE_H_
