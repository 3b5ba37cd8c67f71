// Patterns as figures, cells, characters and colours, and tokens' labels.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "tune/colour_map.h"
#include "tune/pattern_grid.h"
#include "tune/pattern_text.h"
#include "tune/token_labels.h"

namespace heed {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// A causal pattern of `len` tokens whose rows see all keys alike.
struct Uniform {
  std::vector<float> weights, scores;
  int64_t len;

  explicit Uniform(int64_t tokens) : len(tokens) {
    for (int64_t query = 0; query < len; ++query) {
      for (int64_t key = 0; key < len; ++key) {
        const bool is_hidden = key > query;
        scores.push_back(is_hidden ? kHidden : 0);
        weights.push_back(is_hidden ? 0 : 1 / static_cast<float>(query + 1));
      }
    }
  }
  PatternView view() const { return {weights.data(), scores.data(), len}; }
};

TEST(Pattern, FiguresAreMeansOverRows) {
  const Uniform uniform(4);
  const PatternFigures figures = FiguresOf(uniform.view());
  const double want = (0 + 1 + std::log2(3) + 2) / 4;
  EXPECT_NEAR(figures.entropy, want, 1e-6);
  EXPECT_NEAR(figures.most_entropy, want, 1e-12);
  EXPECT_NEAR(figures.peak, (1 + 1 / 2. + 1 / 3. + 1 / 4.) / 4, 1e-7);
  EXPECT_EQ(ShareAbove(uniform.view()), 0);
  // Of a row that sees one key only, there is nothing to say.
  const float weights[] = {0.5f, 0.5f, 1, 0}, scores[] = {0, 0, 0, 0};
  const PatternView open = {weights, scores, 2};
  EXPECT_NEAR(FiguresOf(open).entropy, 0.5, 1e-12);
  EXPECT_NEAR(FiguresOf(open).peak, 0.75, 1e-12);
  EXPECT_NEAR(ShareAbove(open), 0.25, 1e-12);
}

TEST(Pattern, RowsThatSeeNothingDoNotCount) {
  const float weights[] = {0, 0, 0.5f, 0.5f};
  const float scores[] = {kHidden, kHidden, 0, 0};
  const PatternFigures figures = FiguresOf({weights, scores, 2});
  EXPECT_NEAR(figures.entropy, 1, 1e-12);
  EXPECT_NEAR(figures.peak, 0.5, 1e-12);
}

TEST(Pattern, CellsHoldTheLargestWeightOfTheirBlock) {
  const Uniform uniform(5);
  const PatternGrid whole = MakeGrid(uniform.view(), 5);
  EXPECT_EQ(whole.cells, 5);
  EXPECT_EQ(whole.block, 1);
  EXPECT_TRUE(whole.IsHidden(1, 2));
  EXPECT_EQ(whole.At(3, 2), 0.25f);
  const PatternGrid grid = MakeGrid(uniform.view(), 4);
  EXPECT_EQ(grid.cells, 3);
  EXPECT_EQ(grid.block, 2);
  EXPECT_EQ(grid.At(0, 0), 1);
  EXPECT_EQ(grid.At(1, 0), 1 / 3.f);
  EXPECT_EQ(grid.At(2, 2), 0.2f);  // of one token
  EXPECT_TRUE(grid.IsHidden(0, 1));
  EXPECT_FALSE(grid.IsHidden(1, 1));
}

TEST(Pattern, CharactersGrowDarkerAndHiddenKeysAreBlank) {
  const Uniform uniform(4);
  const PatternGrid grid = MakeGrid(uniform.view(), 40);
  const std::string text =
      DrawPattern(grid, {"a", "b", "c", "d"}, 1, TextStyle::kAscii);
  EXPECT_EQ(text,
            "a @@\n"
            "b ####\n"
            "c ******\n"
            "d ++++++++\n"
            "  a b c d\n");
  EXPECT_EQ(DrawPattern(grid, {"long", "b", "c", "d"}, 1, TextStyle::kAscii),
            "long @@\n"
            "   b ####\n"
            "   c ******\n"
            "   d ++++++++\n"
            "     long  d\n");
  EXPECT_EQ(DrawLegend(0.5, TextStyle::kAscii),
            "rows are queries, columns keys; weight 0 .:-=+*#%@ 0.5 by its "
            "square root, blank: hidden\n");
}

TEST(Pattern, BlocksHaveColoursAndEndThem) {
  for (const int64_t len : {5, 45, 61}) {
    const Uniform uniform(len);
    const PatternGrid grid = MakeGrid(uniform.view(), kMaxTextCells);
    const std::string text =
        DrawPattern(grid, DefaultLabels({}, len), 1, TextStyle::kBlocks);
    const int64_t lines = std::count(text.begin(), text.end(), '\n');
    EXPECT_EQ(lines, (len <= 40 ? len : (len + 1) / 2) + 1);
    for (size_t at = text.find("\x1b["); at != std::string::npos;
         at = text.find("\x1b[", at + 1)) {
      const size_t line_end = text.find('\n', at);
      EXPECT_LT(text.find("\x1b[0m", at), line_end);
    }
    // No colour but of the 256 that terminals know.
    EXPECT_EQ(text.find(";256"), std::string::npos);
    EXPECT_NE(text.find("8;5;"), std::string::npos);
  }
}

TEST(Pattern, ScaleAndItsInverse) {
  for (const double place : {0.0, 0.25, 0.5, 1.0}) {
    EXPECT_NEAR(ColourPlace(WeightAt(place, 0.3), 0.3), place, 1e-12);
  }
  EXPECT_EQ(ColourPlace(2, 1), 1);
  EXPECT_EQ(ColourPlace(0, 0), 0);
}

// W3C's relative luminance, of colours as screens have them.
double Luminance(const Rgb& colour) {
  const auto linear = [](double c) {
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) +
         0.0722 * linear(colour.blue);
}

// CIE 1976 lightness, 0 to 100.
double Lightness(const Rgb& colour) {
  return 116 * std::cbrt(Luminance(colour)) - 16;
}

TEST(Colours, LightnessRisesEvenly) {
  double last = Lightness(Viridis(0));
  EXPECT_LT(last, 20);
  for (int i = 1; i <= 20; ++i) {
    const double lightness = Lightness(Viridis(i / 20.0));
    EXPECT_GT(lightness - last, 2) << i;
    EXPECT_LT(lightness - last, 6) << i;
    last = lightness;
  }
  EXPECT_GT(last, 88);
  EXPECT_EQ(Viridis(-1).red, Viridis(0).red);
  EXPECT_EQ(Viridis(7).red, Viridis(1).red);
  EXPECT_EQ(Viridis(std::nan("")).green, Viridis(0).green);
}

TEST(Labels, AreCleanedAndCut) {
  EXPECT_EQ(CleanLabel("tok\x1b[2J\n", false), "tok [2J ");
  EXPECT_EQ(CleanLabel("caf\xc3\xa9", false), "caf\xc3\xa9");
  EXPECT_EQ(CleanLabel("caf\xc3\xa9", true), "caf?");
  EXPECT_EQ(CleanLabel("a\xc3", false), "a?");
  EXPECT_EQ(CleanLabel("\xff\xc0\x80", false), "???");
  EXPECT_EQ(CleanLabel("\xed\xa0\x80", false), "???");       // a surrogate
  EXPECT_EQ(CleanLabel("\xf4\x90\x80\x80", false), "????");  // past U+10FFFF
  EXPECT_EQ(CleanLabel("\xc2\x9b", false), "?");             // a control
  EXPECT_EQ(CleanLabel("\xf0\x9f\x99\x82", false), "\xf0\x9f\x99\x82");
  EXPECT_EQ(CleanLabel("internationalisation", true), "internation~");
  EXPECT_EQ(LabelLength(CleanLabel(std::string(40, '\xe9'), false)), 12u);
  EXPECT_EQ(LabelLength("caf\xc3\xa9"), 4u);
}

TEST(Labels, AreTheLinesOfAFile) {
  const std::string path =
      testing::TempDir() + "/heed_labels_" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << "one\n\nthree";
  std::vector<std::string> labels;
  std::string why;
  ASSERT_TRUE(ReadLabels(path, 3, &labels, &why)) << why;
  EXPECT_EQ(labels, (std::vector<std::string>{"one", "", "three"}));
  EXPECT_FALSE(ReadLabels(path, 2, &labels, &why));
  EXPECT_EQ(why, path + ": 3 lines; expected 2, one for each token");
  EXPECT_EQ(DefaultLabels({}, 2), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(DefaultLabels({7, 9}, 2), (std::vector<std::string>{"7", "9"}));
}

}  // namespace
}  // namespace heed
