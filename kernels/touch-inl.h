// Memory touched ahead of use. Included once per target.
#if defined(HEED_KERNELS_TOUCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_TOUCH_INL_H_
#undef HEED_KERNELS_TOUCH_INL_H_
#else
#define HEED_KERNELS_TOUCH_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kLineBytes = 64;
constexpr size_t kLineFloats = kLineBytes / sizeof(float);

// Bytes of memory on end.
struct Run {
  const char* at;
  size_t bytes;
};

// A place in a list of runs, from which lines are touched in order.
struct LineCursor {
  const char* line = nullptr;
  size_t left = 0;  // bytes of this run from `line` on; 0 = before next_run
  const Run* next_run = nullptr;
  const Run* end = nullptr;
};

// The next kLines lines, or as many as there are.
template <size_t kLines>
HWY_INLINE void TouchLines(LineCursor& next) {
  if (HWY_LIKELY(next.left >= kLines * kLineBytes)) {
    for (size_t n = 0; n < kLines; ++n) {
      hwy::Prefetch(next.line + n * kLineBytes);
    }
    next.line += kLines * kLineBytes;
    next.left -= kLines * kLineBytes;
    return;
  }
  for (size_t n = 0; n < kLines; ++n) {
    if (next.left == 0) {
      if (next.next_run == next.end) return;
      next.line = next.next_run->at;
      next.left = next.next_run->bytes;
      ++next.next_run;
    }
    hwy::Prefetch(next.line);
    const size_t taken = HWY_MIN(next.left, kLineBytes);
    next.line += taken;
    next.left -= taken;
  }
}

// Memory to touch ahead of use, as evenly as other memory is used meanwhile:
// lines of `first` and `second` in turns if `both`, else of `first` alone.
// (Across the rows, as the scores read them, the CPU's own prefetcher does not
// see a stream.)
struct Touches {
  LineCursor first, second;
  bool both;
};

// kLines lines at once: an instruction or two for each, not the dozen that it
// takes to look for the end of a row at every line, which were half of all
// instructions with one row.
template <size_t kLines>
HWY_INLINE void Touch(Touches& next) {
  if (next.both) {
    constexpr size_t kHalf = HWY_MAX(kLines / 2, size_t{1});
    TouchLines<kHalf>(next.first);
    TouchLines<kHalf>(next.second);
  } else {
    TouchLines<kLines>(next.first);
  }
}

// Rows of memory that are touched one after the other.
struct RowRun {
  const char* row = nullptr;
  size_t bytes = 0;    // of a row
  int64_t stride = 0;  // bytes
  size_t rows = 0;
};

template <class T>
HWY_INLINE RowRun RunOfRows(const T* first, size_t dim, int64_t stride,
                            size_t rows) {
  return {reinterpret_cast<const char*>(first), dim * sizeof(T),
          stride * static_cast<int64_t>(sizeof(T)), rows};
}

HWY_INLINE void TouchRow(RowRun& next) {
#pragma GCC unroll 4
  for (size_t i = 0; i < next.bytes; i += kLineBytes) {
    hwy::Prefetch(next.row + i);
  }
  next.row += next.stride;
  --next.rows;
}

// The rows of `first` and then of `second`, spread evenly over `times` calls of
// Touch.
struct PacedTouches {
  RowRun first, second;
  size_t rows = 0, times = 0;
  size_t due = 0;  // in rows / times

  HWY_INLINE void Plan(const RowRun& a, const RowRun& b, size_t calls) {
    first = a;
    second = b;
    rows = a.rows + b.rows;
    times = calls;
    due = times;
  }
};

HWY_INLINE void Touch(PacedTouches& next) {
  for (next.due += next.rows; next.due > next.times; next.due -= next.times) {
    if (next.first.rows != 0) {
      TouchRow(next.first);
    } else if (next.second.rows != 0) {
      TouchRow(next.second);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
