// A task's scratch and state: where its arrays lie, which keys its rows see.
//
// Arithmetic on sizes only. Included once per target.
#if defined(HEED_KERNELS_TASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_TASK_INL_H_
#undef HEED_KERNELS_TASK_INL_H_
#else
#define HEED_KERNELS_TASK_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/kernels.h"
#include "kernels/pack-inl.h"
#include "kernels/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Where the pieces of a task's scratch lie; offsets in floats, each a multiple
// of a cache line.
struct Layout {
  size_t panel;        // rows of one panel
  size_t rows_padded;  // the row block, up to whole panels
  size_t s_stride;     // elements between keys in s
  size_t o_stride;     // elements between rows in o: dim_v up to whole vectors
  size_t q, stage, s, o, o_total, k, v, rows, ranges;
  size_t floats;
};

HWY_INLINE size_t RoundUp(size_t x, size_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

// Arrays of one float a row, in this order; then the rows' visible ranges, two
// size_t a row.
enum RowArray {
  kTop,
  kM,
  kL,
  kTotalM,
  kTotalL,
  kFactor,
  kTotalFactor,
  kFirst,
  kLast,
  kRowArrays
};
constexpr size_t kRangeFloats = 2 * sizeof(size_t) / sizeof(float);

// The next `floats` of the scratch that ends at `end`.
HWY_INLINE size_t Place(size_t floats, size_t& end) {
  const size_t begin = end;
  end += RoundUp(floats, kLineFloats);
  return begin;
}

HWY_INLINE Layout MakeLayout(const Tile& tile, size_t dim_qk, size_t dim_v) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  Layout at;
  at.panel = kPanelVecs * lanes;
  at.rows_padded = RoundUp(tile.row_block, at.panel);
  // An odd number of cache lines: an even one lets a column of s fall into few
  // sets of the L1.
  at.s_stride =
      (RoundUp(at.rows_padded, kLineFloats) / kLineFloats | 1) * kLineFloats;
  at.o_stride = RoundUp(dim_v, lanes);
  size_t end = 0;
  at.q = Place(at.rows_padded * dim_qk, end);
  at.stage = Place(kPackRows * dim_qk, end);
  at.s = Place(tile.key_tile * at.s_stride, end);
  at.o = Place(at.rows_padded * at.o_stride, end);
  at.o_total = Place(at.rows_padded * at.o_stride, end);
  at.k = Place(tile.pack_k == Pack::kTile ? tile.key_tile * dim_qk : 0, end);
  at.v =
      Place(tile.pack_v == Pack::kTile ? tile.key_tile * at.o_stride : 0, end);
  at.rows = Place(kRowArrays * at.s_stride, end);
  at.ranges = Place(kRangeFloats * at.rows_padded, end);
  at.floats = end;
  return at;
}

// Keys [begin, end) that a row sees.
struct Range {
  size_t begin, end;
};

// A task at work: the block, its scratch, and what is true between steps.
struct Task {
  const Block& b;
  Layout at;
  float* scratch;
  size_t rows;          // of the block
  size_t rows_padded;   // rows up to whole panels
  size_t o_vecs;        // vectors of a row of o
  const Range* ranges;  // [rows_padded]; neither end falls from row to row
  float* o = nullptr;   // the state that this chunk blends into
  float* m = nullptr;
  float* l = nullptr;
  const float* packed_v = nullptr;  // the tile's copy of v (PackV) or in place
  size_t v_room = 0;      // keys that each column tile of the copy has room for
  size_t tile_begin = 0;  // first key of the tile: s holds scores from here
  size_t pending = 0;     // keys from here on are weighed but not blended yet
  bool o_fresh = true;    // o holds nothing of this chunk yet

  HWY_INLINE float* Row(RowArray array) const {
    return scratch + at.rows + array * at.s_stride;
  }
  HWY_INLINE float* Scores(size_t key) const {
    return scratch + at.s + (key - tile_begin) * at.s_stride;
  }
};

HWY_INLINE size_t ClampKey(int64_t key, size_t len_k) {
  return key < 0 ? 0 : HWY_MIN(static_cast<size_t>(key), len_k);
}

// Writes what each row sees, once a task: divisions have no place in the loops.
// Padding rows see what the last row sees.
HWY_INLINE void FillRanges(const Block& b, size_t rows_padded, Range* ranges) {
  int64_t token = static_cast<int64_t>(b.row_begin / b.group);
  size_t head = b.row_begin % b.group;
  for (size_t r = 0; r < b.rows; ++r) {
    ranges[r].begin =
        b.first_key == kNoBound ? 0 : ClampKey(token + b.first_key, b.len_k);
    ranges[r].end =
        b.end_key == kNoBound ? b.len_k : ClampKey(token + b.end_key, b.len_k);
    if (++head == b.group) {
      head = 0;
      ++token;
    }
  }
  for (size_t r = b.rows; r < rows_padded; ++r) ranges[r] = ranges[b.rows - 1];
}

HWY_INLINE Task MakeTask(const Block& b) {
  const hn::ScalableTag<float> d;
  const Layout at = MakeLayout(b.tile, b.dim_qk, b.dim_v);
  float* scratch = static_cast<float*>(b.scratch);
  Range* ranges = reinterpret_cast<Range*>(scratch + at.ranges);
  const size_t rows_padded = RoundUp(b.rows, at.panel);
  FillRanges(b, rows_padded, ranges);
  return Task{
      b, at, scratch, b.rows, rows_padded, at.o_stride / hn::Lanes(d), ranges};
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
