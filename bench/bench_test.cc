// What of the benchmarks can be tested without a clock: the gate, the figures
// made from the rounds, the two faces of the table, the flags.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/attention_case.h"
#include "bench/compare.h"
#include "bench/interleaved.h"
#include "bench/options.h"
#include "bench/pairs.h"
#include "bench/roof.h"
#include "bench/shortest_tasks.h"
#include "bench/stages.h"
#include "bench/table.h"

namespace heed {
namespace {

Round RoundOf(double before, double after, double seconds, double fma) {
  Round round;
  round.fma = fma;
  round.canary_before = before;
  round.canary_after = after;
  round.seconds = seconds;
  return round;
}

TableRow RowOf(const std::vector<Round>& rounds) {
  TableRow row;
  row.shape = "tiny";
  row.problem = "b1_hq1_hkv1_q1_k1_d1_f32";
  row.target = "AVX2";
  row.flops = 1e9;
  row.bytes = 1e6;
  row.rounds = rounds;
  row.best_canary = 100;
  return row;
}

TEST(Interleaved, QuietMeansCanaryNearItsBestBeforeAndAfter) {
  EXPECT_TRUE(IsQuiet(RoundOf(100, 100, 1, 1), 100));
  EXPECT_TRUE(IsQuiet(RoundOf(91, 95, 1, 1), 100));
  EXPECT_FALSE(IsQuiet(RoundOf(90, 100, 1, 1), 100));
  EXPECT_FALSE(IsQuiet(RoundOf(100, 90, 1, 1), 100));
}

TEST(Interleaved, DroppedRoundsCountForThePeakAndTheShortestCall) {
  const Summary summary =
      Summarize({RoundOf(100, 100, 2, 50), RoundOf(50, 100, 1, 70),
                 RoundOf(99, 98, 4, 60)},
                100);
  EXPECT_EQ(summary.kept, 2);
  EXPECT_EQ(summary.dropped, 1);
  EXPECT_EQ(summary.median_seconds, 3);
  EXPECT_EQ(summary.min_seconds, 1);
  EXPECT_EQ(summary.fma, 70);
}

TEST(Interleaved, ALaterBestCanaryDropsEarlierRounds) {
  const std::vector<Round> rounds = {RoundOf(100, 100, 2, 50)};
  EXPECT_EQ(Summarize(rounds, 100).kept, 1);
  EXPECT_EQ(Summarize(rounds, 120).kept, 0);
}

TEST(Table, PercentagesAreOfTheRowsPeak) {
  const TableRow row =
      RowOf({RoundOf(100, 100, 0.02, 100e9), RoundOf(100, 100, 0.04, 90e9),
             RoundOf(100, 100, 0.025, 80e9)});
  const auto json = nlohmann::json::parse(TableJson({{"cpu", "x"}}, {row}));
  EXPECT_EQ(json["cpu"], "x");
  const auto& figures = json["rows"][0];
  EXPECT_DOUBLE_EQ(figures["gflops"], 40);
  EXPECT_DOUBLE_EQ(figures["pct_peak"], 40);
  EXPECT_DOUBLE_EQ(figures["pct_peak_min_time"], 50);
  EXPECT_TRUE(figures["pct_bw"].is_null());
  EXPECT_EQ(figures["rounds"]["us"].size(), 3u);
  EXPECT_EQ(figures["rounds"]["kept"].size(), 3u);
  EXPECT_NE(TableMarkdown({}, {row}).find("| tiny | 1 | AVX2 | 25.00 ms |"),
            std::string::npos);
}

TEST(Table, TasksArePerCentOfTheSamePeakAndMissingInDecodes) {
  TableRow row = RowOf({RoundOf(100, 100, 0.02, 100e9)});
  EXPECT_TRUE(
      nlohmann::json::parse(TableJson({}, {row}))["rows"][0]["pct_peak_tasks"]
          .is_null());
  row.task_seconds = 0.0125;
  const auto json = nlohmann::json::parse(TableJson({}, {row}));
  EXPECT_DOUBLE_EQ(json["rows"][0]["tasks_us"], 12500);
  EXPECT_DOUBLE_EQ(json["rows"][0]["pct_peak_tasks"], 80);
  EXPECT_NE(TableMarkdown({}, {row}).find("| 50.0 | 50.0 | 80.0 |"),
            std::string::npos);
}

// Sleeps as long as the block has rows, in milliseconds.
void Sleep(const Block& block) {
  std::this_thread::sleep_for(std::chrono::milliseconds(block.rows));
}
void SleepPacking(const Block& block, size_t /*begin*/, size_t /*end*/) {
  Sleep(block);
}

TEST(ShortestTasks, OneUndisturbedRunOfEachTaskIsEnough) {
  heed_plan plan{};
  plan.row_blocks = 2;
  plan.workers = 1;
  plan.kernels.attend = &Sleep;
  plan.kernels.pack = &SleepPacking;
  const float q = 0, k = 0;
  // Each task takes 300 ms once, and else 1, 2 and 3 ms.
  size_t calls = 0;
  const double seconds = ShortestTasks(&plan, 0, [&] {
    Block block{};
    block.q = &q;
    block.k = &k;
    block.rows = calls == 0 ? 300 : 1;
    plan.kernels.pack(block, 0, 300);
    block.rows = calls == 1 ? 300 : 2;
    plan.kernels.attend(block);
    block.row_begin = 96;
    block.rows = calls == 2 ? 300 : 3;
    plan.kernels.attend(block);
    ++calls;
  });
  EXPECT_EQ(calls, 16u);
  EXPECT_GE(seconds, 6e-3);
  EXPECT_LT(seconds, 0.3);
  EXPECT_EQ(plan.kernels.attend, &Sleep);
  EXPECT_EQ(plan.kernels.pack, &SleepPacking);
}

TEST(ShortestTasks, DecodesHaveNone) {
  heed_plan plan{};
  EXPECT_EQ(ShortestTasks(&plan, 0, [] { FAIL(); }), 0);
}

TEST(Table, SaysSoWhenNoRoundWasQuiet) {
  const TableRow row = RowOf({RoundOf(50, 50, 0.02, 100e9)});
  EXPECT_NE(TableMarkdown({}, {row}).find("no quiet round"), std::string::npos);
  const auto json = nlohmann::json::parse(TableJson({}, {row}));
  EXPECT_TRUE(json["rows"][0]["pct_peak"].is_null());
  EXPECT_EQ(json["rows"][0]["rounds_dropped"], 1);
}

PairRow PairOf(int rounds, double with, double base) {
  PairRow row;
  row.name = "tiny";
  row.best_canary = 100;
  for (int i = 0; i < rounds; ++i) {
    PairRound round;
    round.base_seconds[0] = base * (1 + 0.01 * i);
    round.base_seconds[1] = base * (1 + 0.02 * i);
    round.with_seconds[0] = with * (1 + 0.01 * i);
    round.with_seconds[1] = with * (1 + 0.02 * i);
    round.canary_before = round.canary_after = 100;
    row.rounds.push_back(round);
  }
  return row;
}

TEST(Pairs, ADriftThatBothSeeLeavesTheRatio) {
  const PairSummary summary = SummarizePair(PairOf(20, 3e-3, 2e-3));
  EXPECT_EQ(summary.kept, 20);
  EXPECT_NEAR(summary.ratio.low, 1.5, 1e-12);
  EXPECT_NEAR(summary.ratio.median, 1.5, 1e-12);
  EXPECT_NEAR(summary.ratio.high, 1.5, 1e-12);
  EXPECT_NEAR(summary.min_ratio, 1.5, 1e-12);
  EXPECT_GT(summary.noise.median, 1.0);
}

TEST(Pairs, LoudRoundsDoNotCount) {
  PairRow row = PairOf(8, 3e-3, 2e-3);
  PairRound loud = row.rounds[0];
  loud.canary_after = 80;
  loud.with_seconds[0] = 1e-6;
  row.rounds.push_back(loud);
  const PairSummary summary = SummarizePair(row);
  EXPECT_EQ(summary.kept, 8);
  EXPECT_EQ(summary.dropped, 1);
  EXPECT_NEAR(summary.min_ratio, 1.5, 1e-12);
}

TEST(Pairs, TextsSayTheRatioOrThatNoRoundWasQuiet) {
  PairRow row = PairOf(8, 3e-3, 2e-3);
  EXPECT_NE(PairsMarkdown({}, {row}).find("| 1.500 (1.500 to 1.500) | 1.500 |"),
            std::string::npos)
      << PairsMarkdown({}, {row});
  const auto json = nlohmann::json::parse(PairsJson({}, {row}));
  EXPECT_DOUBLE_EQ(json["rows"][0]["ratio"]["median"], 1.5);
  row.best_canary = 200;
  EXPECT_NE(PairsMarkdown({}, {row}).find("no quiet round"), std::string::npos);
  EXPECT_FALSE(
      nlohmann::json::parse(PairsJson({}, {row}))["rows"][0].contains("ratio"));
}

TEST(Pairs, ListsAreParsedOrRefused) {
  std::vector<ProblemPair> pairs;
  std::string why;
  ASSERT_TRUE(ParsePairs("options", &pairs, &why)) << why;
  EXPECT_GE(pairs.size(), 20u);
  ASSERT_TRUE(
      ParsePairs("vit/decode,b1_hq1_hkv1_q1_k1_d8_f16/vit", &pairs, &why))
      << why;
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].with.name, "vit");
  EXPECT_EQ(pairs[1].base.name, "vit");
  for (const char* bad : {"", "vit", "vit/", "vit/nothing", "core/vit"}) {
    EXPECT_FALSE(ParsePairs(bad, &pairs, &why)) << bad;
    EXPECT_NE(why.find(bad), std::string::npos) << why;
  }
}

TEST(AttentionCase, EveryOptionIsFilledInAndRight) {
  for (const char* text : {
           "b2_hq4_hkv2_q50_k70_d16_causalbr_maskbool_f32",
           "b1_hq2_hkv1_q200_k200_d16_maskbool32x16_f32",
           "b1_hq2_hkv1_q40_k900_d16_causalbr_maskbool16x64_f16",
           "b1_hq2_hkv2_q40_k40_d24_alignoff_cap30_alibi_maskf32_sinks_f32",
           "b1_hq2_hkv2_q40_k40_d24_maskown_bf16",
           "b3_hq4_hkv2_q5_k120_d16_causalbr_win20x0_ragged_f32",
           "b3_hq4_hkv2_q1_k120_d16_causaloff_ragged_page16_f16",
           "b2_hq4_hkv4_q9_k100_d8_win3x5_aligntl_page7_f32",
       }) {
    NamedProblem named;
    named.name = named.text = text;
    ASSERT_EQ(heed_problem_parse(text, &named.problem), HEED_OK)
        << heed_last_error();
    AttentionCase attention(named, size_t{1} << 20);
    AttentionRun run(&attention, "AVX2", 2);
    if (run.Tile().empty()) GTEST_SKIP() << "no AVX2";
    EXPECT_EQ(run.Verify(), "") << text;
  }
}

TEST(AttentionCase, CountsWhatIsVisible) {
  const auto pairs_of = [](const char* text) {
    heed_problem problem;
    EXPECT_EQ(heed_problem_parse(text, &problem), HEED_OK);
    return OptionInputs(problem).visible_pairs();
  };
  EXPECT_EQ(pairs_of("b1_hq1_hkv1_q4_k4_d8_f32"), 16);
  EXPECT_EQ(pairs_of("b2_hq3_hkv1_q4_k4_d8_causal_f32"), 60);
  EXPECT_EQ(pairs_of("b1_hq1_hkv1_q2_k4_d8_causalbr_f32"), 7);
  EXPECT_EQ(pairs_of("b1_hq1_hkv1_q4_k4_d8_causal_win1x0_f32"), 7);
  EXPECT_EQ(pairs_of("b1_hq1_hkv1_q4_k4_d8_win1x1_aligntl_f32"), 10);
  // Lengths 2 and 4.
  EXPECT_EQ(pairs_of("b2_hq1_hkv1_q1_k4_d8_ragged_f32"), 6);
  // A tenth of 64 blocks and the 8 own ones.
  const double blocks =
      pairs_of("b1_hq1_hkv1_q512_k512_d8_maskbool64x64_f32") / 4096;
  EXPECT_GE(blocks, 8);
  EXPECT_LE(blocks, 24);
}

// Eighteen rounds of gpt2_short by one library loaded twice, microseconds per
// call: base, head, head, base. A neighbour came and went.
constexpr double kRecordedRounds[][4] = {
    {502.7, 517.6, 501.4, 537.5}, {530.2, 509.9, 521.8, 513.3},
    {504.5, 523.6, 507.1, 532.2}, {530.1, 509.9, 528.6, 532.6},
    {505.4, 539.1, 533.5, 499.7}, {556.7, 537.6, 513.0, 518.2},
    {531.3, 546.9, 522.1, 501.9}, {524.3, 547.7, 503.4, 529.9},
    {507.9, 532.5, 530.0, 521.3}, {539.2, 530.4, 511.1, 497.6},
    {517.8, 529.8, 501.3, 518.0}, {530.8, 505.4, 515.6, 505.4},
    {544.3, 507.7, 513.8, 501.0}, {529.2, 521.1, 507.8, 514.4},
    {530.4, 513.4, 545.0, 504.0}, {515.8, 526.8, 510.9, 522.2},
    {539.2, 487.5, 521.2, 550.4}, {520.0, 528.8, 509.6, 541.3},
};

ComparedShape RecordedShape(double slowdown) {
  ComparedShape shape;
  shape.row.name = "gpt2_short";
  shape.row.best_canary = 100;
  for (const auto& us : kRecordedRounds) {
    PairRound round;
    round.base_seconds[0] = us[0] * 1e-6;
    round.with_seconds[0] = us[1] * slowdown * 1e-6;
    round.with_seconds[1] = us[2] * slowdown * 1e-6;
    round.base_seconds[1] = us[3] * 1e-6;
    round.canary_before = round.canary_after = 100;
    shape.row.rounds.push_back(round);
  }
  return shape;
}

TEST(Compare, ALibraryIsNotSlowerThanItself) {
  EXPECT_EQ(Judge(RecordedShape(1)), Verdict::kNotSlower);
}

TEST(Compare, EightPercentAreCaughtTwiceOrNotAtAll) {
  ComparedShape slow = RecordedShape(1.08);
  // Not without a second measurement that says the same.
  EXPECT_EQ(Judge(slow), Verdict::kInconclusive);
  slow.confirmation = RecordedShape(1).row;
  EXPECT_EQ(Judge(slow), Verdict::kInconclusive);
  slow.confirmation = RecordedShape(1.08).row;
  EXPECT_EQ(Judge(slow), Verdict::kSlower);
  EXPECT_NE(CompareMarkdown({}, {slow}).find("| slower |"), std::string::npos);
  const auto json = nlohmann::json::parse(CompareJson({}, {slow}));
  EXPECT_EQ(json["rows"][0]["verdict"], "slower");
  EXPECT_GT(json["rows"][0]["confirmation"]["ratio"]["low"], 1.05);
}

TEST(Compare, OnTheThresholdNothingIsClaimed) {
  EXPECT_EQ(Judge(RecordedShape(1 / 0.95)), Verdict::kInconclusive);
  ComparedShape loud = RecordedShape(1.5);
  loud.row.best_canary = 200;
  EXPECT_EQ(Judge(loud), Verdict::kInconclusive);
}

TEST(Compare, LibrariesThatAreNoneAreRefused) {
  BenchContext context;
  std::vector<ComparedShape> shapes;
  std::string why;
  for (const char* list :
       {"one", "a,b,c", "/nowhere/libheed.so,b", "/proc/self/exe,b"}) {
    BenchOptions options;
    options.compare = list;
    EXPECT_FALSE(Compare(options, &context, &shapes, &why)) << list;
    EXPECT_FALSE(why.empty());
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
}

TEST(Options, ComparisonHasShapesOfItsOwn) {
  BenchOptions options;
  std::string text;
  const char* const argv[] = {"heed_bench", "--heed_compare=a,b",
                              "--heed_shapes=vit"};
  ASSERT_EQ(ParseOptions(2, argv, &options, &text), Parsed::kRun) << text;
  EXPECT_EQ(options.shapes, kHeadlineShapes);
  ASSERT_EQ(ParseOptions(3, argv, &options, &text), Parsed::kRun) << text;
  EXPECT_EQ(options.shapes, "vit");
  const char* const both[] = {"heed_bench", "--heed_compare=a,b",
                              "--heed_pairs=options"};
  EXPECT_EQ(ParseOptions(3, both, &options, &text), Parsed::kUsageError);
}

TEST(Options, OthersFlagsAreLeftToGoogleBenchmark) {
  const char* const argv[] = {"heed_bench", "--benchmark_filter=x",
                              "--heed_threads=1,2", "--heed_targets=all"};
  BenchOptions options;
  std::string text;
  ASSERT_EQ(ParseOptions(4, argv, &options, &text), Parsed::kRun) << text;
  EXPECT_EQ(options.threads, (std::vector<int>{1, 2}));
  EXPECT_EQ(options.targets, "all");
  EXPECT_EQ(options.leftover,
            (std::vector<std::string>{"--benchmark_filter=x"}));
}

TEST(Options, ModesExcludeEachOther) {
  const char* const argv[] = {"heed_bench", "--heed_stages", "--heed_table"};
  BenchOptions both, one;
  std::string text;
  EXPECT_EQ(ParseOptions(3, argv, &both, &text), Parsed::kUsageError);
  EXPECT_NE(text.find("exclude each other"), std::string::npos) << text;
  EXPECT_EQ(ParseOptions(2, argv, &one, &text), Parsed::kRun);
  EXPECT_TRUE(one.stages);
}

TEST(Options, UsageErrorsSayWhatIsWrong) {
  for (const char* flag : {"--heed_threads=0", "--heed_threads=two",
                           "--heed_seconds=-1", "--heed_json=file.json"}) {
    const char* const argv[] = {"heed_bench", flag};
    BenchOptions options;
    std::string text;
    EXPECT_EQ(ParseOptions(2, argv, &options, &text), Parsed::kUsageError)
        << flag;
    EXPECT_NE(text.find("--heed_"), std::string::npos) << text;
  }
}

// A row of width 64 whose multiply-adds take 1 ns a score at the peak.
StageRow StagesOf(double canary) {
  StageRow row;
  row.dim = 64;
  row.target = "AVX2";
  row.best_canary = 100;
  for (const double seconds : {0.53, 0.08, 0.54, 0.01, 0.02, 1.25, 1.3}) {
    Stage stage;
    stage.name = std::to_string(row.stages.size());
    stage.scores = 1e9;
    stage.rounds = {RoundOf(canary, canary, seconds, 256e9),
                    RoundOf(canary, canary, 2 * seconds, 200e9),
                    RoundOf(canary, canary, 3 * seconds, 200e9)};
    row.stages.push_back(stage);
  }
  return row;
}

TEST(Stages, SharesAreOfTheTimeAtThePeak) {
  const StageShares least = SharesOf(StagesOf(100), false);
  EXPECT_NEAR(least.scores, 53, 1e-9);
  EXPECT_NEAR(least.softmax, 8, 1e-9);
  EXPECT_NEAR(least.blend, 54, 1e-9);
  EXPECT_NEAR(least.full, 125, 1e-9);
  EXPECT_NEAR(least.causal, 130, 1e-9);
  EXPECT_NEAR(least.rest(), 125 - 53 - 8 - 54 - 1 - 2, 1e-9);
  EXPECT_NEAR(SharesOf(StagesOf(100), true).full, 250, 1e-9);
}

TEST(Stages, TextsSayTheSharesOrThatNoRoundWasQuiet) {
  const std::string quiet = StagesMarkdown({}, {StagesOf(100)});
  EXPECT_NE(quiet.find("| shortest | 53.0 | 8.0 | 54.0 | 1.0 | 2.0 | 7.0 | "
                       "125.0 = 80.0 % of peak | 130.0 = 76.9 % of peak |\n"),
            std::string::npos)
      << quiet;
  const std::string loud = StagesMarkdown({}, {StagesOf(50)});
  EXPECT_NE(loud.find("| median | - | - | - | - | - | - | - | - |\n"),
            std::string::npos)
      << loud;
  const auto json =
      nlohmann::json::parse(StagesJson({{"cpu", "x"}}, {StagesOf(50)}));
  EXPECT_EQ(json["cpu"], "x");
  const auto& scores = json["rows"][0]["stages"]["0"];
  EXPECT_DOUBLE_EQ(scores["ps_least"], 530);
  EXPECT_TRUE(scores["ps_median"].is_null());
  EXPECT_EQ(scores["rounds_dropped"], 3);
}

TEST(Roof, CountsTheLastLevelOfAllCores) {
  Machine machine;
  machine.cores = 10;
  machine.l2.bytes = size_t{1} << 20;
  machine.l3.bytes = size_t{32} << 20;
  machine.l3.cores_sharing = 4;
  EXPECT_EQ(LastLevelBytes(machine), size_t{96} << 20);
  machine.l3.bytes = 0;
  machine.l2.cores_sharing = 1;
  EXPECT_EQ(LastLevelBytes(machine), size_t{10} << 20);
}

}  // namespace
}  // namespace heed
