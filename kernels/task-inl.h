// A task's scratch and state: where its arrays lie, which keys its rows see,
// where its keys lie.
//
// Arithmetic on sizes only. Included once per target.
#if defined(HEED_KERNELS_TASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_TASK_INL_H_
#undef HEED_KERNELS_TASK_INL_H_
#else
#define HEED_KERNELS_TASK_INL_H_
#endif

#include <cfloat>
#include <cmath>

#include "hwy/highway.h"
#include "kernels/kernels.h"
#include "kernels/row_constants.h"
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
  // s is [strips of rows][s_keys][s_stride], see StripRows.
  size_t s_stride;    // rows of a strip: elements between keys
  size_t s_keys;      // keys that a strip has room for
  size_t s_second;    // elements from a panel's first vector to its second
  size_t o_stride;    // elements between rows in o: dim_v up to whole vectors
  size_t row_stride;  // elements between the arrays of one float a row
  size_t q, stage, s, o, o_total, k, v, rows, tokens, mask_rows, mask_row_list,
      seen, mask;
  size_t floats;
};

HWY_INLINE size_t RoundUp(size_t x, size_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

// Arrays of one float a row, in this order; then the rows' tokens, an int64_t a
// row.
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
  kSlope,
  kDistance,
  kRowArrays
};
constexpr size_t kTokenFloats = sizeof(int64_t) / sizeof(float);

// The next `floats` of the scratch that ends at `end`.
HWY_INLINE size_t Place(size_t floats, size_t& end) {
  const size_t begin = end;
  end += RoundUp(floats, kLineFloats);
  return begin;
}

// What one path keeps for its rows beside what both do.
struct PathSizes {
  size_t panel;     // rows of one panel
  size_t strip;     // rows of one strip of scores; panels are whole strips
  size_t q_floats;  // a row of q
  size_t stage_floats;
};

HWY_INLINE Layout MakeLayout(const Tile& tile, size_t dim_v,
                             const PathSizes& path, size_t dim_packed_k) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  Layout at;
  at.panel = path.panel;
  at.rows_padded = RoundUp(tile.row_block, at.panel);
  at.s_stride = path.strip;
  // Scores are made in whole groups of keys, from any key on. 16 and 2: whole
  // cache lines, an odd number of them for eight rows, so that two strips never
  // lie a multiple of 4 KB apart.
  at.s_keys =
      RoundUp(tile.key_tile + HWY_MAX(kKeyGroup, kVectorKeys) - 1, 16) + 2;
  at.s_second = path.strip > lanes ? lanes : at.s_keys * at.s_stride;
  at.o_stride = RoundUp(dim_v, lanes);
  at.row_stride = RoundUp(RoundUp(at.rows_padded, kLineFloats), lanes);
  size_t end = 0;
  at.q = Place(at.rows_padded * path.q_floats, end);
  at.stage = Place(path.stage_floats, end);
  at.s = Place(at.rows_padded * at.s_keys, end);
  at.o = Place(at.rows_padded * at.o_stride, end);
  at.o_total = Place(at.rows_padded * at.o_stride, end);
  at.k = Place(dim_packed_k * tile.key_tile, end);
  at.v =
      Place(tile.pack_v == Pack::kTile ? tile.key_tile * at.o_stride : 0, end);
  at.rows = Place(kRowArrays * at.row_stride, end);
  at.tokens = Place(kTokenFloats * at.rows_padded, end);
  at.mask_rows = Place(kTokenFloats * at.rows_padded, end);
  at.mask_row_list = Place(kTokenFloats * at.rows_padded, end);
  at.seen = Place(RoundUp(at.rows_padded, sizeof(float)) / sizeof(float), end);
  at.mask = Place(kStep * at.panel, end);
  at.floats = end;
  return at;
}

HWY_INLINE size_t ClampKey(int64_t key, size_t len_k) {
  return key < 0 ? 0 : HWY_MIN(static_cast<size_t>(key), len_k);
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
  size_t rows;         // of the block
  size_t rows_padded;  // rows up to whole panels
  size_t o_vecs;       // vectors of a row of o
  int64_t* tokens;     // [rows_padded], written if the group is not 1
  // With a mask: where its row for each of ours begins, and each such place
  // once.
  int64_t* mask_rows;      // [rows_padded]
  int64_t* mask_row_list;  // [mask_row_count]
  size_t mask_row_count;
  bool biased;         // soft cap, ALiBi or mask
  bool slopes_alone;   // no soft cap, and ALiBi leaves finite scores finite
  uint8_t* seen;       // [rows_padded] with a mask, else null: saw a key
  float* o = nullptr;  // the state that this chunk blends into
  float* m = nullptr;
  float* l = nullptr;
  const float* packed_v = nullptr;  // the tile's copy of v (PackV) or in place
  size_t v_room = 0;      // keys that each column tile of the copy has room for
  size_t tile_begin = 0;  // first key of the tile: s holds scores from here
  size_t pending = 0;     // keys from here on are weighed but not blended yet
  size_t end = 0;         // of the keys that any row sees
  size_t rows_packed = 0;     // rows of q that lie in panels
  PacedTouches touches = {};  // with tile.prefetch, while scores are made
  bool o_fresh = true;        // o holds nothing of this chunk yet
  bool hidden = false;  // the mask hides pending keys within the rows' ranges

  HWY_INLINE float* Row(RowArray array) const {
    return scratch + at.rows + array * at.row_stride;
  }
  // Scores of the strip that begins with `row`.
  HWY_INLINE float* Scores(size_t row, size_t key) const {
    return scratch + at.s + row * at.s_keys + (key - tile_begin) * at.s_stride;
  }
  // The token that a row is of; padding rows are of the last row's.
  HWY_INLINE int64_t Token(size_t row) const {
    if (b.group != 1) return tokens[row];
    return static_cast<int64_t>(b.row_begin + HWY_MIN(row, rows - 1));
  }
  // What a row sees. Neither end falls from row to row.
  HWY_INLINE Range Sees(size_t row) const {
    const int64_t token = Token(row);
    return {
        b.first_key == kNoBound ? 0 : ClampKey(token + b.first_key, b.len_k),
        b.end_key == kNoBound ? b.len_k : ClampKey(token + b.end_key, b.len_k)};
  }
};

// The rows of a block in order: row r is token r / group, head r % group within
// the group, walked without dividing.
struct RowWalk {
  size_t group;
  int64_t token = 0;
  size_t head = 0;

  HWY_INLINE RowWalk(const Block& b, size_t row) : group(b.group) {
    const size_t at = b.row_begin + row;
    token = static_cast<int64_t>(group == 1 ? at : at / group);
    if (group != 1) head = at % group;
  }
  HWY_INLINE void Next() {
    if (++head == group) {
      head = 0;
      ++token;
    }
  }
  HWY_INLINE int64_t Offset(int64_t stride_token, int64_t stride_head) const {
    return token * stride_token + static_cast<int64_t>(head) * stride_head;
  }
};

// Writes which token each row is, once a task: divisions have no place in the
// loops.
HWY_INLINE void FillTokens(const Block& b, size_t rows_padded,
                           int64_t* tokens) {
  RowWalk walk(b, 0);
  for (size_t r = 0; r < b.rows; ++r, walk.Next()) tokens[r] = walk.token;
  for (size_t r = b.rows; r < rows_padded; ++r) tokens[r] = tokens[b.rows - 1];
}

// The head within the group of a row of the block.
HWY_INLINE size_t HeadOf(const Task& t, size_t row) {
  return (t.b.row_begin + row) % t.b.group;
}

// Where the mask's rows begin, once a task as well. Padding rows repeat the
// last row's.
HWY_INLINE void FillMaskRows(Task& t) {
  const Bias& bias = t.b.bias;
  for (size_t r = 0; r < t.rows_padded; ++r) {
    if (r < t.rows) {
      const int64_t token =
          t.Token(r) / static_cast<int64_t>(bias.mask_block_token);
      t.mask_rows[r] =
          token * bias.mask_stride_token +
          static_cast<int64_t>(HeadOf(t, r)) * bias.mask_stride_head;
    } else {
      t.mask_rows[r] = t.mask_rows[t.rows - 1];
    }
    size_t known = 0;
    while (known < t.mask_row_count &&
           t.mask_row_list[known] != t.mask_rows[r]) {
      ++known;
    }
    if (known == t.mask_row_count) {
      t.mask_row_list[t.mask_row_count++] = t.mask_rows[r];
    }
    t.seen[r] = 0;
  }
}

HWY_INLINE Task MakeTask(const Block& b, const Layout& at) {
  const hn::ScalableTag<float> d;
  float* scratch = static_cast<float*>(b.scratch);
  int64_t* tokens = reinterpret_cast<int64_t*>(scratch + at.tokens);
  const size_t rows_padded = RoundUp(b.rows, at.panel);
  if (b.group != 1) FillTokens(b, rows_padded, tokens);
  const bool masked = b.bias.mask != MaskType::kNone;
  Task t{b,
         at,
         scratch,
         b.rows,
         rows_padded,
         at.o_stride / hn::Lanes(d),
         tokens,
         reinterpret_cast<int64_t*>(scratch + at.mask_rows),
         reinterpret_cast<int64_t*>(scratch + at.mask_row_list),
         0,
         masked || b.bias.softcap != 0.0f || b.bias.slopes != nullptr,
         false,
         masked ? reinterpret_cast<uint8_t*>(scratch + at.seen) : nullptr};
  if (masked) FillMaskRows(t);
  if (b.bias.slopes != nullptr) {
    const double reach = static_cast<double>(b.len_k + kStep) +
                         static_cast<double>(t.Token(rows_padded - 1)) +
                         std::fabs(static_cast<double>(b.bias.position));
    t.slopes_alone = b.bias.softcap == 0.0f;
    for (size_t r = 0; r < rows_padded; ++r) {
      const float slope =
          r < b.rows ? b.bias.slopes[HeadOf(t, r)] * kLog2E : 0.0f;
      // Finite, or 0 * infinity at distance 0 would be NaN.
      t.Row(kSlope)[r] = slope > FLT_MAX    ? FLT_MAX
                         : slope < -FLT_MAX ? -FLT_MAX
                                            : slope;
      // Less than half of the last place of the largest float, 2^103.
      t.slopes_alone &= std::fabs(slope) * reach < 0x1p100;
    }
  }
  return t;
}

// Keys from `key` on that lie one stride apart.
HWY_INLINE size_t RunOfKeys(const Block& b, size_t key) {
  if (b.pages.table == nullptr) return b.len_k - key;
  return b.pages.size - key % b.pages.size;
}

template <class T>
HWY_INLINE const T* KeyAt(const Block& b, size_t key) {
  const T* k = static_cast<const T*>(b.k);
  if (b.pages.table == nullptr) {
    return k + static_cast<int64_t>(key) * b.k_stride;
  }
  return k + b.pages.table[key / b.pages.size] * b.pages.k_stride +
         static_cast<int64_t>(key % b.pages.size) * b.k_stride;
}

template <class T>
HWY_INLINE const T* ValueAt(const Block& b, size_t key) {
  const T* v = static_cast<const T*>(b.v);
  if (b.pages.table == nullptr) {
    return v + static_cast<int64_t>(key) * b.v_stride;
  }
  return v + b.pages.table[key / b.pages.size] * b.pages.v_stride +
         static_cast<int64_t>(key % b.pages.size) * b.v_stride;
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
