#include "runtime/footprint.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>

namespace heed {
namespace {

// How far the elements reach below and above the base, without the last
// element's own bytes. Axes whose stride is a multiple of `period` are left
// out; 0 leaves out none. False on overflow.
bool Reach(const Footprint& f, int64_t period, int64_t* below, int64_t* above) {
  *below = *above = 0;
  for (int axis = 0; axis < Footprint::kAxes; ++axis) {
    const int64_t stride = f.stride_bytes[axis];
    if (period != 0 && stride % period == 0) continue;
    int64_t span;
    if (__builtin_mul_overflow(f.extent[axis] - 1, stride, &span)) return false;
    int64_t* side = span < 0 ? below : above;
    if (__builtin_add_overflow(*side, span, side)) return false;
  }
  return true;
}

// Bytes from `from` up to `to`, counted round a circle of `period` bytes.
uintptr_t Around(uintptr_t from, uintptr_t to, uintptr_t period) {
  from %= period;
  to %= period;
  return to >= from ? to - from : to + (period - from);
}

// Modulo `period`, a and b lie in disjoint intervals.
bool Interleave(const Footprint& a, const Footprint& b, int64_t period) {
  int64_t a_below, a_above, b_below, b_above;
  if (!Reach(a, period, &a_below, &a_above) ||
      !Reach(b, period, &b_below, &b_above)) {
    return false;
  }
  // Both fit the address space, so that neither sum nor difference overflows.
  const int64_t a_width = a_above - a_below + a.element_bytes;
  const int64_t b_width = b_above - b_below + b.element_bytes;
  if (a_width > period || b_width > period - a_width) return false;
  const auto circle = static_cast<uintptr_t>(period);
  const uintptr_t a_low = a.base + static_cast<uintptr_t>(a_below);
  const uintptr_t b_low = b.base + static_cast<uintptr_t>(b_below);
  return Around(a_low, b_low, circle) >= static_cast<uintptr_t>(a_width) &&
         Around(b_low, a_low, circle) >= static_cast<uintptr_t>(b_width);
}

}  // namespace

bool Measure(Footprint* footprint) {
  int64_t below, above;
  if (!Reach(*footprint, 0, &below, &above)) return false;
  if (__builtin_add_overflow(above, footprint->element_bytes, &above)) {
    return false;
  }
  int64_t whole;
  return !__builtin_sub_overflow(above, below, &whole) &&
         !__builtin_add_overflow(footprint->base, below, &footprint->low) &&
         !__builtin_add_overflow(footprint->base, above, &footprint->high);
}

bool IsInjective(const Footprint& footprint) {
  struct Axis {
    int64_t stride, extent;
  } axes[Footprint::kAxes];
  for (int i = 0; i < Footprint::kAxes; ++i) {
    // An axis of one index steps over nothing: last, and harmless there.
    const bool steps = footprint.extent[i] > 1;
    axes[i] = {steps ? std::abs(footprint.stride_bytes[i]) : INT64_MAX,
               footprint.extent[i]};
  }
  std::sort(std::begin(axes), std::end(axes),
            [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  int64_t reach = footprint.element_bytes;
  for (const Axis& axis : axes) {
    if (axis.extent <= 1) break;
    if (axis.stride < reach) return false;
    reach += (axis.extent - 1) * axis.stride;
  }
  return true;
}

bool AreDisjoint(const Footprint& a, const Footprint& b) {
  if (a.high <= b.low || b.high <= a.low) return true;
  for (const Footprint* f : {&a, &b}) {
    for (int axis = 0; axis < Footprint::kAxes; ++axis) {
      const int64_t period = std::abs(f->stride_bytes[axis]);
      if (period != 0 && f->extent[axis] > 1 && Interleave(a, b, period)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace heed
