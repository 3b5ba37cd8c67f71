// What of the benchmarks can be tested without a clock: the gate, the figures
// made from the rounds, the two faces of the table, the flags.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/interleaved.h"
#include "bench/options.h"
#include "bench/roof.h"
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

TEST(Interleaved, DroppedRoundsCountForThePeakOnly) {
  const Summary summary =
      Summarize({RoundOf(100, 100, 2, 50), RoundOf(50, 100, 1, 70),
                 RoundOf(99, 98, 4, 60)},
                100);
  EXPECT_EQ(summary.kept, 2);
  EXPECT_EQ(summary.dropped, 1);
  EXPECT_EQ(summary.median_seconds, 3);
  EXPECT_EQ(summary.min_seconds, 2);
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

TEST(Table, SaysSoWhenNoRoundWasQuiet) {
  const TableRow row = RowOf({RoundOf(50, 50, 0.02, 100e9)});
  EXPECT_NE(TableMarkdown({}, {row}).find("no quiet round"), std::string::npos);
  const auto json = nlohmann::json::parse(TableJson({}, {row}));
  EXPECT_TRUE(json["rows"][0]["pct_peak"].is_null());
  EXPECT_EQ(json["rows"][0]["rounds_dropped"], 1);
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
