// heed_kv_append() writes nothing unless everything is right, and says what was
// not.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/append_case.h"
#include "tests/refused_call.h"

namespace heed::test {
namespace {

using Change = std::function<void(heed_append*)>;

// Refused with a message of these parts; the cache is as it was.
void ExpectRefused(const AppendCase& good, const Change& change,
                   const std::vector<std::string>& parts) {
  AppendCase c = good;
  c.append.k_cache.data = c.k_cache.bytes.data();
  c.append.v_cache.data = c.v_cache.bytes.data();
  change(&c.append);
  EXPECT_EQ(heed_kv_append(&c.append), HEED_INVALID_ARGUMENT);
  ExpectMessage(parts);
  EXPECT_EQ(c.k_cache.bytes, good.k_cache.bytes);
  EXPECT_EQ(c.v_cache.bytes, good.v_cache.bytes);
}

TEST(KvAppendArguments, AreCheckedByName) {
  AppendCase c = MakeAppend(3, 3, 4, 3, 9, HEED_F32, HEED_F32);
  const std::vector<int64_t> positions = {0, 5, 2};
  c.append.positions = positions.data();
  EXPECT_EQ(heed_kv_append(nullptr), HEED_INVALID_ARGUMENT);
  heed_append_init(nullptr);
  ExpectRefused(c, [](heed_append* a) { a->struct_size = 8; },
                {"append.struct_size is 8", "expected"});
  const struct {
    const char* name;
    int64_t heed_append::*field;
  } sizes[] = {{"batch", &heed_append::batch},
               {"heads_kv", &heed_append::heads_kv},
               {"len_new", &heed_append::len_new},
               {"len_cache", &heed_append::len_cache},
               {"dim_qk", &heed_append::dim_qk},
               {"dim_v", &heed_append::dim_v},
               {"page_size", &heed_append::page_size}};
  for (const auto& size : sizes) {
    ExpectRefused(c, [&](heed_append* a) { a->*size.field = -3; },
                  {std::string("append.") + size.name + " is -3", "expected"});
  }
  ExpectRefused(c, [](heed_append* a) { a->dtype_new = 0; },
                {"append.dtype_new is 0", "expected"});
  ExpectRefused(c, [](heed_append* a) { a->dtype_cache = 4; },
                {"append.dtype_cache is 4", "expected"});
  ExpectRefused(c, [](heed_append* a) { a->positions = nullptr; },
                {"append.positions", "NULL", "expected one"});
  const int32_t more[3] = {0, 0, 0};
  ExpectRefused(c, [&](heed_append* a) { a->positions_i32 = more; },
                {"append.positions", "given", "expected one"});
  ExpectRefused(c, [](heed_append* a) { a->k_new.data = nullptr; },
                {"append.k_new.data is NULL", "expected"});
  ExpectRefused(c, [](heed_append* a) { a->v_cache.data = nullptr; },
                {"append.v_cache.data is NULL", "expected"});
  ExpectRefused(c, [](heed_append* a) { a->v_new.stride_dim = 2; },
                {"append.v_new.stride_dim is 2", "expected 1"});
  ExpectRefused(c, [](heed_append* a) { a->k_cache.stride_batch = 0; },
                {"append.k_cache.stride_batch is 0", "expected"});
  ExpectRefused(c, [](heed_append* a) { a->k_cache.stride_token = INT64_MAX; },
                {"append.k_cache", "expected"});
  ExpectRefused(c, [](heed_append* a) { a->batch = INT64_MAX; },
                {"append.batch", "expected"});
  ExpectRefused(c, [](heed_append* a) { a->v_cache = a->k_cache; },
                {"append.v_cache", "overlaps append.k_cache"});
  ExpectRefused(c,
                [](heed_append* a) {
                  a->k_cache.data = const_cast<void*>(a->k_new.data);
                },
                {"append.k_cache", "overlaps append.k_new"});
}

TEST(KvAppendArguments, PositionsBeyondTheRoomAreRefusedBySequence) {
  AppendCase c = MakeAppend(3, 3, 4, 3, 9, HEED_F32, HEED_F32);
  for (const int64_t bad : {int64_t{6}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    const std::vector<int64_t> positions = {5, 0, bad};
    ExpectRefused(c, [&](heed_append* a) { a->positions = positions.data(); },
                  {"append.positions of sequence 2 is " + std::to_string(bad),
                   "expected", "4 new tokens among 9"});
  }
  const std::vector<int32_t> positions = {5, 6, 0};
  ExpectRefused(c, [&](heed_append* a) { a->positions_i32 = positions.data(); },
                {"append.positions_i32 of sequence 1 is 6", "expected"});
  AppendCase packed = MakeAppend(2, 1, 4, 1, 20, HEED_F32, HEED_F32);
  const std::vector<int32_t> new_ends = {0, 1, 4}, cache_ends = {0, 10, 20},
                             starts = {9, 8};
  ExpectRefused(
      packed,
      [&](heed_append* a) {
        a->positions_i32 = starts.data();
        a->cu_seqlens_new = new_ends.data();
        a->cu_seqlens_cache = cache_ends.data();
      },
      {"append.positions_i32 of sequence 1 is 8", "3 new tokens among 10"});
  const std::vector<int32_t> falling = {0, 3, 2};
  ExpectRefused(packed,
                [&](heed_append* a) {
                  a->positions_i32 = starts.data();
                  a->cu_seqlens_new = falling.data();
                },
                {"append.cu_seqlens_new of sequence 1", "expected"});
}

// Three sequences of 4 new tokens in pages of 4.
AppendCase PagedAppend(std::vector<int32_t>* table) {
  AppendCase c = MakeAppend(3, 3, 4, 10, 4, HEED_F32, HEED_F32);
  static const int64_t positions[3] = {2, 4, 1};
  *table = {0, 1, -1, -1, 2, -1, 3, 4, -1};
  c.append.positions = positions;
  c.append.page_size = 4;
  c.append.block_table = {table->data(), 3, 3, 10};
  return c;
}

TEST(KvAppendArguments, PagesThatDoNotExistAreRefusedBySequenceAndEntry) {
  for (const int32_t bad : {-1, 10, INT32_MAX, INT32_MIN}) {
    std::vector<int32_t> table;
    const AppendCase c = PagedAppend(&table);
    table[7] = bad;
    ExpectRefused(c, [](heed_append*) {},
                  {"append.block_table of sequence 2: entry 1 is " +
                   std::to_string(bad) + "; expected 0 to 9"});
  }
  std::vector<int32_t> table;
  const AppendCase c = PagedAppend(&table);
  ExpectRefused(c, [](heed_append* a) { a->block_table.data = nullptr; },
                {"append.block_table.data is NULL"});
  ExpectRefused(c, [](heed_append* a) { a->block_table.max_pages = 1; },
                {"append.positions of sequence 0", "among 4"});
  ExpectRefused(c, [](heed_append* a) { a->block_table.num_pages = -1; },
                {"append.block_table.num_pages is -1"});
  const std::vector<int32_t> ends = {0, 4, 8, 12};
  ExpectRefused(c, [&](heed_append* a) { a->cu_seqlens_cache = ends.data(); },
                {"append.cu_seqlens_cache", "expected NULL with pages"});
}

TEST(KvAppendArguments, TwoTokensForOnePlaceAreRefused) {
  std::vector<int32_t> table;
  const AppendCase c = PagedAppend(&table);
  // Sequence 0 writes slots 2 and 3 of its first page, and 0 and 1 of its
  // second; sequence 2 slots 1 to 3, and 0.
  table[6] = 0;
  ExpectRefused(c, [](heed_append*) {},
                {"append.block_table of sequence 2: entry 0 is 0",
                 "entry 0 of sequence 0", "expected"});
  table[6] = 3;
  table[7] = 1;
  ExpectRefused(c, [](heed_append*) {},
                {"append.block_table of sequence 2: entry 1 is 1",
                 "entry 1 of sequence 0", "expected"});
  table[7] = 4;
  // One sequence, twice the same page: no slot twice, as it happens.
  table[1] = 0;
  AppendCase same = c;
  same.append.k_cache.data = same.k_cache.bytes.data();
  same.append.v_cache.data = same.v_cache.bytes.data();
  EXPECT_EQ(heed_kv_append(&same.append), HEED_OK) << heed_last_error();
  // In pages of 2 it writes both slots of a page that stands in its table
  // twice.
  table = {-1, 5, 5, 1, 2, -1, 3, 4, -1};
  const int64_t positions[3] = {2, 0, 0};
  ExpectRefused(c,
                [&](heed_append* a) {
                  a->positions = positions;
                  a->page_size = 2;
                },
                {"append.block_table of sequence 0: entry 2 is 5",
                 "entry 1 of sequence 0", "expected"});
}

}  // namespace
}  // namespace heed::test
