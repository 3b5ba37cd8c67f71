// Memory touched ahead of use, no faster than it comes. Included once per
// target.
#if defined(HEED_KERNELS_TOUCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_TOUCH_INL_H_
#undef HEED_KERNELS_TOUCH_INL_H_
#else
#define HEED_KERNELS_TOUCH_INL_H_
#endif

#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kLineBytes = 64;

// Rows to touch ahead of use, line by line in the order of memory, as evenly as
// other rows are used meanwhile: k of the next step while this one's v is
// blended, and v while k is scored. (Both a whole step ahead are 48 KB of f32
// at dim 128 and leave the L1 before they are used. Across the rows, as the
// scores read them, the CPU's own prefetcher does not see a stream.)
//
// A touch that finds all buffers for misses in use is dropped: whatever asks
// for lines faster than memory gives them loses some of them, and waits for
// them later. So of f32, where memory is the limit, each touch also loads a
// line that was touched some lines before, which holds the touches to the speed
// of memory: 207 cycles a key, not 235, with one row of dim 128, 198, not 205,
// with four. (12 lines: 204 and 220; 64: 224 and 200. 16-bit elements are bound
// by arithmetic: 136, not 127, with four rows.)
template <class T>
constexpr size_t kLinesInFlight = std::is_same<T, float>() ? 32 : 0;

template <class T>
struct LineCursor {
  const T* const* row = nullptr;
  size_t element = 0;  // of *row, that comes next

  HWY_INLINE const T* Take(size_t dim) {
    const T* line = *row + element;
    element += kLineBytes / sizeof(T);
    if (element >= dim) {
      element = 0;
      ++row;
    }
    return line;
  }
};

template <class T>
struct Touches {
  LineCursor<T> ahead, behind;
  const T* const* end = nullptr;
  size_t dim = 0;        // elements of a row
  size_t in_flight = 0;  // lines that `behind` is behind
};

template <class T>
HWY_INLINE void Touch(Touches<T>& next) {
  if (next.ahead.row == next.end) return;
  hwy::Prefetch(next.ahead.Take(next.dim));
  if constexpr (kLinesInFlight<T> != 0) {
    if (next.in_flight == kLinesInFlight<T>) {
      static_cast<void>(
          *reinterpret_cast<const volatile char*>(next.behind.Take(next.dim)));
    } else {
      ++next.in_flight;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
