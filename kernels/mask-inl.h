// Masks, read where they lie: what a mask says of a step's keys for a panel of
// rows, and its values transposed for the softmax. Included once per target.
#if defined(HEED_KERNELS_MASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_MASK_INL_H_
#undef HEED_KERNELS_MASK_INL_H_
#else
#define HEED_KERNELS_MASK_INL_H_
#endif

#include <cmath>
#include <cstring>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/pack-inl.h"
#include "kernels/task-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What a mask does to some keys.
enum class MaskView {
  kPlain,   // every key is visible and nothing is added
  kHidden,  // none is visible
  kMixed
};

HWY_INLINE MaskView ViewOf(bool plain, bool hidden) {
  if (plain) return MaskView::kPlain;
  return hidden ? MaskView::kHidden : MaskView::kMixed;
}

// One row of a mask over `keys` keys, at least one.
template <class T>
HWY_NOINLINE MaskView ViewRow(const T* mask, size_t keys) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const size_t lanes = hn::Lanes(d);
  bool plain = true, hidden = true;
  size_t key = 0;
  for (; key + lanes <= keys; key += lanes) {
    const auto x = LoadAs(d, mask + key);
    plain &= hn::AllTrue(d, hn::Eq(x, hn::Zero(d)));
    hidden &= hn::AllTrue(d, hn::Eq(x, hn::Set(d, -HUGE_VALF)));
  }
  for (; key < keys; ++key) {
    const float x = hn::GetLane(LoadAs(d1, mask + key));
    plain &= x == 0.0f;
    hidden &= x == -HUGE_VALF;
  }
  return ViewOf(plain, hidden);
}

// A row's mask as floats, -inf where a key is hidden: in place, or at `stage`
// [keys].
HWY_INLINE const float* MaskAsFloats(const float* mask, size_t /*keys*/,
                                     float* /*stage*/) {
  return mask;
}
HWY_INLINE const float* MaskAsFloats(const uint8_t* mask, size_t keys,
                                     float* stage) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d);
  size_t key = 0;
  for (; key + lanes <= keys; key += lanes) {
    const auto x = hn::PromoteTo(di, hn::LoadU(d8, mask + key));
    const auto hidden = hn::RebindMask(d, hn::Eq(x, hn::Zero(di)));
    hn::StoreU(hn::IfThenElseZero(hidden, hn::Set(d, -HUGE_VALF)), d,
               stage + key);
  }
  for (; key < keys; ++key) stage[key] = mask[key] != 0 ? 0.0f : -HUGE_VALF;
  return stage;
}
template <class T>
HWY_INLINE const float* MaskAsFloats(const T* mask, size_t keys, float* stage) {
  Widen(mask, keys, stage);
  return stage;
}

HWY_INLINE bool IsVisible(uint8_t mask) { return mask != 0; }
HWY_INLINE bool IsVisible(float mask) { return mask != -HUGE_VALF; }
HWY_INLINE bool IsVisible(F16 mask) { return mask.bits != 0xFC00; }
HWY_INLINE bool IsVisible(BF16 mask) { return mask.bits != 0xFF80; }

// A row of a boolean mask whose elements stand for blocks of keys.
struct BlockRow {
  const uint8_t* mask;
  size_t block_key;

  HWY_INLINE uint8_t operator[](size_t key) const {
    return mask[key / block_key];
  }
};

HWY_INLINE MaskView ViewRow(const BlockRow& row, size_t step, size_t keys) {
  bool plain = true, hidden = true;
  const size_t last = (step + keys - 1) / row.block_key;
  for (size_t block = step / row.block_key; block <= last; ++block) {
    if (row.mask[block] == 0) {
      plain = false;
    } else {
      hidden = false;
    }
  }
  return ViewOf(plain, hidden);
}
template <class T>
HWY_INLINE MaskView ViewRow(const T* row, size_t step, size_t keys) {
  return ViewRow(row + step, keys);
}

HWY_INLINE const float* MaskAsFloats(const BlockRow& row, size_t step,
                                     size_t keys, float* stage) {
  for (size_t key = 0; key < keys; ++key) {
    stage[key] = row[step + key] != 0 ? 0.0f : -HUGE_VALF;
  }
  return stage;
}
template <class T>
HWY_INLINE const float* MaskAsFloats(const T* row, size_t step, size_t keys,
                                     float* stage) {
  return MaskAsFloats(row + step, keys, stage);
}

HWY_INLINE bool HasBlocks(const Bias& bias) {
  return bias.mask_block_token != 1 || bias.mask_block_key != 1;
}

// Calls f with a function that makes a row of the block's mask of its offset.
template <class F>
HWY_INLINE auto WithMask(const Bias& bias, const F& f) {
  const auto rows_of = [&](const auto* mask) HWY_ATTR {
    return f([mask](int64_t offset) HWY_ATTR { return mask + offset; });
  };
  switch (bias.mask) {
    case MaskType::kF32:
      return rows_of(static_cast<const float*>(bias.mask_data));
    case MaskType::kF16:
      return rows_of(static_cast<const F16*>(bias.mask_data));
    case MaskType::kBF16:
      return rows_of(static_cast<const BF16*>(bias.mask_data));
    default:
      break;
  }
  const uint8_t* mask = static_cast<const uint8_t*>(bias.mask_data);
  if (!HasBlocks(bias)) return rows_of(mask);
  return f([mask, &bias](int64_t offset) HWY_ATTR {
    return BlockRow{mask + offset, bias.mask_block_key};
  });
}

// Calls f(r) for the panel's rows at `row`, of those that share a row of the
// mask for the first only, until it returns false.
template <class F>
HWY_INLINE void ForMaskRows(const Task& t, size_t row, const F& f) {
  const size_t end = HWY_MIN(row + t.at.panel, t.rows);
  for (size_t r = row; r < end; ++r) {
    if (r != row && t.mask_rows[r] == t.mask_rows[r - 1]) continue;
    if (!f(r)) return;
  }
}

// How far ahead in a row a mask of bytes is touched: the next step's. (0, 64,
// 128, 256: 77.7, 80.0, 79.7, 79.2 % of the peak at D 64, T 4096.)
constexpr size_t kMaskAhead = 64;

// What a mask of bytes says of keys [step, step + keys), at least one, to the
// panel's rows at `row`. All rows at once: looked at one by one they took 10 %
// of a causal call, D 64, T 4096.
inline HWY_NOINLINE MaskView ViewBytes(const Task& t, size_t row, size_t step,
                                       size_t keys) {
  const hn::CappedTag<uint8_t, 16> d;
  const size_t lanes = hn::Lanes(d);
  const uint8_t* mask = static_cast<const uint8_t*>(t.b.bias.mask_data) + step;
  auto least = hn::Set(d, 255), largest = hn::Zero(d);
  uint8_t rest_least = 255, rest_largest = 0;
  ForMaskRows(t, row, [&](size_t r) HWY_ATTR {
    const uint8_t* of_row = mask + t.mask_rows[r];
    // Rows lie far apart, so each is a stream of its own.
    hwy::Prefetch(of_row + kMaskAhead);
    size_t key = 0;
    for (; key + lanes <= keys; key += lanes) {
      const auto x = hn::LoadU(d, of_row + key);
      least = hn::Min(least, x);
      largest = hn::Max(largest, x);
    }
    for (; key < keys; ++key) {
      rest_least = HWY_MIN(rest_least, of_row[key]);
      rest_largest = HWY_MAX(rest_largest, of_row[key]);
    }
    return true;
  });
  return ViewOf(
      rest_least != 0 && hn::AllFalse(d, hn::Eq(least, hn::Zero(d))),
      rest_largest == 0 && hn::AllTrue(d, hn::Eq(largest, hn::Zero(d))));
}

// What the mask says of keys [step, step + keys) to the panel's rows at `row`.
HWY_INLINE MaskView ViewPanel(const Task& t, size_t row, size_t step,
                              size_t keys) {
  return WithMask(t.b.bias, [&](const auto& row_at) HWY_ATTR {
    if constexpr (std::is_same_v<decltype(row_at(0)), const uint8_t*>) {
      return ViewBytes(t, row, step, keys);
    } else {
      bool plain = true, hidden = true;
      ForMaskRows(t, row, [&](size_t r) HWY_ATTR {
        const MaskView view = ViewRow(row_at(t.mask_rows[r]), step, keys);
        plain &= view == MaskView::kPlain;
        hidden &= view == MaskView::kHidden;
        return plain || hidden;
      });
      return ViewOf(plain, hidden);
    }
  });
}

// The mask's values for keys [step, step + keys), transposed: out [keys,
// panel]. Padding rows get 0.
inline HWY_NOINLINE void FillMask(const Task& t, size_t row, size_t step,
                                  size_t keys, float* HWY_RESTRICT out) {
  WithMask(t.b.bias, [&](const auto& row_at) HWY_ATTR {
    float stage[kPackRows][kStep];
    static const float nothing[kStep] = {};
    const float* rows[kPackRows];
    for (size_t r = 0; r < t.at.panel; r += kPackRows) {
      for (size_t i = 0; i < kPackRows; ++i) {
        const size_t at = row + r + i;
        rows[i] = at < t.rows ? MaskAsFloats(row_at(t.mask_rows[at]), step,
                                             keys, stage[i])
                              : nothing;
      }
      PackRows(rows, keys, 1.0f, t.at.panel, out + r);
    }
  });
}

// The first key in [begin, end) whose visibility to the row is `visible`; end
// if there is none.
HWY_INLINE size_t FindKey(const Task& t, size_t row, size_t begin, size_t end,
                          bool visible) {
  return WithMask(t.b.bias, [&](const auto& row_at) HWY_ATTR {
    const auto of_row = row_at(t.mask_rows[row]);
    size_t key = begin;
    while (key < end && IsVisible(of_row[key]) != visible) ++key;
    return key;
  });
}

// Cuts keys [begin, end), a step at most, to the hull of those that blocks of
// the mask leave visible to some row.
HWY_INLINE void CutToBlocks(const Task& t, size_t* begin, size_t* end) {
  size_t first = *end, last = *begin;
  for (size_t n = 0; n < t.mask_row_count; ++n) {
    const BlockRow mask = {
        static_cast<const uint8_t*>(t.b.bias.mask_data) + t.mask_row_list[n],
        t.b.bias.mask_block_key};
    for (size_t key = *begin; key < *end;) {
      const size_t next =
          HWY_MIN((key / mask.block_key + 1) * mask.block_key, *end);
      if (mask[key] != 0) {
        first = HWY_MIN(first, key);
        last = HWY_MAX(last, next);
      }
      key = next;
    }
  }
  *begin = HWY_MIN(first, *end);
  *end = HWY_MAX(last, *begin);
}

// Notes which of the panel's rows see a key of [step, end).
HWY_INLINE void MarkSeen(const Task& t, size_t row, size_t step, size_t end,
                         MaskView view) {
  const size_t last = HWY_MIN(row + t.at.panel, t.rows);
  if (std::memchr(t.seen + row, 0, last - row) == nullptr) return;
  for (size_t r = row; r < last; ++r) {
    if (t.seen[r] != 0) continue;
    const Range seen = t.Sees(r);
    const size_t from = HWY_MAX(step, seen.begin);
    const size_t to = HWY_MIN(end, seen.end);
    if (from >= to) continue;
    t.seen[r] =
        view == MaskView::kPlain || FindKey(t, r, from, to, true) < to ? 1 : 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
