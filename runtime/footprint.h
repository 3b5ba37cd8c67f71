// Which bytes a strided tensor touches, and whether two tensors can meet.
#ifndef HEED_RUNTIME_FOOTPRINT_H_
#define HEED_RUNTIME_FOOTPRINT_H_

#include <cstdint>

namespace heed {

// Elements at base + sum over axes of index * stride, 0 <= index < extent.
// No extent is 0.
struct Footprint {
  static constexpr int kAxes = 4;
  uintptr_t base;
  int64_t element_bytes;
  int64_t extent[kAxes];
  int64_t stride_bytes[kAxes];
  // Bytes [low, high) hold them all; set by Measure().
  uintptr_t low, high;
};

// Sets low and high. False if the tensor reaches beyond the address space.
bool Measure(Footprint* footprint);

// No two indices can name overlapping elements. Sound, and exact for every
// layout that permutes or pads the axes of a dense tensor: sorted by stride,
// each axis has to step over all that the smaller ones reach.
bool IsInjective(const Footprint& footprint);

// The two share no byte. True if their byte ranges are apart, or if they
// interleave with a common period P: their places modulo P then lie in two
// disjoint intervals (q, k, v and out packed side by side in one buffer).
// Anything else that overlaps is taken to collide.
bool AreDisjoint(const Footprint& a, const Footprint& b);

}  // namespace heed

#endif  // HEED_RUNTIME_FOOTPRINT_H_
