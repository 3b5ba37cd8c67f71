// A boolean mask whose elements stand for blocks of queries and keys gives the
// bits of the same mask written out, and does not look at what it hides.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/random_case.h"

namespace heed::test {
namespace {

struct Blocks {
  int32_t q, k;
};

// A case with blocks, and the same mask an element at a time.
struct Pair {
  Case blocks, elements;
};

bool IsVisible(const Case& c, int64_t batch, int64_t head, int64_t i,
               int64_t j) {
  const CaseMask& mask = c.mask;
  const auto place = [](int64_t index, int64_t extent) {
    return extent == 1 ? 0 : index;
  };
  const int64_t row =
      (place(batch, mask.batch) * mask.heads + place(head, mask.heads)) *
          mask.len_q +
      place(i, mask.len_q);
  return mask.bytes[static_cast<size_t>(row * mask.room + j)] != 0;
}

Pair MakePair(uint64_t seed, const heed_problem& problem, const Blocks& size) {
  std::mt19937_64 random(seed);
  Pair pair;
  Case& c = pair.blocks;
  c = MakeCase(problem);
  std::normal_distribution<float> normal;
  for (std::vector<float>* x : {&c.q, &c.k, &c.v}) {
    for (float& value : *x) value = normal(random);
  }
  c.problem.mask = HEED_MASK_BOOL;
  pair.elements = c;
  c.problem.mask_block_q = size.q;
  c.problem.mask_block_k = size.k;

  const int64_t rows = (problem.len_q + size.q - 1) / size.q;
  const int64_t columns = (problem.len_k + size.k - 1) / size.k;
  CaseMask& blocks = c.mask;
  blocks.batch = random() % 2 != 0 ? problem.batch : 1;
  blocks.heads = random() % 2 != 0 ? problem.heads_q : 1;
  blocks.len_q = rows;
  blocks.room = columns + static_cast<int64_t>(random() % 3);
  blocks.bytes.resize(
      static_cast<size_t>(blocks.batch * blocks.heads * rows * blocks.room));
  for (uint8_t& byte : blocks.bytes) {
    byte = random() % 4 == 0 ? static_cast<uint8_t>(random() % 255 + 1) : 0;
  }

  CaseMask& elements = pair.elements.mask;
  elements.batch = problem.batch;
  elements.heads = problem.heads_q;
  elements.len_q = problem.len_q;
  elements.room = problem.len_k;
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t h = 0; h < problem.heads_q; ++h) {
      for (int64_t i = 0; i < problem.len_q; ++i) {
        for (int64_t j = 0; j < problem.len_k; ++j) {
          elements.bytes.push_back(
              IsVisible(c, b, h, i / size.q, j / size.k) ? 1 : 0);
        }
      }
    }
  }
  return pair;
}

heed_call CallWithBlocks(const Case& c, Result* result) {
  heed_call call = DenseCall(c, result);
  const CaseMask& mask = c.mask;
  const int64_t rows = mask.room * mask.len_q;
  call.mask = {mask.bytes.data(), mask.batch == 1 ? 0 : mask.heads * rows,
               mask.heads == 1 ? 0 : rows, mask.len_q == 1 ? 0 : mask.room, 1};
  return call;
}

TEST(MaskBlocks, GiveTheBitsOfTheMaskWrittenOut) {
  const Blocks sizes[] = {{16, 16}, {64, 64},  {128, 128}, {1, 48},
                          {64, 1},  {37, 100}, {96, 17},   {1000, 3}};
  const int64_t lengths[][2] = {{1, 100}, {3, 900}, {200, 200}, {150, 1700}};
  uint64_t seed = 1;
  for (const Blocks& size : sizes) {
    for (const auto& length : lengths) {
      for (const int32_t causal :
           {HEED_CAUSAL_NONE, HEED_CAUSAL_BOTTOM_RIGHT}) {
        const Pair pair = MakePair(
            ++seed, MakeProblem(2, 4, 2, length[0], length[1], 32, 24, causal),
            size);
        for (const int threads : {1, 2}) {
          Settings settings;
          settings.threads = threads;
          Result got;
          const heed_call call = CallWithBlocks(pair.blocks, &got);
          got.status = RunCall(pair.blocks.problem, call, settings);
          ASSERT_EQ(HEED_OK, got.status) << heed_last_error();
          const Result want = RunHeed(pair.elements, settings);
          EXPECT_EQ("", Difference(got, want))
              << size.q << " x " << size.k << ", " << NameOf(pair.elements);
        }
      }
    }
  }
}

TEST(MaskBlocks, WhatTheyHideHasNoInfluence) {
  for (const int64_t len_q : {2, 150}) {
    Pair pair =
        MakePair(99, MakeProblem(1, 4, 2, len_q, 900, 16, 16), {64, 80});
    Case& c = pair.blocks;
    // Keys [80, 160) and [720, 800) are hidden from all.
    for (size_t i = 0; i < c.mask.bytes.size(); ++i) {
      const auto column = static_cast<int64_t>(i) % c.mask.room;
      if (column == 1 || column == 9) c.mask.bytes[i] = 0;
    }
    Result clean;
    ASSERT_EQ(HEED_OK, RunCall(c.problem, CallWithBlocks(c, &clean), {}));
    for (const float poison : {std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity(), 1e38f}) {
      Case poisoned = c;
      for (size_t head = 0; head < 2; ++head) {
        for (size_t key = 0; key < 900; ++key) {
          if (key / 80 != 1 && key / 80 != 9) continue;
          for (size_t d = 0; d < 16; ++d) {
            poisoned.k[(head * 900 + key) * 16 + d] = poison;
            poisoned.v[(head * 900 + key) * 16 + d] = poison;
          }
        }
      }
      Result got;
      ASSERT_EQ(HEED_OK,
                RunCall(c.problem, CallWithBlocks(poisoned, &got), {}));
      EXPECT_EQ("", Difference(got, clean)) << len_q << " " << poison;
    }
  }
}

TEST(MaskBlocks, ProblemsAndStrings) {
  heed_problem p = MakeProblem(1, 1, 1, 64, 64, 8, 8);
  heed_plan* plan = nullptr;
  p.mask_block_q = 16;
  EXPECT_EQ(HEED_INVALID_ARGUMENT, heed_plan_create(&p, nullptr, &plan));
  EXPECT_STREQ(
      "problem.mask is 0; expected HEED_MASK_BOOL (1), since mask_block_q is "
      "16",
      heed_last_error());
  p.mask = HEED_MASK_BOOL;
  p.mask_block_k = -1;
  EXPECT_EQ(HEED_INVALID_ARGUMENT, heed_plan_create(&p, nullptr, &plan));
  EXPECT_STREQ(
      "problem.mask_block_k is -1; expected 0 or 1 (none), or the size of a "
      "block",
      heed_last_error());
  p.mask_block_k = 128;
  char text[100];
  heed_problem_print(&p, text, sizeof text);
  EXPECT_STREQ("b1_hq1_hkv1_q64_k64_d8_maskbool16x128_f32", text);
  heed_problem parsed;
  ASSERT_EQ(HEED_OK, heed_problem_parse(text, &parsed));
  EXPECT_EQ(16, parsed.mask_block_q);
  EXPECT_EQ(128, parsed.mask_block_k);
  for (const char* bad : {"maskbool16", "maskboolx4", "maskbool1x1",
                          "maskbool0x4", "maskbool4x99999999999"}) {
    const std::string problem =
        std::string("b1_hq1_hkv1_q64_k64_d8_") + bad + "_f32";
    EXPECT_EQ(HEED_INVALID_ARGUMENT,
              heed_problem_parse(problem.c_str(), &parsed))
        << bad;
  }
}

}  // namespace
}  // namespace heed::test
