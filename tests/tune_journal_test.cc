// The journal: what is good of it is read, whatever happened to the rest, and a
// run goes on where it was.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/record_samples.h"
#include "tune/journal.h"
#include "tune/journal_lines.h"
#include "tune/resume.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (fs::temp_directory_path() / "heed_journal_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string Path(const std::string& name = "journal-1.jsonl") const {
    return dir_ + "/" + name;
  }
  std::string Slurp(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Fill(const std::string& path, int lines) {
    std::string why;
    const auto journal = Journal::Open(path, &why);
    ASSERT_NE(journal, nullptr) << why;
    for (int i = 0; i < lines; ++i) {
      ASSERT_TRUE(journal->Write({{"kind", "round"}, {"number", i}}));
    }
  }
  JournalText Read(const std::string& path) const {
    JournalText text;
    std::string why;
    EXPECT_TRUE(ReadJournal(path, &text, &why)) << why;
    return text;
  }
  std::string dir_;
};

TEST_F(JournalTest, EveryLineIsJsonWithItsSum) {
  Fill(Path(), 3);
  const JournalText text = Read(Path());
  ASSERT_EQ(text.lines.size(), 3u);
  EXPECT_EQ(text.damaged, 0u);
  EXPECT_EQ(text.lines[2]["number"], 2);
  std::ifstream file(Path());
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["crc32"].get<std::string>().size(), 8u);
    EXPECT_EQ(json["line"]["kind"], "round");
  }
}

TEST_F(JournalTest, ATornLastLineIsDroppedAndTheNextRunWritesOn) {
  Fill(Path(), 5);
  const std::string whole = Slurp(Path());
  for (size_t cut = 1; cut < 40; ++cut) {
    std::ofstream(Path(), std::ios::binary | std::ios::trunc)
        << whole.substr(0, whole.size() - cut);
    Fill(Path(), 1);
    const JournalText text = Read(Path());
    // Without its newline a line is still whole.
    EXPECT_EQ(text.lines.size(), cut == 1 ? 6u : 5u) << cut;
    EXPECT_LE(text.damaged, 1u);
  }
}

TEST_F(JournalTest, AnyFlippedBitCostsItsLineOnly) {
  Fill(Path(), 4);
  const std::string whole = Slurp(Path());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 0x04);
    std::ofstream(Path(), std::ios::binary | std::ios::trunc) << bad;
    const JournalText text = Read(Path());
    EXPECT_GE(text.lines.size(), 2u) << i;
    EXPECT_LT(text.lines.size(), 4u) << i;
  }
}

TEST_F(JournalTest, AFullDiskEndsTheJournalAndNotTheRun) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  std::string why;
  const auto journal = Journal::Open("/dev/full", &why);
  if (journal == nullptr) GTEST_SKIP() << why;
  EXPECT_FALSE(journal->Write({{"kind", "round"}}));
  EXPECT_FALSE(journal->Write({{"kind", "round"}}));
}

TEST_F(JournalTest, WhatIsNoJournalIsRefused) {
  JournalText text;
  std::string why;
  EXPECT_FALSE(ReadJournal(Path("missing.jsonl"), &text, &why));
  EXPECT_NE(why.find("No such file"), std::string::npos);
  EXPECT_FALSE(ReadJournal(dir_, &text, &why));
  EXPECT_EQ(Journal::Open(dir_ + "/no/where.jsonl", &why), nullptr);
}

TuneOptions SampleOptions() {
  TuneOptions options;
  std::string why;
  ParseShapeList(
      "b1_hq4_hkv4_q1024_k1024_d64_causal_f32,b1_hq32_hkv8_q1_k4096_d128_f32,"
      "vit",
      &options.shapes, &why);
  options.threads = 2;
  options.effort = Efforts().back();
  options.run_id = "20260102T030405Z-0a1b2c3d";
  return options;
}

class ResumeTest : public JournalTest {
 protected:
  // A run that was killed after its first class.
  void WriteKilledRun(const TuneOptions& options) {
    std::string why;
    const auto journal = Journal::Open(Path(), &why);
    ASSERT_NE(journal, nullptr);
    const Record record = test::SampleRecord();
    journal->Write(RunLine(options, "key", record.runs[0]));
    journal->Write(ClassLine(0, options.shapes[0], 2, {{"AVX2", Config{}}}, 1));
    journal->Write(EntryLine(0, record.entries[0]));
    journal->Write(ClassLine(1, options.shapes[1], 2, {{"AVX2", Config{}}}, 1));
  }
};

TEST_F(ResumeTest, GoesOnAfterTheLastClassThatWasDone) {
  const TuneOptions options = SampleOptions();
  WriteKilledRun(options);
  const Resumed resumed = FindUnfinished(dir_, options, "key");
  EXPECT_EQ(resumed.path, Path());
  EXPECT_EQ(resumed.run_id, test::SampleRecord().runs[0].id);
  EXPECT_EQ(resumed.classes, 2u);
  ASSERT_EQ(resumed.entries.size(), 1u);
  const std::vector<NamedProblem> rest =
      NotYetDone(options.shapes, resumed.entries, 2);
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest[0].text, options.shapes[1].text);
}

TEST_F(ResumeTest, AClassThatHadMoreRoundsIsDoneOnceAndAsItEndedLast) {
  const TuneOptions options = SampleOptions();
  WriteKilledRun(options);
  RecordEntry again = test::SampleRecord().entries[0];
  again.rounds = 777;
  std::string why;
  Journal::Open(Path(), &why)->Write(EntryLine(0, again));
  const Resumed resumed = FindUnfinished(dir_, options, "key");
  ASSERT_EQ(resumed.entries.size(), 1u);
  EXPECT_EQ(resumed.entries[0].rounds, 777);
}

TEST_F(ResumeTest, OnlyARunOnTheSameTermsIsGoneOnWith) {
  const TuneOptions options = SampleOptions();
  WriteKilledRun(options);
  EXPECT_TRUE(FindUnfinished(dir_, options, "another key").path.empty());
  TuneOptions other = options;
  other.seed = 99;
  EXPECT_TRUE(FindUnfinished(dir_, other, "key").path.empty());
  other = options;
  other.threads = 1;
  EXPECT_TRUE(FindUnfinished(dir_, other, "key").path.empty());
  other = options;
  other.min_gain = 0.02;
  EXPECT_TRUE(FindUnfinished(dir_, other, "key").path.empty());
}

TEST_F(ResumeTest, WhatHasEndedIsNotGoneOnWithAndWhatWasInterruptedIs) {
  const TuneOptions options = SampleOptions();
  WriteKilledRun(options);
  std::string why;
  Journal::Open(Path(), &why)->Write(EndLine(true));
  EXPECT_EQ(FindUnfinished(dir_, options, "key").path, Path());
  Journal::Open(Path(), &why)->Write(EndLine(false));
  EXPECT_TRUE(FindUnfinished(dir_, options, "key").path.empty());
  EXPECT_TRUE(FindUnfinished(dir_ + "/no", options, "key").path.empty());
}

}  // namespace
}  // namespace heed
