// Sequences of different lengths in one call: each is computed as if it were
// alone, and lengths that cannot be are refused by name.
#include <gtest/gtest.h>

#include <functional>
#include <heed.hpp>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/input_families.h"
#include "tests/refused_call.h"
#include "tests/sequence_case.h"

namespace heed::test {
namespace {

constexpr Told kAllTold[] = {Told::kUsedKeys, Told::kPacked, Told::kPackedQ};

TEST(Ragged, EachSequenceIsComputedAsIfAlone) {
  for (const Told told : kAllTold) {
    for (const int32_t causal :
         {HEED_CAUSAL_NONE, HEED_CAUSAL_TOP_LEFT, HEED_CAUSAL_BOTTOM_RIGHT}) {
      Case c = RaggedCase(HeadsOf(4, 2, causal), MixedLengths(), told, 1);
      ExpectAsAlone(c, VariedSettings(), "heads first");
      c.tokens_first = true;
      ExpectAsAlone(c, VariedSettings(), "tokens first");
      if (HasFailure()) return;
    }
  }
}

TEST(Ragged, EachSequenceHasItsOwnCausalOffset) {
  Case c = RaggedCase(HeadsOf(6, 2, HEED_CAUSAL_OFFSET), MixedLengths(),
                      Told::kPacked, 2);
  c.causal_offsets = {39, 0, 5, 2, -1, 25, INT64_MIN, 798, INT64_MAX, 0};
  ExpectAsAlone(c, VariedSettings(), "offsets");
  c.causal_offsets.clear();
  c.causal_offset = 20;
  ExpectAsAlone(c, VariedSettings(), "one offset for all");
}

TEST(Ragged, WindowsBiasesMasksAndSinksFollowTheSequence) {
  for (const Told told : kAllTold) {
    heed_problem p = HeadsOf(4, 2);
    p.window = 1;
    p.window_left = 50;
    p.window_right = 3;
    p.align = HEED_ALIGN_BOTTOM_RIGHT;
    ExpectAsAlone(RaggedCase(p, MixedLengths(), told, 3), VariedSettings(),
                  "window");
    p.window = 0;
    p.alibi = p.sinks = 1;
    p.softcap = 5;
    ExpectAsAlone(RaggedCase(p, MixedLengths(), told, 4), VariedSettings(),
                  "alibi");
    for (const int32_t mask : {HEED_MASK_BOOL, HEED_MASK_F32}) {
      p.mask = mask;
      ExpectAsAlone(RaggedCase(p, MixedLengths(), told, 5), VariedSettings(),
                    "mask");
    }
    if (HasFailure()) return;
  }
}

TEST(Ragged, OfEveryGroupSizePassesTheLineBetweenDecodeAndPrefill) {
  for (const int64_t group : {1, 2, 3, 4, 5, 8, 16, 17}) {
    std::vector<Lengths> lengths;
    for (const int64_t len_q : {1, 2, 3, 4, 5, 8, 16, 17}) {
      lengths.push_back({len_q, 60 + 13 * len_q});
    }
    ExpectAsAlone(
        RaggedCase(HeadsOf(2 * group, 2, HEED_CAUSAL_BOTTOM_RIGHT), lengths,
                   Told::kPackedQ, static_cast<uint64_t>(group)),
        VariedSettings(), "group " + std::to_string(group));
    if (HasFailure()) return;
  }
}

TEST(Ragged, OneLongDecodeAmongShortOnesIsCutOverItsKeys) {
  std::vector<Lengths> lengths(20, {1, 30});
  lengths[7] = {2, 6000};
  for (const Told told : kAllTold) {
    Case c = RaggedCase(HeadsOf(4, 1), lengths, told, 6);
    std::vector<Settings> all;
    for (const int threads : {1, 2, 3, 8, 64}) {
      Settings settings;
      settings.threads = threads;
      settings.runner = threads % 2 == 0 ? ThreadRunner() : SerialRunner();
      all.push_back(settings);
    }
    ExpectAsAlone(c, all, "one long");
  }
}

TEST(Ragged, WithoutAnyLengthsIsTheDenseCall) {
  Case c = MakeCase(MakeProblem(3, 4, 2, 21, 60, 16, 16, HEED_CAUSAL_TOP_LEFT));
  Random random(7);
  Families().front().fill(&random, &c);
  const Result want = RunHeed(c);
  c.problem.ragged = 1;
  for (const Settings& settings : VariedSettings()) {
    EXPECT_EQ(Difference(RunHeed(c, settings), want), "") << NameOf(settings);
  }
}

TEST(Ragged, ArraysOfAProblemThatIsNotRaggedAreNotRead) {
  Case c = MakeCase(MakeProblem(2, 2, 2, 5, 6, 8, 8));
  Random random(8);
  Families().front().fill(&random, &c);
  Result want = RunHeed(c), got;
  heed_call call = DenseCall(c, &got);
  const auto* nowhere = reinterpret_cast<const int32_t*>(8);
  call.seqused_k = call.cu_seqlens_q = call.cu_seqlens_k = nowhere;
  call.causal_offsets = reinterpret_cast<const int64_t*>(8);
  call.alibi_slopes = call.sinks = reinterpret_cast<const float*>(8);
  call.mask.data = nowhere;
  call.block_table.data = nowhere;
  ASSERT_EQ(RunCall(c.problem, call, {}), HEED_OK) << heed_last_error();
  EXPECT_EQ(Difference(got, want), "");
}

TEST(Ragged, TheCppFacePassesEverythingOn) {
  const Problem problem = Problem()
                              .Batch(2)
                              .Heads(4, 2)
                              .Lengths(3, 40)
                              .Dims(8)
                              .Dtype(HEED_F32)
                              .ScaleInvSqrtDim()
                              .Window(20, -1)
                              .Align(HEED_ALIGN_OFFSET)
                              .Softcap(10)
                              .Alibi()
                              .Mask(HEED_MASK_BOOL)
                              .Sinks()
                              .Ragged()
                              .Pages(16);
  EXPECT_EQ(problem.ToString(),
            "b2_hq4_hkv2_q3_k40_d8_win20xinf_alignoff_cap10_alibi_maskbool_"
            "sinks_ragged_page16_f32");
  Case c = RaggedCase(problem.c(), {{3, 40}, {1, 25}}, Told::kPackedQ, 14);
  c.problem.page_size = 0;
  SizeInputs(&c);
  Random random(15);
  random.FillNormal(&c.q);
  random.FillNormal(&c.k);
  random.FillNormal(&c.v);
  c.causal_offsets = {36, 24};
  c = InPages(c, 16, 16);
  Result got;
  const heed_call call = DenseCall(c, &got);
  Tensors t;
  t.q = call.q;
  t.k = call.k;
  t.v = call.v;
  t.out = call.out;
  t.lse = call.lse;
  t.mask = call.mask;
  t.alibi_slopes = c.slopes.data();
  t.sinks = c.sinks.data();
  t.seqused_k = c.seqused_k.data();
  t.cu_seqlens_q = c.cu_seqlens_q.data();
  t.causal_offsets = c.causal_offsets.data();
  t.block_table = BlockTable(c.block_table.data(), c.max_pages, c.num_pages);
  Attention(problem, t);
  EXPECT_EQ(Difference(got, RunHeed(c)), "");
}

// The decodes of one length, which need no list.
TEST(Decode, OfAnyThreadCountAndLengthHasTheBitsOfOneThread) {
  for (const int64_t len_k : {1, 767, 768, 769, 1536, 2000, 5000}) {
    for (const int64_t len_q : {1, 2, 4}) {
      for (const int32_t causal :
           {HEED_CAUSAL_NONE, HEED_CAUSAL_BOTTOM_RIGHT, HEED_CAUSAL_OFFSET}) {
        Case c = MakeCase(MakeProblem(2, 4, 1, len_q, len_k, 24, 17, causal),
                          len_k / 2 - 2);
        Random random(static_cast<uint64_t>(len_k));
        Families().front().fill(&random, &c);
        Settings serial;
        serial.runner = SerialRunner();
        const Result want = RunHeed(c, serial);
        for (const int threads : {2, 3, 8, 100}) {
          Settings settings;
          settings.threads = threads;
          settings.runner = threads == 3 ? SerialRunner() : ThreadRunner();
          ASSERT_EQ(Difference(RunHeed(c, settings), want), "")
              << NameOf(c) << " " << NameOf(settings);
        }
      }
    }
  }
}

TEST(Decode, OfAWindowOrOfNoVisibleKeyIsCutAsWell) {
  Case c = MakeCase(MakeProblem(1, 2, 1, 3, 5000, 16, 16, HEED_CAUSAL_OFFSET));
  Random random(9);
  Families().front().fill(&random, &c);
  c.problem.window = 1;
  c.problem.window_right = 0;
  for (const int64_t left : {0, 1, 700, 2000, -1}) {
    for (const int64_t offset : {int64_t{4996}, int64_t{1535}, int64_t{-1},
                                 int64_t{-7}, int64_t{9000}, INT64_MAX}) {
      c.problem.window_left = left;
      c.causal_offset = offset;
      const Result want = RunHeed(c);
      for (const int threads : {2, 9}) {
        Settings settings;
        settings.threads = threads;
        settings.runner = ThreadRunner();
        ASSERT_EQ(Difference(RunHeed(c, settings), want), "")
            << NameOf(c) << " " << NameOf(settings);
      }
    }
  }
}

std::string DescribePlan(const heed_problem& problem, int threads) {
  heed_options options;
  heed_options_init(&options);
  options.threads = threads;
  options.tuning = HEED_TUNING_OFF;
  heed_plan* plan = nullptr;
  EXPECT_EQ(heed_plan_create(&problem, &options, &plan), HEED_OK)
      << heed_last_error();
  std::string text(heed_plan_describe(plan, nullptr, 0), '\0');
  heed_plan_describe(plan, text.data(), text.size() + 1);
  heed_plan_destroy(plan);
  return text;
}

TEST(Decode, IsDescribedWithItsParts) {
  const auto parts = [](int64_t batch, int64_t len_q, int64_t len_k,
                        int threads) {
    const std::string text =
        DescribePlan(MakeProblem(batch, 4, 2, len_q, len_k, 16, 16), threads);
    const size_t at = text.find("decode parts=");
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + 13));
  };
  EXPECT_EQ(parts(1, 9, 5000, 4), 0);   // 18 rows
  EXPECT_EQ(parts(1, 8, 5000, 1), 1);   // one worker has no need
  EXPECT_EQ(parts(1, 1, 768, 8), 1);    // one chunk cannot be cut
  EXPECT_EQ(parts(8, 1, 5000, 4), 1);   // enough heads
  EXPECT_EQ(parts(1, 1, 50000, 4), 8);  // 2 heads, 16 tasks
  EXPECT_EQ(parts(1, 1, 1600, 4), 3);   // three chunks
}

TEST(Decode, NeedsNoCopiesInItsWorkspace) {
  heed_problem p = MakeProblem(64, 32, 8, 1, 32768, 128, 128);
  p.dtype = HEED_BF16;
  heed_options options;
  heed_options_init(&options);
  options.threads = 8;
  heed_plan* plan = nullptr;
  ASSERT_EQ(heed_plan_create(&p, &options, &plan), HEED_OK);
  EXPECT_LT(heed_plan_workspace_size(plan), size_t{1} << 22);
  heed_plan_destroy(plan);
}

TEST(Ragged, CopiesForTheLongestSequenceTimesTheBatchAreNotAskedFor) {
  heed_problem p = MakeProblem(256, 32, 8, 4096, 32768, 128, 128);
  p.dtype = HEED_BF16;
  p.ragged = 1;
  p.page_size = 16;
  heed_options options;
  heed_options_init(&options);
  options.threads = 8;
  heed_plan* plan = nullptr;
  ASSERT_EQ(heed_plan_create(&p, &options, &plan), HEED_OK);
  EXPECT_LT(heed_plan_workspace_size(plan), size_t{1} << 30);
  heed_plan_destroy(plan);
}

TEST(RaggedArguments, LengthsAreCheckedByNameAndSequence) {
  const std::vector<Lengths> lengths = {{3, 5}, {2, 9}, {4, 7}};
  const Case packed = RaggedCase(HeadsOf(2, 1), lengths, Told::kPacked, 1);
  const Case used = RaggedCase(HeadsOf(2, 1), lengths, Told::kUsedKeys, 1);
  const auto set = [](std::vector<int32_t> values,
                      const int32_t* heed_call::*field) {
    // Kept for as long as the test runs.
    static std::vector<std::vector<int32_t>> kept;
    kept.push_back(std::move(values));
    return [field, data = kept.back().data()](heed_call* call) {
      call->*field = data;
    };
  };
  ExpectRefused(packed, set({1, 3, 5, 9}, &heed_call::cu_seqlens_q),
                {"call.cu_seqlens_q", "1", "expected 0"});
  ExpectRefused(packed, set({0, 3, 2, 9}, &heed_call::cu_seqlens_q),
                {"call.cu_seqlens_q", "sequence 1", "entry 2 is 2",
                 "expected at least", "3"});
  ExpectRefused(packed, set({0, 3, 8, 9}, &heed_call::cu_seqlens_q),
                {"call.cu_seqlens_q", "sequence 1", "length is 5",
                 "expected at most problem.len_q, which is 4"});
  ExpectRefused(packed, set({0, 10, 12, 14}, &heed_call::cu_seqlens_k),
                {"call.cu_seqlens_k", "sequence 0", "length is 10",
                 "expected at most problem.len_k, which is 9"});
  ExpectRefused(packed,
                set({0, INT32_MAX, INT32_MIN, 0}, &heed_call::cu_seqlens_k),
                {"call.cu_seqlens_k", "sequence 0", "expected"});
  ExpectRefused(packed, set({-5, 0, 0, 0}, &heed_call::cu_seqlens_k),
                {"call.cu_seqlens_k", "-5", "expected 0"});
  ExpectRefused(used, set({5, -1, 7}, &heed_call::seqused_k),
                {"call.seqused_k", "sequence 1", "-1", "expected 0 to 9"});
  ExpectRefused(used, set({5, 9, 10}, &heed_call::seqused_k),
                {"call.seqused_k", "sequence 2", "10", "expected 0 to 9"});
  // With both, what is in use is part of what is there.
  ExpectRefused(packed, set({5, 9, 8}, &heed_call::seqused_k),
                {"call.seqused_k", "sequence 2", "8", "expected 0 to 7"});
  ExpectRefused(used,
                [](heed_call* c) {
                  c->seqused_k = reinterpret_cast<const int32_t*>(
                      reinterpret_cast<const char*>(c->seqused_k) + 1);
                },
                {"call.seqused_k is", "expected a multiple of 4"});
}

TEST(RaggedArguments, LengthsInUseMayBeFewerThanThoseThere) {
  const std::vector<Lengths> lengths = {{3, 50}, {20, 90}, {4, 70}};
  Case c = RaggedCase(HeadsOf(2, 1, HEED_CAUSAL_BOTTOM_RIGHT), lengths,
                      Told::kPacked, 1);
  c.seqused_k = {11, 90, 0};
  ExpectAsAlone(c, VariedSettings(), "used of packed");
}

TEST(RaggedArguments, OutputsMustNotMeetThePackedInputs) {
  const Case c = RaggedCase(HeadsOf(2, 1), {{3, 5}, {2, 9}}, Told::kPacked, 1);
  ExpectRefused(
      c, [](heed_call* x) { x->out.data = const_cast<void*>(x->q.data); },
      {"call.out", "overlaps call.q"});
  ExpectRefused(
      c,
      [](heed_call* x) { x->lse.data = const_cast<int32_t*>(x->cu_seqlens_q); },
      {"call.lse", "overlaps call.cu_seqlens_q"});
}

TEST(RaggedArguments, OffsetsThatAlibiCannotReachAreRefused) {
  heed_problem p = HeadsOf(2, 1);
  p.alibi = 1;
  p.align = HEED_ALIGN_OFFSET;
  Case c = RaggedCase(p, {{3, 5}, {2, 9}}, Told::kPacked, 1);
  c.causal_offsets = {0, INT64_MAX};
  ExpectRefused(c, [](heed_call*) {},
                {"call.causal_offsets", "sequence 1", "9223372036854775807",
                 "expected -2^61 to 2^61"});
  c.causal_offsets.clear();
  c.causal_offset = INT64_MIN;
  ExpectRefused(c, [](heed_call*) {}, {"call.causal_offset", "expected"});
}

}  // namespace
}  // namespace heed::test
