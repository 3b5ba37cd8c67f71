// `heed tune` and what it leaves behind: show, compare, merge, install, doctor,
// verify, report, resume.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/record_files.h"
#include "tests/cli_fixture.h"
#include "tests/record_samples.h"
#include "tune/publish.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using test::SampleRecord;

class TuneFiles : public CliFixture {
 protected:
  // Writes a record of this machine to <folder>/<dir>.
  std::string Write(const Record& record, const std::string& dir) const {
    std::string path, why;
    EXPECT_TRUE(WriteRecordFile(Path(dir), record, &path, &why)) << why;
    return path;
  }
  static Record Foreign() {
    Record record = SampleRecord();
    record.machine.vendor = "GenuineIntel";
    record.machine.family = 6;
    record.machine_key = MachineKey(record.machine);
    return record;
  }
};

TEST_F(TuneFiles, ShowPrintsEntriesAndWhoseTheyAre) {
  Write(SampleRecord(), "records");
  const Result shown = Heed("tune show records");
  ASSERT_EQ(shown.code, 0) << shown.err;
  for (const char* word :
       {"this machine", "adopted", "kept_default", "+6.2 % [+3.1, +9.4]",
        "f32_d64_dv64_causal_g1_q1024_k1024_many_t2", "rb96.kt192"}) {
    EXPECT_NE(shown.out.find(word), std::string::npos) << shown.out;
  }
  const Json json = Json::parse(Heed("tune show records --json").out);
  EXPECT_EQ(json["entries"].size(), 2u);
  ExpectFailure("tune show nowhere.json", 65, "No such file");
}

TEST_F(TuneFiles, CompareCountsWhatAgrees) {
  Record other = SampleRecord();
  other.entries[0].config.tile.key_tile = 288;
  other.entries[0].gain = {1.07, 1.06, 1.08};
  const std::string a = Write(SampleRecord(), "a"), b = Write(other, "b");
  const Json json =
      Json::parse(Heed("tune compare " + a + " " + b + " --json").out);
  EXPECT_EQ(json["common"], 2);
  EXPECT_EQ(json["agreed"], 2);
  EXPECT_EQ(json["classes"][0]["agreement"], "equal");
  EXPECT_EQ(json["classes"][1]["agreement"], "same");
  const Result text = Heed("tune compare " + a + " " + b);
  EXPECT_NE(text.out.find("2 classes in both, 2 of them"), std::string::npos)
      << text.out;
}

TEST_F(TuneFiles, MergeKeepsBothAndRefusesAnotherMachine) {
  Record first = SampleRecord(), second = SampleRecord();
  first.entries.resize(1);
  second.entries.erase(second.entries.begin());
  const std::string a = Write(first, "a"), b = Write(second, "b");
  const Result merged = Heed("tune merge " + a + " " + b + " --output all");
  ASSERT_EQ(merged.code, 0) << merged.err;
  EXPECT_NE(merged.out.find("1 and 1 entries became 2 in all/"),
            std::string::npos)
      << merged.out;
  ExpectFailure(
      "tune merge " + a + " " + Write(Foreign(), "c") + " --output all", 65,
      "expected the same machine");
}

TEST_F(TuneFiles, InstallCopiesToTheUsersFolderWhereInfoFindsIt) {
  Write(SampleRecord(), "records");
  const std::string home =
      "HOME='" + folder_.string() + "/home' XDG_CONFIG_HOME= HEED_TUNE=on";
  const Result installed = Heed("tune install --from records", home);
  ASSERT_EQ(installed.code, 0) << installed.err;
  EXPECT_TRUE(fs::exists(folder_ / "home/.config/heed/tuning" /
                         MachineKey(ThisMachine()) / "record.json"));
  const Json info = Json::parse(Heed("info --json", home).out);
  ASSERT_GE(info["records"].size(), 1u);
  EXPECT_EQ(info["records"][0]["tier"], "exact");
  // Without a home there is nowhere to install to.
  const Result nowhere =
      Heed("tune install --from records", "env -u HOME -u XDG_CONFIG_HOME");
  EXPECT_EQ(nowhere.code, 73);
  EXPECT_NE(nowhere.err.find("say --to DIR"), std::string::npos) << nowhere.err;
  EXPECT_EQ(Heed("info", "env -u HOME -u XDG_CONFIG_HOME").code, 0);
}

// A user who copies a record from another machine is told in one line which
// part is used and what to run.
TEST_F(TuneFiles, ACopiedRecordIsExplained) {
  const Record foreign = Foreign();
  const std::string path = Write(foreign, "records");
  const Result info = Heed("info", "HEED_TUNE_PATH=records");
  ASSERT_EQ(info.code, 0) << info.err;
  EXPECT_NE(info.out.find("was written for " + foreign.machine_key +
                          ", this machine is " + MachineKey(ThisMachine()) +
                          ": another core, so only its choice of SIMD target "
                          "is used. To tune this machine: heed tune\n"),
            std::string::npos)
      << info.out;
  const Result installed =
      Heed("tune install --from " + path + " --to elsewhere");
  EXPECT_NE(installed.out.find("To tune this machine: heed tune"),
            std::string::npos)
      << installed.out;
}

TEST_F(TuneFiles, DoctorFindsAndMendsDamage) {
  const std::string path = Write(SampleRecord(), "records");
  const std::string environment = "HEED_TUNE_PATH=records";
  const std::string doctor = "tune doctor --output records ";
  Result result = Heed(doctor, environment);
  EXPECT_EQ(result.code, 0) << result.out;
  EXPECT_NE(result.out.find(": good, 2 entries"), std::string::npos)
      << result.out;
  // There is a backup only from the second write on.
  Write(SampleRecord(), "records");
  std::ofstream(path + ".tmp.1.2") << "half";
  std::ofstream(path, std::ios::trunc) << "{\"schema\": ";
  result = Heed(doctor, environment);
  EXPECT_EQ(result.code, 65);
  EXPECT_NE(result.out.find("truncated JSON at byte 11"), std::string::npos);
  EXPECT_NE(result.out.find("heed tune doctor --fix restores it"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("left by a writer that was killed"),
            std::string::npos);
  result = Heed(doctor + "--fix", environment);
  EXPECT_EQ(result.code, 0) << result.out;
  EXPECT_EQ(Heed(doctor, environment).code, 0);
  EXPECT_FALSE(fs::exists(path + ".tmp.1.2"));
  Record back;
  std::string why;
  EXPECT_TRUE(ReadRecordFile(path, &back, &why)) << why;
  EXPECT_EQ(back.entries.size(), 2u);
}

// Kernels of this build, measured: what is adopted must pass its verification.
TEST_F(TuneFiles, WhatRunAdoptsVerifyConfirms) {
  const std::string shapes =
      " --shapes b1_hq2_hkv2_q64_k64_d16_f32,b1_hq4_hkv1_q1_k800_d16_f16";
  const Result tuned = Heed(
      "tune run --effort quick --budget 120s --output "
      "records --threads 2 --no-progress" +
      shapes);
  ASSERT_EQ(tuned.code, 0) << tuned.err << tuned.out;
  EXPECT_NE(tuned.out.find("A/A p95"), std::string::npos) << tuned.out;
  // Verification is 95 % sure: now and then it takes a second look.
  int code = 1;
  for (int attempt = 0; attempt < 3 && code != 0; ++attempt) {
    code = Heed("tune verify --record records --budget 60s --seed " +
                std::to_string(attempt + 7))
               .code;
  }
  EXPECT_EQ(code, 0);
  // The same again with --resume: there is nothing left to do.
  const Result again = Heed(
      "tune run --resume --effort quick --budget 120s --output records "
      "--threads 2 --dry-run" +
      shapes);
  EXPECT_EQ(again.code, 0) << again.err;
  // Summary and report are made from record and journal.
  EXPECT_NE(Slurp("records/" + MachineKey(ThisMachine()) + "/summary.md")
                .find("2 classes of shapes"),
            std::string::npos);
  const Result report = Heed("tune report --record records --out page.html");
  ASSERT_EQ(report.code, 0) << report.err;
  const std::string page = Slurp("page.html");
  EXPECT_NE(page.find("</html>"), std::string::npos);
  EXPECT_NE(page.find("The machine meanwhile"), std::string::npos);
  ExpectFailure("tune report --record records --out page.pdf", 2, "page.pdf");
}

TEST_F(TuneFiles, VerifyQuarantinesWhatIsWorse) {
  // A row block of one panel and no copies, where the default is far better.
  heed_problem problem;
  ASSERT_EQ(heed_problem_parse("b1_hq4_hkv4_q512_k512_d64_f32", &problem),
            HEED_OK);
  Record record = SampleRecord();
  record.entries.resize(1);
  RecordEntry& entry = record.entries[0];
  entry.shape_class = ClassOf(problem, 1);
  entry.problem = "b1_hq4_hkv4_q512_k512_d64_f32";
  entry.default_config.tile = {96, 192, Pack::kNone, Pack::kCall, false};
  entry.config.tile = {16, 48, Pack::kTile, Pack::kTile, true};
  const std::string path = Write(record, "records");
  const Result verified = Heed("tune verify --record records --budget 120s");
  EXPECT_EQ(verified.code, 1) << verified.out << verified.err;
  EXPECT_NE(verified.out.find("worse: quarantined"), std::string::npos)
      << verified.out;
  Record back;
  std::string why;
  ASSERT_TRUE(ReadRecordFile(path, &back, &why)) << why;
  EXPECT_EQ(back.entries[0].decision, Decision::kQuarantined);
  // And another machine's record is not for this one to judge.
  ExpectFailure("tune verify --record " + Write(Foreign(), "foreign"), 65,
                "was written for");
}

}  // namespace
}  // namespace heed
