// Problem strings: the one name of a problem prints, parses and round-trips;
// anything else is refused with a reason.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "tests/attention_case.h"
#include "tests/input_families.h"
#include "tune/shapes.h"

namespace heed::test {
namespace {

std::string Print(const heed_problem& problem) {
  const size_t length = heed_problem_print(&problem, nullptr, 0);
  std::string text(length + 1, '?');
  EXPECT_EQ(heed_problem_print(&problem, text.data(), text.size()), length);
  text.resize(length);
  return text;
}

bool SameProblem(const heed_problem& a, const heed_problem& b) {
  return a.batch == b.batch && a.heads_q == b.heads_q &&
         a.heads_kv == b.heads_kv && a.len_q == b.len_q && a.len_k == b.len_k &&
         a.dim_qk == b.dim_qk && a.dim_v == b.dim_v && a.dtype == b.dtype &&
         a.scale_mode == b.scale_mode &&
         (a.scale_mode != HEED_SCALE_VALUE || a.scale == b.scale);
}

TEST(ProblemString, RandomProblemsRoundTrip) {
  Random random(9);
  for (int i = 0; i < 2000; ++i) {
    heed_problem p =
        MakeProblem(random.Below(9), random.Below(70), random.Below(70),
                    random.Below(5000), random.Below(5000), random.Below(300),
                    random.Below(300), static_cast<int32_t>(random.Below(4)));
    if (random.Below(3) == 0) p.len_k = p.len_q;
    if (random.Below(2) == 0) {
      p.scale_mode = HEED_SCALE_VALUE;
      p.scale =
          (random.Uniform() - 0.5) * std::pow(10.0, random.Below(40) - 20);
    }
    p.dtype = static_cast<int32_t>(1 + random.Below(3));
    const std::string text = Print(p);
    ASSERT_FALSE(text.empty());
    heed_problem back;
    ASSERT_EQ(heed_problem_parse(text.c_str(), &back), HEED_OK)
        << text << ": " << heed_last_error();
    EXPECT_TRUE(SameProblem(p, back)) << text << " " << Print(back);
    EXPECT_EQ(Print(back), text);
  }
}

TEST(ProblemString, OfTheHeadersExampleMeansWhatItSays) {
  heed_problem p;
  ASSERT_EQ(heed_problem_parse("b1_hq32_hkv8_q2048_k2048_d128_causal_f32", &p),
            HEED_OK);
  const heed_problem want =
      MakeProblem(1, 32, 8, 2048, 2048, 128, 128, HEED_CAUSAL_TOP_LEFT);
  EXPECT_TRUE(SameProblem(p, want));
  EXPECT_EQ(p.causal, want.causal);
}

TEST(ProblemString, OfEveryStandardShapeParses) {
  for (const StandardShape& shape : StandardShapes()) {
    heed_problem p;
    EXPECT_EQ(heed_problem_parse(shape.problem, &p), HEED_OK) << shape.name;
    EXPECT_EQ(Print(p), shape.problem);
  }
}

TEST(ProblemString, AnythingElseIsRefusedAndLeavesTheProblemAlone) {
  for (const char* text : {"",
                           "_",
                           "b1",
                           "b1_hq1_hkv1_q1_k1_d1",
                           "b1_hq1_hkv1_q1_k1_f32",
                           "b1_hq1_hkv1_q1_k1_d1_f31",
                           "b1_hq1_hkv1_q1_k1_d1_f32_",
                           "b1_hq1_hkv1_q1_k1_d1_f32x",
                           "b-1_hq1_hkv1_q1_k1_d1_f32",
                           "b+1_hq1_hkv1_q1_k1_d1_f32",
                           "b 1_hq1_hkv1_q1_k1_d1_f32",
                           "b1_hq1_hkv1_q1_k1_d1_scale_f32",
                           "b1_hq1_hkv1_q1_k1_d1_scalenan_f32",
                           "b1_hq1_hkv1_q1_k1_d1_scaleinf_f32",
                           "b1_hq1_hkv1_q1_k1_d1_scale1e999_f32",
                           "b1_hq1_hkv1_q1_k1_d1_scale1x_f32",
                           "b1_hq1_hkv1_q1_k2_d1_causal_f32",
                           "b1_hq1_hkv1_q1_k1_d1_causalxx_f32",
                           "b99999999999999999999_hq1_hkv1_q1_k1_d1_f32",
                           "hq1_b1_hkv1_q1_k1_d1_f32",
                           "b1_hq1_hkv1_q1_k1_d1_dv_f32",
                           "B1_HQ1_HKV1_Q1_K1_D1_F32",
                           "b1__hq1_hkv1_q1_k1_d1_f32",
                           "b1_hq1_hkv1_q1_k1_d1_f32 "}) {
    heed_problem p;
    std::memset(&p, 0x5A, sizeof(p));
    const heed_problem before = p;
    EXPECT_EQ(heed_problem_parse(text, &p), HEED_INVALID_ARGUMENT) << text;
    EXPECT_EQ(std::memcmp(&p, &before, sizeof(p)), 0) << text;
    EXPECT_STRNE(heed_last_error(), "");
    EXPECT_EQ(std::strchr(heed_last_error(), '\n'), nullptr);
  }
  heed_problem p;
  EXPECT_EQ(heed_problem_parse(nullptr, &p), HEED_INVALID_ARGUMENT);
  EXPECT_EQ(heed_problem_parse("b1", nullptr), HEED_INVALID_ARGUMENT);
}

TEST(ProblemString, CutAnywhereIsRefused) {
  const std::string text =
      "b1_hq32_hkv8_q2048_k2049_d128_dv64_causalbr_scale2_f32";
  for (size_t size = 0; size < text.size(); ++size) {
    heed_problem p;
    EXPECT_NE(heed_problem_parse(text.substr(0, size).c_str(), &p), HEED_OK)
        << text.substr(0, size);
  }
}

TEST(ProblemString, OfAnUnknownEnumIsNotPrinted) {
  heed_problem p = MakeProblem(1, 1, 1, 1, 1, 1, 1);
  p.dtype = 77;
  EXPECT_EQ(heed_problem_print(&p, nullptr, 0), 0u);
}

}  // namespace
}  // namespace heed::test
