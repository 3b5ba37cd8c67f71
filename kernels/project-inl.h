// Projections: y = bias + x w, each output a chain per chunk of inputs, the
// chunks added in order. Included once per target.
//
// Many rows: a panel of a chunk (16 KB of f32) is brought near, widened if it
// is of 16 bits, and meets all rows of the task; y, which holds the sums
// between chunks, and a chunk of x stay in the L2 if the task is cut so. One
// row: four panels at once, straight from memory.
#if defined(HEED_KERNELS_PROJECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_PROJECT_INL_H_
#undef HEED_KERNELS_PROJECT_INL_H_
#else
#define HEED_KERNELS_PROJECT_INL_H_
#endif

#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/convert-inl.h"
#include "kernels/project-tile-inl.h"
#include "kernels/token_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE size_t PanelColumns() {
  return kPanelVectors * hn::Lanes(hn::ScalableTag<float>());
}

// How far ahead of the loads each of the streams of one row is touched, in
// bytes: 4 streams of 16 lines.
constexpr size_t kStreamAhead = 16 * 64;

// The same of a few rows, which read the panels as one stream. (The whole of
// the next panel, 256 lines, was 2 to 7 % slower with 2 to 6 rows.)
constexpr size_t kTileAhead = 32 * 64;

template <class D, class T, class V = hn::Vec<D>>
HWY_INLINE void TakePanel(D d, const T* w, V x, V& s0, V& s1, V& s2) {
  const size_t lanes = hn::Lanes(d);
  s0 = hn::MulAdd(x, LoadAs(d, w), s0);
  s1 = hn::MulAdd(x, LoadAs(d, w + lanes), s1);
  if constexpr (kPanelVectors > 2) {
    s2 = hn::MulAdd(x, LoadAs(d, w + 2 * lanes), s2);
  }
}

// One row by four panels that follow each other: one panel's two or three
// chains are too few, its loads would wait for the additions.
template <class T>
HWY_NOINLINE void RunFourPanels(const ProjectTile<T>& tile) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t columns = PanelColumns();
  const size_t panel = tile.inputs * columns;
  const float* HWY_RESTRICT x = tile.x;
  const T* HWY_RESTRICT w0 = tile.w;
  const T* HWY_RESTRICT w1 = w0 + panel;
  const T* HWY_RESTRICT w2 = w1 + panel;
  const T* HWY_RESTRICT w3 = w2 + panel;
  V s00 = hn::Zero(d), s01 = s00, s02 = s00, s10 = s00, s11 = s00, s12 = s00;
  V s20 = s00, s21 = s00, s22 = s00, s30 = s00, s31 = s00, s32 = s00;
  // Beyond the end of a stream comes, four panels on, its next one.
  const size_t ahead_inputs = kStreamAhead / (columns * sizeof(T));
  const size_t turn =
      tile.inputs > ahead_inputs ? tile.inputs - ahead_inputs : 0;
  size_t ahead = kStreamAhead;
  for (size_t i = 0; i < tile.inputs; ++i) {
    if (i == turn) ahead += 3 * panel * sizeof(T);
    const V v = hn::Set(d, x[i]);
    hwy::Prefetch(reinterpret_cast<const char*>(w0) + ahead);
    TakePanel(d, w0, v, s00, s01, s02);
    hwy::Prefetch(reinterpret_cast<const char*>(w1) + ahead);
    TakePanel(d, w1, v, s10, s11, s12);
    hwy::Prefetch(reinterpret_cast<const char*>(w2) + ahead);
    TakePanel(d, w2, v, s20, s21, s22);
    hwy::Prefetch(reinterpret_cast<const char*>(w3) + ahead);
    TakePanel(d, w3, v, s30, s31, s32);
    w0 += columns;
    w1 += columns;
    w2 += columns;
    w3 += columns;
  }
  AddRow(d, tile.base, s00, s01, s02, tile.y);
  AddRow(d, tile.base + columns, s10, s11, s12, tile.y + columns);
  AddRow(d, tile.base + 2 * columns, s20, s21, s22, tile.y + 2 * columns);
  AddRow(d, tile.base + 3 * columns, s30, s31, s32, tile.y + 3 * columns);
}

// Of one chunk: inputs [begin, begin + tile.inputs) of the task, panel by
// panel. `tile` has what is the same for all; `after` is what is read next.
template <class T>
HWY_INLINE void ProjectChunk(const ProjectTask& task, size_t begin,
                             const T* chunk, const T* after,
                             ProjectTile<T> tile) {
  const size_t columns = PanelColumns();
  const size_t panel = tile.inputs * columns;
  const size_t groups = (task.rows + kTileRows - 1) / kTileRows;
  const bool first = begin == 0;
  // A panel is widened once if more than one group of rows meets it.
  const bool widens = !std::is_same<T, float>() && groups > 1;
  // The next panel is touched evenly while many rows meet this one.
  const size_t ahead = panel * sizeof(T) / groups;
  tile.ahead_step = (ahead + tile.inputs - 1) / tile.inputs;
  size_t p = task.panel_begin;
  while (p < task.panel_end) {
    const T* w = chunk + p * panel;
    float* y = task.y + (p - task.panel_begin) * columns;
    const float* bias = task.bias + p * columns;
    tile.w = w;
    if (task.rows == 1 && p + 4 <= task.panel_end) {
      tile.x = task.x + begin;
      tile.y = y;
      tile.base = first ? bias : y;
      RunFourPanels(tile);
      p += 4;
      continue;
    }
    ProjectTile<float> wide{};
    if (widens) {
      Widen(w, panel, task.scratch);
      wide.x_stride = tile.x_stride;
      wide.w = task.scratch;
      wide.inputs = tile.inputs;
      wide.y_stride = tile.y_stride;
      wide.ahead_step = tile.ahead_step;
    }
    const T* next = p + 1 < task.panel_end ? w + panel : after;
    for (size_t group = 0; group < groups; ++group) {
      const size_t row = group * kTileRows;
      const size_t rows =
          row + kTileRows <= task.rows ? kTileRows : task.rows - row;
      const float* x = task.x + row * task.x_stride + begin;
      float* to = y + row * task.y_stride;
      const float* base = first ? bias : to;
      const size_t base_stride = first ? 0 : task.y_stride;
      const char* touched = reinterpret_cast<const char*>(next) + group * ahead;
      if (widens) {
        wide.x = x;
        wide.base = base;
        wide.base_stride = base_stride;
        wide.y = to;
        wide.ahead = touched;
        RunTileOf(rows, wide);
      } else {
        tile.x = x;
        tile.base = base;
        tile.base_stride = base_stride;
        tile.y = to;
        tile.ahead = touched;
        RunTileOf(rows, tile);
      }
    }
    ++p;
  }
}

template <class T>
void Project(const ProjectTask& task) {
  const size_t row = task.panels * PanelColumns();  // elements of w per input
  ProjectTile<T> tile{};
  tile.x_stride = task.x_stride;
  tile.y_stride = task.y_stride;
  const T* chunk = static_cast<const T*>(task.w);
  for (size_t begin = 0; begin < task.inputs; begin += tile.inputs) {
    const size_t left = task.inputs - begin;
    tile.inputs = left < kInputChunk ? left : kInputChunk;
    const T* following = chunk + tile.inputs * row;
    // The first panel of the next chunk, which may be a shorter one; of the
    // last chunk nothing that would be of use.
    const size_t rest = left - tile.inputs;
    const size_t next_inputs = rest < kInputChunk ? rest : kInputChunk;
    const T* after =
        following + task.panel_begin * next_inputs * PanelColumns();
    ProjectChunk(task, begin, chunk, rest != 0 ? after : chunk, tile);
    chunk = following;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
