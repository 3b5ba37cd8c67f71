#include "runtime/shape_class.h"

#include <algorithm>

#include "runtime/config.h"
#include "runtime/fnv.h"
#include "runtime/problem.h"

namespace heed {
namespace {

constexpr int64_t kPieceRows = 64;
const char* const kPiecesNames[] = {"few", "some", "many"};

// All that makes two classes the same, in few words: comparing and hashing them
// is most of what a look-up costs.
struct Words {
  static constexpr size_t kCount = 10;
  uint64_t at[kCount];
};

Words WordsOf(const ShapeClass& c) {
  // Enumerations of fewer than sixteen values, and flags.
  const auto kinds = static_cast<uint64_t>(c.dtype & 15) |
                     static_cast<uint64_t>(c.causal & 15) << 4 |
                     static_cast<uint64_t>(c.mask & 15) << 8 |
                     static_cast<uint64_t>(c.pieces & 15) << 12 |
                     static_cast<uint64_t>(c.decode) << 16 |
                     static_cast<uint64_t>(c.softcap) << 17 |
                     static_cast<uint64_t>(c.alibi) << 18 |
                     static_cast<uint64_t>(c.sinks) << 19 |
                     static_cast<uint64_t>(c.ragged) << 20 |
                     static_cast<uint64_t>(static_cast<uint32_t>(c.threads))
                         << 32;
  const auto word = [](int64_t value) { return static_cast<uint64_t>(value); };
  return {{kinds, word(c.dim_qk), word(c.dim_v), word(c.group), word(c.len_q),
           word(c.len_k), word(c.window), word(c.mask_block_q),
           word(c.mask_block_k), word(c.page_size)}};
}

// Products of sizes that stick at 2^62: a bucket is all they are for.
int64_t Times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product)
             ? int64_t{1} << 62
             : std::min(product, int64_t{1} << 62);
}

int64_t Plus(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int32_t CausalKind(const heed_problem& problem) {
  const bool same_corner = problem.len_q == problem.len_k &&
                           problem.ragged == 0 &&
                           problem.causal == HEED_CAUSAL_BOTTOM_RIGHT;
  return same_corner ? static_cast<int32_t>(HEED_CAUSAL_TOP_LEFT)
                     : problem.causal;
}

int64_t WindowBucket(const heed_problem& problem) {
  if (problem.window == 0) return 0;
  const auto side = [&problem](int64_t keys) {
    return keys < 0 ? problem.len_k : keys;
  };
  // Behind a causal line nothing lies to the right.
  const int64_t right =
      problem.causal == HEED_CAUSAL_NONE ? side(problem.window_right) : 0;
  return BucketOf(Plus(Plus(side(problem.window_left), right), 1), 64);
}

int32_t PiecesBucket(const heed_problem& problem, int64_t rows, int threads) {
  const int64_t per_head = rows / kPieceRows + (rows % kPieceRows != 0);
  const int64_t pieces =
      Times(Times(problem.batch, problem.heads_kv), per_head);
  if (pieces < threads) return 0;
  return pieces <= 4 * static_cast<int64_t>(threads) ? 1 : 2;
}

}  // namespace

int64_t BucketOf(int64_t value, int64_t lowest) {
  if (value <= lowest) return lowest;
  if (value >= kMaxClassSize) return kMaxClassSize;
  // The first power of two that is not below it; `lowest` is one itself.
  return int64_t{1} << (64 - __builtin_clzll(static_cast<uint64_t>(value - 1)));
}

int64_t QueryBucket(int64_t len_q) {
  // 1, then 2-4, then 5-16: short queries differ by how full one vector of rows
  // is, which a factor of four resolves well enough.
  return len_q <= 1    ? 1
         : len_q <= 4  ? 4
         : len_q <= 16 ? 16
                       : BucketOf(len_q, 32);
}

int64_t KeyBucket(int64_t len_k) { return BucketOf(len_k, 128); }

int64_t QueryBucketBegin(int64_t upper) {
  return upper <= 1 ? 1 : upper <= 16 ? upper / 4 + 1 : upper / 2 + 1;
}

int64_t KeyBucketBegin(int64_t upper) {
  return upper <= 128 ? 1 : upper / 2 + 1;
}

bool operator==(const ShapeClass& a, const ShapeClass& b) {
  const Words x = WordsOf(a), y = WordsOf(b);
  return std::equal(x.at, x.at + Words::kCount, y.at);
}

size_t ShapeClassHash::operator()(const ShapeClass& shape_class) const {
  // FNV-1a by words instead of bytes, in two chains: each multiplication would
  // wait for the one before it.
  const Words words = WordsOf(shape_class);
  uint64_t even = kFnvStart, odd = ~kFnvStart;
  for (size_t i = 0; i + 1 < Words::kCount; i += 2) {
    even = (even ^ words.at[i]) * kFnvPrime;
    odd = (odd ^ words.at[i + 1]) * kFnvPrime;
  }
  const uint64_t hash = (even ^ odd >> 29) * kFnvPrime ^ odd;
  return hash ^ hash >> 32;
}

ShapeClass ClassOf(const heed_problem& problem, int threads) {
  ShapeClass c;
  c.dtype = problem.dtype;
  c.dim_qk = problem.dim_qk;
  c.dim_v = problem.dim_v;
  c.group = Group(problem);
  c.len_q = QueryBucket(problem.len_q);
  c.len_k = KeyBucket(problem.len_k);
  const int64_t rows = Times(problem.len_q, c.group);
  c.decode = rows <= static_cast<int64_t>(kDecodeRows);
  c.causal = CausalKind(problem);
  c.window = WindowBucket(problem);
  c.mask = problem.mask;
  if (problem.mask == HEED_MASK_BOOL) {
    c.mask_block_q = BucketOf(problem.mask_block_q, 1);
    c.mask_block_k = BucketOf(problem.mask_block_k, 1);
  }
  c.softcap = problem.softcap > 0;
  c.alibi = problem.alibi != 0;
  c.sinks = problem.sinks != 0;
  c.ragged = problem.ragged != 0;
  c.page_size = problem.page_size;
  c.pieces = PiecesBucket(problem, rows, threads);
  c.threads = threads;
  return c;
}

std::string ToString(const ShapeClass& c) {
  const char* dtype = DtypeName(c.dtype);
  std::string text = c.decode ? "decode_" : "";
  text += std::string(dtype == nullptr ? "unknown" : dtype) + "_d" +
          std::to_string(c.dim_qk) + "_dv" + std::to_string(c.dim_v);
  const char* const causal[] = {"_full", "_causal", "_causalbr", "_causaloff"};
  if (c.causal >= 0 && c.causal < 4) text += causal[c.causal];
  if (c.window != 0) text += "_win" + std::to_string(c.window);
  const char* const mask[] = {"", "_maskbool", "_maskf32", "_maskown"};
  if (c.mask >= 0 && c.mask < 4) text += mask[c.mask];
  if (c.mask_block_q != 1 || c.mask_block_k != 1) {
    text +=
        std::to_string(c.mask_block_q) + "x" + std::to_string(c.mask_block_k);
  }
  if (c.softcap) text += "_cap";
  if (c.alibi) text += "_alibi";
  if (c.sinks) text += "_sinks";
  if (c.ragged) text += "_ragged";
  if (c.page_size != 0) text += "_page" + std::to_string(c.page_size);
  text += "_g" + std::to_string(c.group) + "_q" + std::to_string(c.len_q) +
          "_k" + std::to_string(c.len_k);
  if (c.pieces >= 0 && c.pieces < 3) {
    text += std::string("_") + kPiecesNames[c.pieces];
  }
  return text + "_t" + std::to_string(c.threads);
}

}  // namespace heed
