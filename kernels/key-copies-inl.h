// Copies of k and v in f32: of a tile, by the task that reads it, or of all
// keys, once a call, for every task. Included once per target.
#if defined(HEED_KERNELS_KEY_COPIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_KEY_COPIES_INL_H_
#undef HEED_KERNELS_KEY_COPIES_INL_H_
#else
#define HEED_KERNELS_KEY_COPIES_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/kernels.h"
#include "kernels/pack-inl.h"
#include "kernels/task-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Keys of the tile that begins at key_begin: tiles do not reach past their
// chunk, nor past the last key.
HWY_INLINE size_t TileKeys(const Block& b, size_t key_begin) {
  const size_t chunk_end = (key_begin / kChunk + 1) * kChunk;
  return HWY_MIN(b.tile.key_tile, HWY_MIN(chunk_end, b.len_k) - key_begin);
}

// Copies keys [key_begin, key_begin + keys) of v to keys from `first` on of
// column tiles of `room` keys.
template <class T>
HWY_INLINE void CopyV(const Block& b, size_t key_begin, size_t keys,
                      size_t first, size_t room, float* out) {
  for (size_t done = 0; done < keys;) {
    const size_t run = HWY_MIN(RunOfKeys(b, key_begin + done), keys - done);
    PackV(ValueAt<T>(b, key_begin + done), b.v_stride, first + done, run,
          b.dim_v, room, out);
    done += run;
  }
}

// Copies keys [key_begin, key_begin + keys) of k side by side.
template <class T>
HWY_INLINE void CopyK(const Block& b, size_t key_begin, size_t keys,
                      float* out) {
  for (size_t done = 0; done < keys;) {
    const size_t run = HWY_MIN(RunOfKeys(b, key_begin + done), keys - done);
    PackK(KeyAt<T>(b, key_begin + done), b.k_stride, run, b.dim_qk,
          out + done * b.dim_qk);
    done += run;
  }
}

size_t PackedKBytes(size_t len_k, size_t dim_qk) {
  return len_k * dim_qk * sizeof(float);
}

size_t PackedVBytes(size_t len_k, size_t dim_v) {
  const hn::ScalableTag<float> d;
  return len_k * RoundUp(dim_v, hn::Lanes(d)) * sizeof(float);
}

// v as its tiles follow each other, each packed by itself: a task then reads
// one run of memory a tile. (Columns as long as len_k put the eight column
// tiles of dim 128, T 8192 into the same sets of the L2: 80 % of the peak,
// not 86.)
template <class T>
void PackKeys(const Block& b, size_t key_begin, size_t key_end) {
  const hn::ScalableTag<float> d;
  if (b.packed_k != nullptr) {
    CopyK<T>(b, key_begin, key_end - key_begin,
             b.packed_k + key_begin * b.dim_qk);
  }
  if (b.packed_v == nullptr) return;
  const size_t o_stride = RoundUp(b.dim_v, hn::Lanes(d));
  while (key_begin < key_end) {
    const size_t room = TileKeys(b, key_begin);
    CopyV<T>(b, key_begin, HWY_MIN(room, key_end - key_begin), 0, room,
             b.packed_v + key_begin * o_stride);
    key_begin += room;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
