// `heed demo scale`: the figures that show why the divisor is the square root.
#include "tune/scale_demo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli_fixture.h"
#include "tune/canvas.h"

namespace heed {
namespace {

using Json = nlohmann::json;

class DemoTest : public CliFixture {};

// Known to a few digits from large runs: 0.897 as they are and 0.1075 divided
// by the square root at d = 256. Four standard errors: one seed of 16000
// misses.
TEST(ScaleDemo, PeaksAreTheKnownOnes) {
  std::vector<ScaleDemoRow> rows;
  std::string why;
  ASSERT_TRUE(RunScaleDemo({}, &rows, &why)) << why;
  ASSERT_EQ(rows.size(), 7u);
  for (const ScaleDemoRow& row : rows) {
    SCOPED_TRACE(row.dim);
    for (const double error : row.error) {
      EXPECT_GT(error, 0);
      EXPECT_LT(error, 0.01);
    }
    EXPECT_NEAR(row.peak[1], 0.1075, 4 * row.error[1]);
    EXPECT_LT(row.peak[2], 0.03);
    if (row.dim != 256) continue;
    EXPECT_NEAR(row.peak[0], 0.897, 4 * row.error[0]);
  }
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].dim, 2 * rows[i - 1].dim);
    EXPECT_GT(rows[i].peak[0], rows[i - 1].peak[0]);
    EXPECT_LT(rows[i].peak[2], rows[i - 1].peak[2]);
  }
  EXPECT_EQ(rows.front().dim, 16);
  EXPECT_EQ(rows.back().dim, 1024);
}

TEST(ScaleDemo, ASingleKeyHasAllTheWeight) {
  ScaleDemoOptions options;
  options.tokens = options.matrices = 1;
  std::vector<ScaleDemoRow> rows;
  std::string why;
  ASSERT_TRUE(RunScaleDemo(options, &rows, &why)) << why;
  for (const ScaleDemoRow& row : rows) {
    for (const double peak : row.peak) EXPECT_NEAR(peak, 1, 1e-6);
  }
}

TEST(ScaleDemo, TheChartPutsMarksWhereThePeaksAre) {
  const std::string text =
      DrawScaleText({{16, {1, 0.5, 0}, {}}, {32, {0.9, 0.1, 0.1}, {}}});
  EXPECT_EQ(text,
            "       0" + std::string(28, ' ') + "0.5" + std::string(29, ' ') +
                "1\n    16 |d" + std::string(29, ' ') + "s" +
                std::string(29, ' ') + "1|\n    32 |" + std::string(6, ' ') +
                "d" + std::string(47, ' ') + "1" + std::string(6, ' ') +
                "|\n       1: as they are, s: divided by sqrt(d), d: by d\n");
}

TEST_F(DemoTest, PrintsATableAndDrawsAPlot) {
  const Result text = Heed("demo scale --keys 8 --matrices 3");
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* word : {"3 matrices of 8 queries and 8 keys", "sqrt(d)",
                           "  1024  ", "standard deviation sqrt(d)"}) {
    EXPECT_NE(text.out.find(word), std::string::npos) << word << text.out;
  }
  ImageFormat format;
  const bool draws = FindImageFormat("a.png", &format).empty();
  const std::string image = draws ? " --image s.png" : "";
  const Result result =
      Heed("demo scale --keys 8 --matrices 3 --seed 5 --json" + image);
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["rows"].size(), 7u);
  EXPECT_EQ(json["rows"][4]["d"], 256);
  EXPECT_GT(json["rows"][4]["peak"]["1"], json["rows"][4]["peak"]["sqrt(d)"]);
  if (draws) {
    EXPECT_EQ(Slurp("s.png").rfind("\x89PNG\r\n", 0), 0u);
  }
}

TEST_F(DemoTest, HelpAndWrongUsage) {
  const Result help = Heed("demo scale --help");
  EXPECT_EQ(help.code, 0);
  for (const char* word :
       {"--keys", "--matrices", "--seed", "--image", "--json"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  ExpectFailure("demo", 2, "subcommand");
  ExpectFailure("demo mood", 2, "mood");
  ExpectFailure("demo scale --keys 0", 2, "--keys");
  ExpectFailure("demo scale --image p.jpg", 2, "p.jpg");
}

}  // namespace
}  // namespace heed
