// The table of shapes, lists of shapes, what a shape costs, and durations.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "runtime/tile_text.h"
#include "tune/budget.h"
#include "tune/shapes.h"

namespace heed {
namespace {

TEST(Shapes, EachIsAProblemWithANameOfItsOwn) {
  std::set<std::string> names, problems;
  for (const StandardShape& shape : StandardShapes()) {
    heed_problem problem;
    EXPECT_EQ(heed_problem_parse(shape.problem, &problem), HEED_OK)
        << shape.name << ": " << heed_last_error();
    char text[256];
    heed_problem_print(&problem, text, sizeof(text));
    EXPECT_STREQ(text, shape.problem) << shape.name;
    EXPECT_TRUE(names.insert(shape.name).second) << shape.name;
    EXPECT_TRUE(problems.insert(shape.problem).second) << shape.name;
    EXPECT_EQ(FindStandardShape(shape.name), &shape);
    heed_problem not_a_problem;
    EXPECT_NE(heed_problem_parse(shape.name, &not_a_problem), HEED_OK)
        << "a name must not be a problem string: " << shape.name;
  }
  EXPECT_EQ(FindStandardShape("nothing"), nullptr);
  const auto& all = StandardShapes();
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const StandardShape& s) { return s.core; }),
            11);
}

TEST(Shapes, ListsTakeNamesProblemsAndWords) {
  std::vector<NamedProblem> shapes;
  std::string why;
  ASSERT_TRUE(ParseShapeList("core", &shapes, &why)) << why;
  EXPECT_EQ(shapes.size(), 11u);
  ASSERT_TRUE(ParseShapeList("all", &shapes, &why)) << why;
  EXPECT_EQ(shapes.size(), StandardShapes().size());
  ASSERT_TRUE(
      ParseShapeList("vit,b1_hq1_hkv1_q5_k5_d8_f32,vit,core", &shapes, &why))
      << why;
  ASSERT_EQ(shapes.size(), 12u);
  EXPECT_EQ(shapes[0].name, "vit");
  EXPECT_EQ(shapes[0].problem.batch, 8);
  EXPECT_EQ(shapes[1].name, "b1_hq1_hkv1_q5_k5_d8_f32");
  for (const char* bad : {"", ",", "vit,", "vitt", "b1_hq1"}) {
    EXPECT_FALSE(ParseShapeList(bad, &shapes, &why)) << bad;
    EXPECT_EQ(why.find('\n'), std::string::npos);
    EXPECT_FALSE(why.empty());
  }
}

TEST(Shapes, VisiblePairsAreWhatCountingGives) {
  for (const int64_t len_q : {0, 1, 4, 7, 20}) {
    for (const int64_t len_k : {0, 1, 5, 7, 31}) {
      for (const int causal : {HEED_CAUSAL_NONE, HEED_CAUSAL_TOP_LEFT,
                               HEED_CAUSAL_BOTTOM_RIGHT, HEED_CAUSAL_OFFSET}) {
        for (const int64_t given : {-40, -6, 0, 3, 40}) {
          heed_problem problem;
          heed_problem_init(&problem);
          problem.len_q = len_q;
          problem.len_k = len_k;
          problem.causal = causal;
          int64_t offset = given;
          if (causal == HEED_CAUSAL_TOP_LEFT) offset = 0;
          if (causal == HEED_CAUSAL_BOTTOM_RIGHT) offset = len_k - len_q;
          int64_t pairs = 0;
          for (int64_t i = 0; i < len_q; ++i) {
            for (int64_t j = 0; j < len_k; ++j) {
              pairs += causal == HEED_CAUSAL_NONE || j <= i + offset;
            }
          }
          EXPECT_EQ(VisiblePairs(problem, given), static_cast<double>(pairs))
              << len_q << " " << len_k << " " << causal << " " << given;
        }
      }
    }
  }
}

TEST(Budget, DurationsParseOrSayWhy) {
  double seconds = 0;
  std::string why;
  const struct {
    const char* text;
    double seconds;
  } good[] = {
      {"90", 90}, {"120s", 120}, {"2m", 120}, {"1.5m", 90}, {"1h", 3600}};
  for (const auto& row : good) {
    EXPECT_TRUE(ParseDuration(row.text, &seconds, &why)) << row.text;
    EXPECT_EQ(seconds, row.seconds) << row.text;
  }
  for (const char* bad : {"", "s", "-5s", "0", "2 m", "1d", "inf", "nan",
                          "0x10", "1e999", "5ms"}) {
    EXPECT_FALSE(ParseDuration(bad, &seconds, &why)) << bad;
    EXPECT_NE(why.find(bad), std::string::npos);
  }
  EXPECT_EQ(DurationText(47.2), "47 s");
  EXPECT_EQ(DurationText(125), "2 min 05 s");
}

TEST(Budget, SharesAddUpToTheBudget) {
  double left = 100, used = 0;
  std::vector<double> wants = {10, 50, 200, 40};
  while (!wants.empty()) {
    const double share = Share(left, wants);
    EXPECT_GT(share, 0);
    left -= share;
    used += share;
    wants.erase(wants.begin());
  }
  EXPECT_NEAR(used, 100, 1e-9);
  EXPECT_DOUBLE_EQ(Share(90, {10, 20}), 30);
  EXPECT_EQ(Share(0, {10, 20}), 0);
  EXPECT_EQ(Share(-1, {10}), 0);
}

TEST(TileOption, ParsesOrNamesTheField) {
  heed_tile tile;
  std::string why;
  ASSERT_TRUE(ParseTileOption("row_block=96,pack_v=1,pack_k=0", &tile, &why));
  EXPECT_EQ(tile.row_block, 96);
  EXPECT_EQ(tile.key_tile, 0);
  EXPECT_EQ(tile.pack_v, 2);
  EXPECT_EQ(tile.pack_k, 1);
  EXPECT_EQ(tile.prefetch, 0);
  for (const char* bad :
       {"", "row_block", "row_block=", "row_block=0", "row_block=-1",
        "row_block=9x", "key_tile=99999999999", "pack_k=3", "rows=3",
        "row_block=96,,pack_k=0"}) {
    EXPECT_FALSE(ParseTileOption(bad, &tile, &why)) << bad;
    EXPECT_EQ(why.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace heed
