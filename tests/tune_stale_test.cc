// What records hold and the library cannot use: it is kept, told of, and
// measured again by `heed tune run --stale`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/record_files.h"
#include "tests/cli_fixture.h"
#include "tests/record_samples.h"
#include "tune/merge_records.h"
#include "tune/publish.h"
#include "tune/stale_entries.h"

namespace heed {
namespace {

std::string OtherAbi(int abi) {
  return fmt::format("kernel_abi {}, library has {}", abi, kKernelAbi);
}

using Json = nlohmann::json;
using test::SampleRecord;

constexpr char kWarp[] = "unknown tunable \"warp\"";
// Small enough for the slowest build.
constexpr char kSmall[] = "b1_hq2_hkv2_q64_k64_d16_f32";
constexpr char kOther[] = "b1_hq2_hkv2_q64_k64_d24_f32";

// The sample's entries, for these problems and this many threads.
Record Of(const std::vector<std::string>& problems, int threads) {
  Record record = SampleRecord();
  record.entries.resize(1, record.entries[0]);
  const RecordEntry sample = record.entries[0];
  record.entries.clear();
  for (const std::string& text : problems) {
    heed_problem problem;
    EXPECT_EQ(heed_problem_parse(text.c_str(), &problem), HEED_OK) << text;
    RecordEntry entry = sample;
    entry.problem = text;
    entry.shape_class = ClassOf(problem, threads);
    record.entries.push_back(entry);
  }
  return record;
}

// As a later version writes it: the first entry has a tunable of that version.
Record WithWarp(const Record& record) {
  Json json = Json::parse(ToJson(record))["entries"][0];
  json["config"]["warp"] = 9;
  Record later = record;
  later.entries.erase(later.entries.begin());
  later.skipped.push_back({record.entries[0].shape_class,
                           record.entries[0].problem, kWarp,
                           record.entries[0].run, json.dump()});
  Record read;
  std::string why;
  EXPECT_TRUE(FromJson(ToJson(later), &read, &why)) << why;
  return read;
}

Record Quarantined(Record record) {
  record.entries[0].decision = Decision::kQuarantined;
  return record;
}

std::vector<std::string> Reasons(const Record& record) {
  std::vector<std::string> reasons;
  for (const StaleEntry& entry : StaleEntries(record, ThisMachine())) {
    reasons.push_back(entry.reason);
  }
  return reasons;
}

using Strings = std::vector<std::string>;

TEST(StaleEntries, AreThoseTheLibraryCannotUse) {
  const Record good = Of({kSmall, kOther}, 1);
  EXPECT_EQ(Reasons(good), Strings{});
  EXPECT_EQ(Reasons(WithWarp(good)), Strings{kWarp});
  EXPECT_EQ(Reasons(Quarantined(good)), Strings{"quarantined"});
  Record elsewhere = good;
  elsewhere.entries[1].target = "ANOTHER";
  EXPECT_EQ(Reasons(elsewhere),
            Strings{"its SIMD target ANOTHER does not run here"});
  Record older = good;
  older.kernel_abi = kKernelAbi - 1;
  EXPECT_EQ(Reasons(older), Strings(2, OtherAbi(kKernelAbi - 1)));
}

TEST(StaleEntries, OfATileThatLeavesTheCaches) {
  Record record = Of({"b1_hq2_hkv2_q4096_k4096_d128_f32"}, 1);
  record.entries[0].config.tile = {4096, 768, Pack::kTile, Pack::kTile, false};
  Machine small = ThisMachine();
  small.l2.bytes = 64 << 10;
  small.l3 = {};
  const std::vector<StaleEntry> stale = StaleEntries(record, small);
  ASSERT_EQ(stale.size(), 1u);
  EXPECT_EQ(stale[0].reason, "its tile leaves the caches");
}

TEST(StaleEntries, OfARetiredRecordUntilTheirClassIsMeasured) {
  Record older = Of({kSmall, kOther}, 1);
  older.kernel_abi = kKernelAbi - 1;
  const Record half = MergeRecords(older, Of({kSmall}, 1), false);
  const std::vector<StaleEntry> stale = StaleEntries(half, ThisMachine());
  ASSERT_EQ(stale.size(), 1u);
  EXPECT_EQ(stale[0].problem, kOther);
  const Record whole = MergeRecords(half, Of({kOther}, 1), false);
  EXPECT_EQ(Reasons(whole), Strings{});
}

TEST(SkippedEntries, SurviveWritingUntilTheirClassIsMeasured) {
  const Record skipped = WithWarp(Of({kSmall, kOther}, 1));
  ASSERT_EQ(skipped.entries.size(), 1u);
  ASSERT_EQ(skipped.skipped.size(), 1u);
  EXPECT_EQ(skipped.skipped[0].problem, kSmall);
  Record back;
  std::string why;
  ASSERT_TRUE(FromJson(ToJson(skipped), &back, &why)) << why;
  EXPECT_EQ(ToJson(back), ToJson(skipped));
  EXPECT_NE(ToJson(back).find("\"warp\": 9"), std::string::npos);
  // Another class measured: both are kept, and the run that is named.
  Record one = Of({"b1_hq2_hkv2_q64_k64_d32_f32"}, 1);
  one.runs[0].id = one.entries[0].run = "another";
  const Record merged = MergeRecords(skipped, one, false);
  EXPECT_EQ(merged.entries.size(), 2u);
  EXPECT_EQ(merged.skipped.size(), 1u);
  EXPECT_NE(FindRun(merged, skipped.skipped[0].run), nullptr);
  // The class itself.
  const Record mended = MergeRecords(merged, Of({kSmall}, 1), false);
  EXPECT_EQ(mended.entries.size(), 3u);
  EXPECT_TRUE(mended.skipped.empty());
  ASSERT_TRUE(FromJson(ToJson(mended), &back, &why)) << why;
}

class TuneStale : public CliFixture {
 protected:
  std::string Write(const Record& record, const std::string& dir) const {
    std::string path, why;
    EXPECT_TRUE(WriteRecordFile(Path(dir), record, &path, &why)) << why;
    return path;
  }
  Record Read() const {
    Record record;
    std::string why;
    EXPECT_TRUE(ReadRecordFile(
        RecordPath(Path("records"), MachineKey(ThisMachine())), &record, &why))
        << why;
    return record;
  }
  Result Stale(const std::string& options = "--threads 1") const {
    return Heed(
        "tune run --stale --effort quick --budget 60s --output records " +
            options,
        "HEED_TUNE_PATH=" + Path("library"));
  }
};

TEST_F(TuneStale, WithNothingStaleSaysSoInOneLine) {
  for (const char* when : {"no record", "a good record"}) {
    const Result result = Stale();
    EXPECT_EQ(result.code, 0) << when << result.err;
    EXPECT_EQ(result.out, "nothing is stale for 1 thread in the records for " +
                              MachineKey(ThisMachine()) + "\n");
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(std::filesystem::exists(Path("records")), when[0] == 'a');
    Write(Of({kSmall}, 1), "records");
  }
  const Result json = Stale("--threads 1 --json");
  EXPECT_EQ(json.code, 0);
  EXPECT_TRUE(Json::parse(json.out)["shapes"].empty()) << json.out;
}

TEST_F(TuneStale, MeasuresAgainWhatReadingSkippedAndNothingElse) {
  Write(WithWarp(Of({kSmall, kOther}, 1)), "records");
  const std::string before = ToJson(Read());
  const Result plan = Stale("--threads 1 --dry-run");
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_NE(plan.out.find(std::string("stale: ") + kSmall + " (" + kWarp + ")"),
            std::string::npos)
      << plan.out;
  EXPECT_EQ(plan.out.find(kOther), std::string::npos) << plan.out;
  EXPECT_EQ(ToJson(Read()), before);
  // The library says what to do, and that is what does it.
  const Result info = Heed("info --json", "HEED_TUNE_PATH=records");
  EXPECT_NE(info.out.find("Re-tune with: heed tune run --stale"),
            std::string::npos)
      << info.out;
  EXPECT_NE(Heed("tune doctor --output records")
                .out.find("1 entry is of no use to this library. Re-tune with: "
                          "heed tune run --stale"),
            std::string::npos);
  const Result tuned = Stale();
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  const Record after = Read();
  EXPECT_EQ(after.entries.size(), 2u);
  EXPECT_TRUE(after.skipped.empty());
  ASSERT_FALSE(after.runs.empty());
  EXPECT_EQ(after.runs[0].argv[5], "--stale");
  EXPECT_EQ(Stale().out.rfind("nothing is stale", 0), 0u);
}

TEST_F(TuneStale, EntriesForOtherKernelsAreMeasuredAgainAndSetAside) {
  Record older = Of({kSmall}, 1);
  older.kernel_abi = kKernelAbi - 1;
  // Where the library looks, and nothing in the output folder yet.
  Write(older, "library");
  const Result tuned = Stale();
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("(" + OtherAbi(kKernelAbi - 1) + ")"),
            std::string::npos)
      << tuned.out;
  EXPECT_EQ(Read().entries.size(), 1u);
  EXPECT_EQ(Read().kernel_abi, kKernelAbi);
  EXPECT_EQ(Stale().out.rfind("nothing is stale", 0), 0u);
}

TEST_F(TuneStale, WhatIsForOtherThreadsIsToldOf) {
  Write(Quarantined(Of({kSmall}, 3)), "records");
  EXPECT_NE(Stale().out.find("; 1 entry for another number of threads: "
                             "--threads 3\n"),
            std::string::npos)
      << Stale().out;
}

TEST_F(TuneStale, ARecordOfNewerKernelsIsNotMeasuredInVain) {
  Record newer = Of({kSmall}, 1);
  newer.kernel_abi = kKernelAbi + 1;
  Write(newer, "records");
  for (const char* arguments : {"tune run --stale --threads 1 --output records",
                                "tune run --shapes vit --output records"}) {
    const Result result = Heed(arguments);
    EXPECT_EQ(result.code, 65) << arguments;
    EXPECT_NE(result.err.find(
                  fmt::format("kernel_abi {} is newer than the library's {}",
                              kKernelAbi + 1, kKernelAbi)),
              std::string::npos)
        << result.err;
  }
}

}  // namespace
}  // namespace heed
