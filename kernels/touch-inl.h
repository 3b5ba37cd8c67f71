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

// Bytes of memory on end.
struct Run {
  const char* at;
  size_t bytes;
};

// Memory to touch ahead of use, line by line in its order, as evenly as other
// memory is used meanwhile: k of the next step while this one's v is blended,
// and v while k is scored. (Both a whole step ahead are 48 KB of f32 at dim 128
// and leave the L1 before they are used. Across the rows, as the scores read
// them, the CPU's own prefetcher does not see a stream.)
//
// A touch that finds all buffers for misses in use is dropped: whatever asks
// for lines faster than memory gives them loses some of them, and waits for
// them later. So of f32, where memory is the limit, each touch also loads a
// line that was touched some lines before, which holds the touches to the speed
// of memory. Cycles a key of dim 128 from memory, one row and four, best of
// three runs: 204 and 183 with 32 lines; 200 and 187 with 16, 214 and 192 with
// 64, 210 and 191 without. (A bare loop that alternates between two streams
// takes 145 to 175 for the same, one that reads a single stream 133.) 16-bit
// elements are bound by arithmetic: 136, not 127, with four rows.
template <class T>
constexpr size_t kLinesInFlight = std::is_same<T, float>() ? 32 : 0;

// A place in a list of runs.
struct LineCursor {
  const char* line = nullptr;
  size_t left = 0;  // bytes of this run from `line` on; 0 = before next_run
  const Run* next_run = nullptr;
};

template <class T>
struct Touches {
  LineCursor ahead, behind;
  const Run* end = nullptr;
  size_t in_flight = 0;  // lines that `behind` is behind
};

template <bool kLoad>
HWY_INLINE void TouchLine(const char* line) {
  if constexpr (kLoad) {
    static_cast<void>(*static_cast<const volatile char*>(line));
  } else {
    hwy::Prefetch(line);
  }
}

// The next kLines lines, or as many as there are.
template <bool kLoad, size_t kLines>
HWY_INLINE void TouchLines(LineCursor& next, const Run* end) {
  if (HWY_LIKELY(next.left >= kLines * kLineBytes)) {
    for (size_t n = 0; n < kLines; ++n) {
      TouchLine<kLoad>(next.line + n * kLineBytes);
    }
    next.line += kLines * kLineBytes;
    next.left -= kLines * kLineBytes;
    return;
  }
  for (size_t n = 0; n < kLines; ++n) {
    if (next.left == 0) {
      if (next.next_run == end) return;
      next.line = next.next_run->at;
      next.left = next.next_run->bytes;
      ++next.next_run;
    }
    TouchLine<kLoad>(next.line);
    const size_t taken = HWY_MIN(next.left, kLineBytes);
    next.line += taken;
    next.left -= taken;
  }
}

// kLines lines at once: an instruction or two for each, not the dozen that it
// takes to look for the end of a row at every line, which were half of all
// instructions with one row.
template <size_t kLines, class T>
HWY_INLINE void Touch(Touches<T>& next) {
  TouchLines</*kLoad=*/false, kLines>(next.ahead, next.end);
  if constexpr (kLinesInFlight<T> != 0) {
    if (HWY_LIKELY(next.in_flight >= kLinesInFlight<T>)) {
      TouchLines</*kLoad=*/true, kLines>(next.behind, next.end);
    } else {
      next.in_flight += kLines;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
