// Guard shapes are of the class, at its ends, and never the shape itself; and
// lists of shapes in files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/problem.h"
#include "runtime/shape_class.h"
#include "tune/guard_shapes.h"
#include "tune/shapes.h"
#include "tune/shapes_file.h"

namespace heed {
namespace {

std::vector<std::string> GuardsOf(const std::string& text, int threads = 2) {
  heed_problem problem;
  EXPECT_EQ(heed_problem_parse(text.c_str(), &problem), HEED_OK) << text;
  std::vector<std::string> names;
  for (const heed_problem& guard : GuardShapes(problem, threads)) {
    EXPECT_EQ(ClassOf(guard, threads), ClassOf(problem, threads));
    EXPECT_EQ(ValidateProblem(guard), HEED_OK);
    names.push_back(ToString(guard));
  }
  return names;
}

TEST(GuardShapes, AreTheEndsOfTheClass) {
  EXPECT_EQ(
      GuardsOf("b1_hq8_hkv8_q700_k700_d64_causal_f32"),
      (std::vector<std::string>{"b1_hq8_hkv8_q513_k513_d64_causal_f32",
                                "b1_hq8_hkv8_q1024_k1024_d64_causal_f32"}));
}

TEST(GuardShapes, TakeTheMiddleForAnEndThatIsTheShape) {
  EXPECT_EQ(GuardsOf("b1_hq8_hkv8_q1024_k1024_d64_causal_f32"),
            (std::vector<std::string>{"b1_hq8_hkv8_q513_k513_d64_causal_f32",
                                      "b1_hq8_hkv8_q725_k725_d64_causal_f32"}));
  EXPECT_EQ(GuardsOf("b1_hq32_hkv8_q1_k4096_d128_f32"),
            (std::vector<std::string>{"b1_hq32_hkv8_q1_k2049_d128_f32",
                                      "b1_hq32_hkv8_q1_k2897_d128_f32"}));
}

TEST(GuardShapes, OfEveryStandardShapeAreOfItsClass) {
  std::vector<NamedProblem> shapes;
  std::string why;
  ASSERT_TRUE(ParseShapeList("all", &shapes, &why));
  for (const NamedProblem& shape : shapes) {
    for (const int threads : {1, 2, 16}) {
      const std::vector<std::string> guards = GuardsOf(shape.text, threads);
      EXPECT_GE(guards.size(), 1u) << shape.name;
      for (const std::string& guard : guards) EXPECT_NE(guard, shape.text);
    }
  }
}

class ShapesFile : public ::testing::Test {
 protected:
  std::string Write(const std::string& text) {
    // Tests of this fixture run beside each other.
    path_ = testing::TempDir() + "/heed_shapes_" + std::to_string(getpid()) +
            ".json";
    std::ofstream(path_, std::ios::trunc) << text;
    return path_;
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string WhyNot(const std::string& text) {
    std::vector<NamedProblem> shapes;
    std::string why;
    EXPECT_FALSE(ReadShapes(Write(text), &shapes, &why)) << text;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    return why;
  }
  std::string path_;
};

TEST_F(ShapesFile, HoldsNamesProblemsAndObjects) {
  std::vector<NamedProblem> shapes;
  std::string why;
  ASSERT_TRUE(
      ReadShapes(Write(R"({"shapes": ["vit", "b1_hq2_hkv2_q64_k64_d16_f32",
                {"name": "mine", "problem": "b1_hq2_hkv2_q65_k65_d16_f32"},
                "vit"]})"),
                 &shapes, &why))
      << why;
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0].name, "vit");
  EXPECT_EQ(shapes[2].name, "mine");
  ASSERT_TRUE(ReadShapes(Write(R"(["core"])"), &shapes, &why)) << why;
  EXPECT_EQ(shapes.size(), 11u);
  ASSERT_TRUE(ReadShapes("vit,decode", &shapes, &why)) << why;
}

TEST_F(ShapesFile, ThatIsWrongIsNamed) {
  EXPECT_NE(WhyNot("[\"vit\", \"nonsense\"]").find("shapes[1]: 'nonsense'"),
            std::string::npos);
  EXPECT_NE(WhyNot("[3]").find("expected a string, or an object"),
            std::string::npos);
  for (const char* bad : {"", "{}", "[]", "nonsense", "{\"shapes\": 3}"}) {
    EXPECT_NE(WhyNot(bad).find("expected a JSON array"), std::string::npos);
  }
  EXPECT_NE(WhyNot(std::string(100000, '[')).find("expected a JSON array"),
            std::string::npos);
  std::vector<NamedProblem> shapes;
  std::string why;
  EXPECT_FALSE(ReadShapes("/nonexistent.json", &shapes, &why));
  EXPECT_FALSE(ReadShapes("/", &shapes, &why));
}

}  // namespace
}  // namespace heed
