// heed_kv_append(): every cache layout and pair of storage types.
#include <gtest/gtest.h>

#include <cmath>
#include <heed.hpp>
#include <vector>

#include "tests/append_case.h"

namespace heed::test {
namespace {

constexpr int64_t kHeads = AppendCase::kHeads, kDimQk = AppendCase::kDimQk,
                  kDimV = AppendCase::kDimV;

int64_t Offset(const heed_input& x, int64_t b, int64_t h, int64_t t) {
  return b * x.stride_batch + h * x.stride_head + t * x.stride_token;
}
int64_t Offset(const heed_output& x, int64_t b, int64_t h, int64_t t) {
  return b * x.stride_batch + h * x.stride_head + t * x.stride_token;
}

// What the cache should be, element by element.
void ExpectAppended(AppendCase* c) {
  const heed_append& a = c->append;
  const auto append_one = [&a](const Buffer& from, const heed_input& new_tokens,
                               const heed_output& cache, int64_t dim,
                               Buffer* to) {
    for (int64_t b = 0; b < a.batch; ++b) {
      const int64_t first =
          a.cu_seqlens_new != nullptr ? a.cu_seqlens_new[b] : 0;
      const int64_t count = a.cu_seqlens_new != nullptr
                                ? a.cu_seqlens_new[b + 1] - first
                                : a.len_new;
      const int64_t position =
          a.positions != nullptr ? a.positions[b] : a.positions_i32[b];
      for (int64_t t = 0; t < count; ++t) {
        const int64_t key = position + t;
        for (int64_t h = 0; h < a.heads_kv; ++h) {
          int64_t slot = Offset(cache, b, h, key);
          if (a.page_size > 0) {
            const int32_t page =
                a.block_table
                    .data[b * a.block_table.stride_batch + key / a.page_size];
            slot = Offset(cache, page, h, key % a.page_size);
          } else if (a.cu_seqlens_cache != nullptr) {
            slot = Offset(cache, 0, h, a.cu_seqlens_cache[b] + key);
          }
          const int64_t source = a.cu_seqlens_new != nullptr
                                     ? Offset(new_tokens, 0, h, first + t)
                                     : Offset(new_tokens, b, h, t);
          for (int64_t i = 0; i < dim; ++i) {
            to->Set(slot + i, from.At(source + i));
          }
        }
      }
    }
  };
  Buffer k_want = c->k_cache, v_want = c->v_cache;
  append_one(c->k_new, a.k_new, a.k_cache, a.dim_qk, &k_want);
  append_one(c->v_new, a.v_new, a.v_cache, a.dim_v, &v_want);
  ASSERT_EQ(heed_kv_append(&a), HEED_OK) << heed_last_error();
  EXPECT_EQ(c->k_cache.bytes, k_want.bytes);
  EXPECT_EQ(c->v_cache.bytes, v_want.bytes);
}

TEST(KvAppend, WritesAContiguousCacheOfEveryPairOfTypes) {
  for (const int32_t from : kDtypes) {
    for (const int32_t to : kDtypes) {
      AppendCase c = MakeAppend(3, 3, 4, 3, 9, from, to);
      const std::vector<int64_t> positions = {0, 5, 2};
      c.append.positions = positions.data();
      ExpectAppended(&c);
    }
  }
}

TEST(KvAppend, WritesPackedCachesFromPackedTokens) {
  AppendCase c = MakeAppend(4, 1, 10, 1, 40, HEED_F32, HEED_F16);
  const std::vector<int32_t> positions = {3, 0, 12, 0};
  const std::vector<int32_t> new_ends = {0, 1, 1, 7, 10};
  const std::vector<int32_t> cache_ends = {0, 4, 4, 25, 40};
  c.append.positions_i32 = positions.data();
  c.append.cu_seqlens_new = new_ends.data();
  c.append.cu_seqlens_cache = cache_ends.data();
  ExpectAppended(&c);
}

TEST(KvAppend, WritesPagesInAnyOrder) {
  for (const int64_t page_size : {1, 7, 16}) {
    AppendCase c = MakeAppend(3, 3, 9, 40, page_size, HEED_F32, HEED_BF16);
    const int64_t max_pages = 20;
    std::vector<int32_t> table(static_cast<size_t>(3 * max_pages), -1);
    const std::vector<int64_t> positions = {0, 11, 6};
    int32_t page = 39;
    for (int64_t b = 0; b < 3; ++b) {
      // Only the pages that are written to are named.
      for (int64_t entry = positions[b] / page_size;
           entry <= (positions[b] + 8) / page_size; ++entry) {
        table[b * max_pages + entry] = page--;
      }
    }
    c.append.positions = positions.data();
    c.append.page_size = page_size;
    c.append.block_table = {table.data(), max_pages, max_pages, 40};
    ExpectAppended(&c);
  }
}

// More pages than are checked without allocating.
TEST(KvAppend, WritesManyPages) {
  AppendCase c = MakeAppend(2, 2, 300, 700, 1, HEED_F32, HEED_F32);
  std::vector<int32_t> table(600);
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<int32_t>(i * 7 % 600);
  }
  const std::vector<int64_t> positions = {0, 0};
  c.append.positions = positions.data();
  c.append.page_size = 1;
  c.append.block_table = {table.data(), 300, 300, 700};
  ExpectAppended(&c);
  table[599] = table[0];
  EXPECT_EQ(heed_kv_append(&c.append), HEED_INVALID_ARGUMENT);
}

TEST(KvAppend, WritesCachesWhoseTokensOfKAndVStandSideBySide) {
  AppendCase c = MakeAppend(1, 1, 2, 1, 1, HEED_F32, HEED_F32);
  std::vector<float> cache(10 * kHeads * (kDimQk + kDimV), 7.0f);
  const int64_t token = kHeads * (kDimQk + kDimV);
  c.append.len_cache = 10;
  c.append.k_cache = {cache.data(), 0, kDimQk + kDimV, token, 1};
  c.append.v_cache = {cache.data() + kDimQk, 0, kDimQk + kDimV, token, 1};
  const int64_t position = 6;
  c.append.positions = &position;
  ASSERT_EQ(heed_kv_append(&c.append), HEED_OK) << heed_last_error();
  for (int64_t key = 0; key < 10; ++key) {
    for (int64_t h = 0; h < kHeads; ++h) {
      const float* row = cache.data() + key * token + h * (kDimQk + kDimV);
      const bool is_new = key == 6 || key == 7;
      for (int64_t i = 0; i < kDimQk; ++i) {
        EXPECT_EQ(row[i],
                  is_new ? c.k_new.At((h * 2 + key - 6) * kDimQk + i) : 7.0f);
      }
      for (int64_t i = 0; i < kDimV; ++i) {
        EXPECT_EQ(row[kDimQk + i],
                  is_new ? c.v_new.At((h * 2 + key - 6) * kDimV + i) : 7.0f);
      }
    }
  }
}

// One new token whose head is as wide as there are values.
void ExpectConversions(const std::vector<float>& values, int32_t from,
                       int32_t to) {
  const auto dim = static_cast<int64_t>(values.size());
  Buffer source(from, values.size(), 0), cache(to, values.size(), 0);
  for (int64_t i = 0; i < dim; ++i) source.Set(i, values[i]);
  Append append;
  append.heads_kv = append.len_new = append.len_cache = 1;
  append.dim_qk = dim;
  append.dtype_new = from;
  append.dtype_cache = to;
  append.k_new = heed_dense_input(source.bytes.data(), 1, 1, dim);
  append.k_cache = heed_dense_output(cache.bytes.data(), 1, 1, dim);
  const int64_t position = 0;
  append.positions = &position;
  KvAppend(append);
  Buffer want(to, values.size(), 0);
  for (int64_t i = 0; i < dim; ++i) {
    want.Set(i, source.At(i));
    const float x = cache.At(i), y = want.At(i);
    if (std::isnan(y)) {
      EXPECT_TRUE(std::isnan(x)) << values[i];
    } else {
      EXPECT_EQ(x, y) << values[i];
      EXPECT_EQ(std::signbit(x), std::signbit(y)) << values[i];
    }
  }
}

TEST(KvAppend, RoundsToNearestEven) {
  std::vector<float> values = {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF,
                               std::nanf("7")};
  for (int exponent = -149; exponent < 128; ++exponent) {
    const float power = std::ldexp(1.0f, exponent);
    for (int i = 0; i < 40; ++i) {
      // Around ties of both types.
      const float x = power * (1 + static_cast<float>(i) / 16384 * 9);
      const float y = power * (1 + static_cast<float>(2 * i + 1) / 2048);
      const float z = power * (1 + static_cast<float>(2 * i + 1) / 256);
      for (const float v : {x, y, z}) {
        values.push_back(v);
        values.push_back(-std::nextafterf(v, 0.0f));
        values.push_back(std::nextafterf(v, HUGE_VALF));
      }
    }
  }
  for (const int32_t from : kDtypes) {
    for (const int32_t to : kDtypes) ExpectConversions(values, from, to);
  }
}

TEST(KvAppend, WidensEveryF16AndBf16) {
  for (const int32_t from : {HEED_F16, HEED_BF16}) {
    std::vector<float> values;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      values.push_back(WidenBits(static_cast<uint16_t>(bits), from));
    }
    for (const int32_t to : kDtypes) ExpectConversions(values, from, to);
  }
}

TEST(KvAppend, OfNothingIsASuccess) {
  heed_append append;
  heed_append_init(&append);
  append.dtype_new = append.dtype_cache = HEED_F32;
  const int64_t position = -1;
  append.positions = &position;
  EXPECT_EQ(heed_kv_append(&append), HEED_OK) << heed_last_error();
  append.batch = 1;
  append.heads_kv = append.dim_qk = append.dim_v = 4;
  EXPECT_EQ(heed_kv_append(&append), HEED_OK) << heed_last_error();
}

}  // namespace
}  // namespace heed::test
