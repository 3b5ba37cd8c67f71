// Classes of shapes that share a tuned configuration. The one function that
// names them serves the library's look-up, the tuner and the benchmarks.
#ifndef HEED_RUNTIME_SHAPE_CLASS_H_
#define HEED_RUNTIME_SHAPE_CLASS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/include/heed.h"

namespace heed {

constexpr int64_t kMaxClassSize = int64_t{1} << 40;

// Lengths and whatever else may be any number fall into buckets, named by their
// upper end, a power of two; all else counts exactly. What is not in here
// (scale, the soft cap's value, where a window without a causal line stands)
// changes no kernel's speed.
struct ShapeClass {
  int32_t dtype = 0;
  int64_t dim_qk = 0, dim_v = 0;
  int64_t group = 1;
  int64_t len_q = 0;    // 1, 4, 16, 32, 64, ...: at most 2^40
  int64_t len_k = 0;    // 128, 256, ...
  bool decode = false;  // at most kDecodeRows query rows per kv head
  int32_t causal = 0;   // heed_causal; HEED_CAUSAL_TOP_LEFT also where both
                        // corners are the same
  int64_t window = 0;   // keys a row may see: 64, 128, ...; 0 = no window
  int32_t mask = 0;     // heed_mask
  int64_t mask_block_q = 1, mask_block_k = 1;  // 1, 2, 4, ...
  bool softcap = false, alibi = false, sinks = false, ragged = false;
  int64_t page_size = 0;
  // Pieces of 64 query rows per thread: 0 = less than one, 1 = up to four,
  // 2 = more. Says whether threads or caches decide.
  int32_t pieces = 2;
  int32_t threads = 1;

  friend bool operator==(const ShapeClass& a, const ShapeClass& b);
  friend bool operator!=(const ShapeClass& a, const ShapeClass& b) {
    return !(a == b);
  }
};

// Presumes a valid problem.
ShapeClass ClassOf(const heed_problem& problem, int threads);

// e.g. "f32_d64_dv64_causal_g1_q1024_k1024_many_t2"
std::string ToString(const ShapeClass& shape_class);

struct ShapeClassHash {
  size_t operator()(const ShapeClass& shape_class) const;
};

// The upper end of the bucket that holds `value`: the first of `lowest`, twice
// that, ... which is not below it.
int64_t BucketOf(int64_t value, int64_t lowest);
int64_t QueryBucket(int64_t len_q);
int64_t KeyBucket(int64_t len_k);

// The bucket's smallest length, given its upper end.
int64_t QueryBucketBegin(int64_t upper);
int64_t KeyBucketBegin(int64_t upper);

}  // namespace heed

#endif  // HEED_RUNTIME_SHAPE_CLASS_H_
