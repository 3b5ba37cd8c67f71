// The report is drawn from record and journal alone, loads nothing, and nothing
// in a record can break out of it.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/record_samples.h"
#include "tune/journal_lines.h"
#include "tune/publish.h"
#include "tune/report_data.h"
#include "tune/resume.h"
#include "tune/svg.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (fs::temp_directory_path() / "heed_report_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }

  ReportData Load(const Record& record) {
    std::string path, why;
    EXPECT_TRUE(WriteRecordFile(dir_, record, &path, &why)) << why;
    ReportData data;
    EXPECT_TRUE(LoadReport(
        path, JournalsIn(fs::path(path).parent_path().string()), &data, &why))
        << why;
    return data;
  }

  // A race of four candidates, of which the third is 5 % faster.
  void WriteJournal(const Record& record) {
    const std::string folder = dir_ + "/" + record.machine_key;
    fs::create_directories(folder);
    std::string why;
    const auto journal = Journal::Open(folder + "/journal-1.jsonl", &why);
    ASSERT_NE(journal, nullptr) << why;
    journal->Write(RunLine(TuneOptions{}, record.machine_key, record.runs[0]));
    NamedProblem shape;
    shape.name = "mine";
    shape.text = record.entries[0].problem;
    ASSERT_EQ(heed_problem_parse(shape.text.c_str(), &shape.problem), HEED_OK);
    std::vector<Candidate> candidates;
    for (const size_t block : {48, 96}) {
      for (const size_t tile : {96, 192}) {
        candidates.push_back(
            {"AVX2", {{block, tile, Pack::kNone, Pack::kNone, false}, {}}});
      }
    }
    journal->Write(ClassLine(0, shape, 2, candidates, 1));
    for (int i = 0; i < 10; ++i) {
      Round round;
      round.order = {0, 1, 2, 3};
      round.seconds = {1e-3, 1.1e-3, 1e-3 / 1.05, 1.02e-3};
      round.canary = {5e-10, 5e-10, 5e-10, 5e-10};
      round.start = 100 + i;
      if (i == 4) round.discarded = "steal";
      journal->Write(
          RoundLine(0, i < 7 ? "search" : "confirm", {0, 1, 2, 3}, round));
      round.order = {0, 1};
      round.seconds = {1e-3, 1e-3};
      round.canary = {5e-10, 6e-10};
      journal->Write(RoundLine(0, "noise", {0, 1}, round));
    }
  }

  std::string dir_;
};

TEST_F(ReportTest, KnowsWhatTheJournalTells) {
  const Record record = test::SampleRecord();
  WriteJournal(record);
  const ReportData data = Load(record);
  ASSERT_EQ(data.classes.size(), 2u);
  const ReportClass& c = data.classes[0];
  EXPECT_EQ(c.name, "mine");
  ASSERT_EQ(c.candidates.size(), 4u);
  EXPECT_EQ(c.candidates[2].rounds, 6u);
  EXPECT_NEAR(c.candidates[2].gain, 1.05, 1e-3);
  EXPECT_EQ(c.rounds.size(), 10u);
  EXPECT_EQ(data.aa_ratios.size(), 9u);
  EXPECT_EQ(data.timeline.size(), 20u);
  EXPECT_NEAR(data.best_canary, 500, 1e-6);
  EXPECT_TRUE(data.classes[1].candidates.empty());
  EXPECT_NEAR(MeanGain(data.record), std::sqrt(1.0625), 1e-9);
}

TEST_F(ReportTest, HtmlIsOnePageThatLoadsNothing) {
  const Record record = test::SampleRecord();
  WriteJournal(record);
  const std::string page = ReportHtml(Load(record));
  for (const char* word : {"<script", "http:", "https:", "src=", "href=",
                           "url(", "nan", "inf\""}) {
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  }
  for (const char* tag : {"svg", "div", "table", "p", "main", "rect", "text"}) {
    EXPECT_EQ(Count(page, std::string("<") + tag + ">") +
                  Count(page, std::string("<") + tag + " "),
              Count(page, std::string("</") + tag + ">"))
        << tag;
  }
  // Gains, roofline, race, heat map, noise.
  EXPECT_EQ(Count(page, "<svg"), 5u);
  EXPECT_NE(page.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(page.find("AVX2.rb96.kt96"), std::string::npos);
}

TEST_F(ReportTest, WithoutAJournalThereIsStillAReport) {
  const ReportData data = Load(test::SampleRecord());
  EXPECT_EQ(Count(ReportHtml(data), "<svg"), 2u);
  const std::string text = ReportMarkdown(data);
  EXPECT_NE(text.find("1 adopted, 1 kept the default"), std::string::npos)
      << text;
  EXPECT_NE(text.find("default kept: nothing seemed faster"),
            std::string::npos);
}

TEST_F(ReportTest, NothingInARecordIsMarkup) {
  Record record = test::SampleRecord();
  record.machine.brand = "<img src=x onerror=alert(1)>&\"";
  record.entries[1].reason = "<b>because</b>";
  record.runs[0].argv = {"</td><script>"};
  const std::string page = ReportHtml(Load(record));
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;img src=x"), std::string::npos);
}

TEST_F(ReportTest, AJournalOfNonsenseIsPassedOver) {
  const Record record = test::SampleRecord();
  WriteJournal(record);
  const std::string path = dir_ + "/" + record.machine_key + "/journal-1.jsonl";
  {
    std::ofstream file(path, std::ios::app);
    for (const char* line : {"{}", "{\"kind\":3}",
                             "{\"kind\":\"round\",\"order\":[-1],\"ns\":[1]}",
                             "{\"kind\":\"round\",\"order\":\"x\"}",
                             "{\"kind\":\"class\",\"candidates\":[3]}",
                             "{\"kind\":\"round\",\"class\":0,\"phase\":"
                             "\"search\",\"order\":[99999],"
                             "\"ns\":[1]}"}) {
      file << SealLine(JournalLine::parse(line));
    }
    file << "garbage\n";
  }
  const ReportData data = Load(record);
  EXPECT_EQ(data.damaged_lines, 1u);
  EXPECT_FALSE(ReportHtml(data).empty());
}

TEST(ScaleTest, TicksAreRoundNumbersWithin) {
  const Scale linear(0.97, 1.32, 0, 100, false);
  for (const double tick : linear.Ticks(8)) {
    EXPECT_GE(tick, 0.97 - 1e-9);
    EXPECT_LE(tick, 1.32 + 1e-9);
  }
  EXPECT_GE(linear.Ticks(8).size(), 4u);
  const Scale decades(3, 450, 0, 100, true);
  EXPECT_EQ(decades.Ticks(8), (std::vector<double>{5, 10, 20, 50, 100, 200}));
  EXPECT_EQ(Escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  // A single value is no range, and no division by zero.
  EXPECT_EQ(Scale(1, 1, 0, 10, false)(1), 0);
}

}  // namespace
}  // namespace heed
