// Keys and values in pages: the bits of the same keys in one run, whatever the
// page size and order; tables that cannot be are refused by name.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/input_families.h"
#include "tests/refused_call.h"
#include "tests/sequence_case.h"

namespace heed::test {
namespace {

constexpr int64_t kPageSizes[] = {1, 7, 8, 16, 48, 64, 256, 5000};

TEST(Paged, KeysOfAnyPageSizeHaveTheBitsOfOneRun) {
  for (const int64_t page_size : kPageSizes) {
    for (const int32_t causal : {HEED_CAUSAL_NONE, HEED_CAUSAL_BOTTOM_RIGHT}) {
      const Case c =
          RaggedCase(HeadsOf(4, 2, causal), MixedLengths(), Told::kPackedQ, 1);
      Case paged = InPages(c, page_size, static_cast<uint64_t>(page_size));
      ExpectAsAlone(paged, VariedSettings(), "heads first");
      paged = c;
      paged.tokens_first = true;
      ExpectAsAlone(InPages(paged, page_size, 3), VariedSettings(),
                    "tokens first");
      if (HasFailure()) return;
    }
  }
}

TEST(Paged, BatchesOfOneLengthNeedNoLengths) {
  for (const int64_t len_q : {1, 40}) {
    Case c = MakeCase(
        MakeProblem(3, 4, 2, len_q, 1000, 24, 17, HEED_CAUSAL_BOTTOM_RIGHT));
    Random random(4);
    Families().front().fill(&random, &c);
    for (const int64_t page_size : kPageSizes) {
      ExpectAsAlone(InPages(c, page_size, 5), VariedSettings(), "one length");
    }
  }
}

TEST(Paged, WindowsBiasesMasksAndSinksGoWithPages) {
  heed_problem p = HeadsOf(4, 2, HEED_CAUSAL_BOTTOM_RIGHT);
  p.alibi = p.sinks = 1;
  p.softcap = 20;
  for (const int32_t mask : {HEED_MASK_NONE, HEED_MASK_BOOL, HEED_MASK_F32}) {
    p.mask = mask;
    for (const int64_t left : {-1, 0, 60, 900}) {
      p.window = left >= 0;
      p.window_left = left;
      p.window_right = 0;
      ExpectAsAlone(
          InPages(RaggedCase(p, MixedLengths(), Told::kPackedQ, 6), 16, 7),
          VariedSettings(), "options");
    }
    if (HasFailure()) return;
  }
}

TEST(Paged, SequencesMayShareTheirPages) {
  // A common prefix of 32 keys, and the whole sequence twice.
  Case c = InPages(RaggedCase(HeadsOf(4, 2, HEED_CAUSAL_BOTTOM_RIGHT),
                              {{5, 90}, {40, 70}, {1, 90}}, Told::kPackedQ, 8),
                   16, 9);
  for (int64_t entry = 0; entry < 2; ++entry) {
    c.block_table[c.max_pages + entry] = c.block_table[entry];
  }
  for (int64_t entry = 0; entry < 6; ++entry) {
    c.block_table[2 * c.max_pages + entry] = c.block_table[entry];
  }
  // One page for three places of one sequence.
  c.block_table[c.max_pages + 3] = c.block_table[c.max_pages + 2];
  ExpectAsAlone(c, VariedSettings(), "shared");
}

// What a cache of a sliding window has given back.
TEST(Paged, EntriesFarBeforeEveryWindowAreNotRead) {
  heed_problem p = HeadsOf(4, 2, HEED_CAUSAL_BOTTOM_RIGHT);
  p.window = 1;
  p.window_left = 100;
  p.window_right = 0;
  Case c = InPages(
      RaggedCase(p, {{1, 5000}, {40, 4000}, {2, 3000}}, Told::kPackedQ, 10), 64,
      11);
  const Case whole = c;
  for (int64_t b = 0; b < 3; ++b) {
    const int64_t len_q = c.cu_seqlens_q[b + 1] - c.cu_seqlens_q[b];
    const int64_t seen = c.seqused_k[b] - len_q - 100;
    for (int64_t entry = 0; (entry + 1) * 64 <= seen - 768; ++entry) {
      c.block_table[b * c.max_pages + entry] = -1;
    }
  }
  for (const Settings& settings : VariedSettings()) {
    EXPECT_EQ(Difference(RunHeed(c, settings), RunHeed(whole)), "")
        << NameOf(settings);
  }
}

TEST(Paged, InvisibleKeysOfAPageHaveNoInfluence) {
  for (const float poison : {std::nanf(""), HUGE_VALF, 1e38f}) {
    Case c = InPages(
        RaggedCase(HeadsOf(4, 2), MixedLengths(), Told::kPackedQ, 12), 16, 13);
    const Result want = RunHeed(c);
    for (float* data : {c.k.data(), c.v.data()}) {
      const int64_t dim =
          data == c.k.data() ? c.problem.dim_qk : c.problem.dim_v;
      for (int64_t b = 0; b < c.problem.batch; ++b) {
        const int64_t used = c.seqused_k[b];
        if (used % 16 == 0) continue;
        const int32_t page = c.block_table[b * c.max_pages + used / 16];
        for (int64_t h = 0; h < c.problem.heads_kv; ++h) {
          for (int64_t key = used % 16; key < 16; ++key) {
            std::fill_n(
                data + ((page * c.problem.heads_kv + h) * 16 + key) * dim, dim,
                poison);
          }
        }
      }
    }
    for (const Settings& settings : VariedSettings()) {
      EXPECT_EQ(Difference(RunHeed(c, settings), want), "")
          << NameOf(settings) << " " << poison;
    }
  }
}

TEST(PagedArguments, EntriesAreCheckedBySequenceAndPlace) {
  const Case good = InPages(
      RaggedCase(HeadsOf(2, 1), {{1, 33}, {20, 90}}, Told::kPackedQ, 1), 16, 2);
  const auto nothing = [](heed_call*) {};
  const std::string last = std::to_string(good.num_pages - 1);
  for (const int32_t bad :
       {-1, INT32_MIN, static_cast<int32_t>(good.num_pages), INT32_MAX}) {
    Case c = good;
    c.block_table[2] = bad;
    ExpectRefused(c, nothing,
                  {"call.block_table of sequence 0: entry 2 is " +
                   std::to_string(bad) + "; expected 0 to " + last});
    c = good;
    c.block_table[c.max_pages + 5] = bad;
    ExpectRefused(c, nothing,
                  {"call.block_table of sequence 1: entry 5 is " +
                   std::to_string(bad) + "; expected 0 to " + last});
  }
}

TEST(PagedArguments, TablesAreChecked) {
  const Case c = InPages(
      RaggedCase(HeadsOf(2, 1), {{1, 33}, {20, 90}}, Told::kPackedQ, 1), 16, 2);
  ExpectRefused(c, [](heed_call* x) { x->block_table.data = nullptr; },
                {"call.block_table.data", "NULL", "expected"});
  ExpectRefused(c, [](heed_call* x) { x->block_table.max_pages = 5; },
                {"call.block_table.max_pages is 5", "expected at least 6",
                 "90 keys of sequence 1", "pages of 16"});
  ExpectRefused(c, [](heed_call* x) { x->block_table.max_pages = -2; },
                {"call.block_table.max_pages is -2", "expected"});
  ExpectRefused(c, [](heed_call* x) { x->block_table.num_pages = -1; },
                {"call.block_table.num_pages is -1", "expected"});
  ExpectRefused(c, [](heed_call* x) { x->block_table.num_pages = INT64_MAX; },
                {"call.k", "expected"});
  ExpectRefused(c,
                [](heed_call* x) { x->block_table.stride_batch = INT64_MAX; },
                {"call.block_table", "expected"});
  ExpectRefused(c, [](heed_call* x) { x->k.stride_batch = INT64_MIN; },
                {"call.k.stride_batch", "expected"});
  ExpectRefused(
      c, [](heed_call* x) { x->out.data = const_cast<void*>(x->v.data); },
      {"call.out", "overlaps call.v"});
  const std::vector<int32_t> ends = {0, 33, 123};
  ExpectRefused(c, [&](heed_call* x) { x->cu_seqlens_k = ends.data(); },
                {"call.cu_seqlens_k", "expected NULL with pages"});
}

TEST(PagedArguments, PagesWithoutKeysNeedNoTensors) {
  Case c = InPages(
      RaggedCase(HeadsOf(2, 1), {{1, 0}, {20, 0}}, Told::kPackedQ, 1), 16, 2);
  Result result;
  heed_call call = DenseCall(c, &result);
  call.k.data = call.v.data = nullptr;
  call.block_table = {};
  ASSERT_EQ(RunCall(c.problem, call, {}), HEED_OK) << heed_last_error();
  for (const float x : result.out) EXPECT_EQ(x, 0.0f);
  for (const float x : result.lse) {
    EXPECT_EQ(x, -std::numeric_limits<float>::infinity());
  }
}

TEST(Paged, TilesThatReadInPlaceAreRoundedToCopies) {
  heed_problem p = MakeProblem(1, 4, 2, 100, 1000, 64, 64);
  p.page_size = 16;
  heed_options options;
  heed_options_init(&options);
  options.tuning = HEED_TUNING_PINNED;
  options.tile.pack_k = options.tile.pack_v = 1;
  heed_plan* plan = nullptr;
  ASSERT_EQ(heed_plan_create(&p, &options, &plan), HEED_OK);
  std::string text(heed_plan_describe(plan, nullptr, 0), '\0');
  heed_plan_describe(plan, text.data(), text.size() + 1);
  heed_plan_destroy(plan);
  EXPECT_NE(text.find(".pk1.pv1."), std::string::npos) << text;
}

}  // namespace
}  // namespace heed::test
