// A call of heed_kv_append() with its data, and the storage types by scalar
// code of the tests' own.
#ifndef HEED_TESTS_APPEND_CASE_H_
#define HEED_TESTS_APPEND_CASE_H_

#include <heed.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heed::test {

constexpr int32_t kDtypes[] = {HEED_F32, HEED_F16, HEED_BF16};

// What the 16 bits of an f16 or bf16 stand for.
float WidenBits(uint16_t bits, int32_t dtype);

// A buffer of elements of some type. Set() rounds to nearest even.
struct Buffer {
  Buffer(int32_t type, size_t count, char fill);
  float At(int64_t i) const;
  void Set(int64_t i, float x);

  int32_t dtype;
  std::vector<char> bytes;
};

// Heads of these widths, and where `append` points to.
struct AppendCase {
  static constexpr int64_t kHeads = 2, kDimQk = 5, kDimV = 3;
  heed_append append;
  Buffer k_new, v_new, k_cache, v_cache;
};

// Dense `new_batch` by `new_len` new tokens of N(0, 1), `cache_batch` by
// `cache_len` slots. Positions are left to the caller.
AppendCase MakeAppend(int64_t batch, int64_t new_batch, int64_t new_len,
                      int64_t cache_batch, int64_t cache_len, int32_t from,
                      int32_t to);

}  // namespace heed::test

#endif  // HEED_TESTS_APPEND_CASE_H_
