// Problem strings: the one name of a problem prints, parses and round-trips;
// anything else is refused with a reason.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "runtime/problem.h"
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
         (a.scale_mode != HEED_SCALE_VALUE || a.scale == b.scale) &&
         a.window == b.window &&
         (a.window == 0 || (a.window_left == b.window_left &&
                            a.window_right == b.window_right)) &&
         (!ReadsAlign(a) || a.align == b.align) && a.softcap == b.softcap &&
         a.mask == b.mask && a.alibi == b.alibi && a.sinks == b.sinks &&
         a.ragged == b.ragged && a.page_size == b.page_size;
}

// Some of everything beside the sizes, the causal line and the scale.
void AddOptions(Random* random, heed_problem* p) {
  const auto coin = [random] { return static_cast<int32_t>(random->Below(2)); };
  p->window = coin();
  p->window_left = random->Below(3) == 0 ? -1 : random->Below(5000);
  p->window_right = random->Below(3) == 0 ? -1 : random->Below(5000);
  p->alibi = coin();
  p->align = static_cast<int32_t>(1 + random->Below(3));
  if (coin() != 0) {
    p->softcap = (random->Uniform() + 1e-9) *
                 std::pow(10.0, static_cast<double>(random->Below(40) - 20));
  }
  p->mask = static_cast<int32_t>(random->Below(4));
  p->sinks = coin();
  p->ragged = coin();
  p->page_size = coin() * random->Below(300);
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
    if (random.Below(2) == 0) AddOptions(&random, &p);
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

TEST(ProblemString, NamesEveryOptionInOneOrder) {
  heed_problem p =
      MakeProblem(2, 8, 2, 5, 90, 64, 32, HEED_CAUSAL_BOTTOM_RIGHT);
  p.window = 1;
  p.window_left = 4095;
  p.window_right = 0;
  p.softcap = 50;
  p.alibi = p.sinks = p.ragged = 1;
  p.mask = HEED_MASK_BOOL;
  p.page_size = 16;
  p.scale_mode = HEED_SCALE_VALUE;
  p.scale = 0.125;
  EXPECT_EQ(Print(p),
            "b2_hq8_hkv2_q5_k90_d64_dv32_causalbr_win4095x0_cap50_alibi_"
            "maskbool_sinks_ragged_page16_scale0.125_f32");
  p = MakeProblem(1, 1, 1, 7, 7, 8, 8);
  p.window = 1;
  p.window_left = -1;
  p.window_right = 3;
  p.align = HEED_ALIGN_TOP_LEFT;
  p.mask = HEED_MASK_F32;
  EXPECT_EQ(Print(p), "b1_hq1_hkv1_q7_k7_d8_wininfx3_aligntl_maskf32_f32");
  p.align = HEED_ALIGN_BOTTOM_RIGHT;
  p.mask = HEED_MASK_DTYPE;
  EXPECT_EQ(Print(p), "b1_hq1_hkv1_q7_k7_d8_wininfx3_alignbr_maskown_f32");
  p.window = 0;
  p.mask = HEED_MASK_NONE;
  EXPECT_EQ(Print(p), "b1_hq1_hkv1_q7_k7_d8_f32");
  p.alibi = 1;
  p.align = HEED_ALIGN_OFFSET;
  EXPECT_EQ(Print(p), "b1_hq1_hkv1_q7_k7_d8_alignoff_alibi_f32");
  // The corners differ where lengths may.
  p.causal = HEED_CAUSAL_TOP_LEFT;
  EXPECT_EQ(Print(p), "b1_hq1_hkv1_q7_k7_d8_causal_alibi_f32");
  p.ragged = 1;
  EXPECT_EQ(Print(p), "b1_hq1_hkv1_q7_k7_d8_causaltl_alibi_ragged_f32");
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
                           "b1_hq1_hkv1_q1_k1_d1_win_aligntl_f32",
                           "b1_hq1_hkv1_q1_k1_d1_win3_aligntl_f32",
                           "b1_hq1_hkv1_q1_k1_d1_win3x_aligntl_f32",
                           "b1_hq1_hkv1_q1_k1_d1_win-1x0_aligntl_f32",
                           "b1_hq1_hkv1_q1_k1_d1_win1x2x3_aligntl_f32",
                           "b1_hq1_hkv1_q1_k1_d1_win1x2_f32",
                           "b1_hq1_hkv1_q1_k1_d1_alibi_f32",
                           "b1_hq1_hkv1_q1_k1_d1_aligntl_f32",
                           "b1_hq1_hkv1_q1_k1_d1_causal_win1x2_aligntl_f32",
                           "b1_hq1_hkv1_q1_k1_d1_alignxx_alibi_f32",
                           "b1_hq1_hkv1_q1_k1_d1_alibi_aligntl_f32",
                           "b1_hq1_hkv1_q1_k1_d1_cap_f32",
                           "b1_hq1_hkv1_q1_k1_d1_cap0_f32",
                           "b1_hq1_hkv1_q1_k1_d1_cap-1_f32",
                           "b1_hq1_hkv1_q1_k1_d1_capnan_f32",
                           "b1_hq1_hkv1_q1_k1_d1_mask_f32",
                           "b1_hq1_hkv1_q1_k1_d1_maskf16_f32",
                           "b1_hq1_hkv1_q1_k1_d1_maskbool4x4_maskf32_f32",
                           "b1_hq1_hkv1_q1_k1_d1_maskbool4x4_maskbool_f32",
                           "b1_hq1_hkv1_q1_k1_d1_sinks_maskbool_f32",
                           "b1_hq1_hkv1_q1_k1_d1_sinks_sinks_f32",
                           "b1_hq1_hkv1_q1_k1_d1_causal_ragged_f32",
                           "b1_hq1_hkv1_q1_k1_d1_page_f32",
                           "b1_hq1_hkv1_q1_k1_d1_page0_f32",
                           "b1_hq1_hkv1_q1_k1_d1_page16_ragged_f32",
                           "b1_hq1_hkv1_q1_k1_d1_scale2_page16_f32",
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
      "b1_hq32_hkv8_q2048_k2049_d128_dv64_causalbr_win9x0_cap3_alibi_maskown_"
      "sinks_ragged_page8_scale2_f32";
  for (size_t size = 0; size < text.size(); ++size) {
    heed_problem p;
    EXPECT_NE(heed_problem_parse(text.substr(0, size).c_str(), &p), HEED_OK)
        << text.substr(0, size);
  }
}

TEST(ProblemString, OfAnUnknownValueIsNotPrinted) {
  const heed_problem good =
      MakeProblem(1, 1, 1, 1, 1, 1, 1, HEED_CAUSAL_TOP_LEFT);
  EXPECT_NE(Print(good), "");
  for (int32_t heed_problem::*field :
       {&heed_problem::dtype, &heed_problem::causal, &heed_problem::scale_mode,
        &heed_problem::window, &heed_problem::mask, &heed_problem::alibi,
        &heed_problem::sinks, &heed_problem::ragged}) {
    heed_problem p = good;
    p.*field = 77;
    EXPECT_EQ(heed_problem_print(&p, nullptr, 0), 0u);
  }
  heed_problem p = good;
  p.softcap = -1;
  EXPECT_EQ(heed_problem_print(&p, nullptr, 0), 0u);
  p = good;
  p.page_size = -1;
  EXPECT_EQ(heed_problem_print(&p, nullptr, 0), 0u);
  p = good;
  p.window = 1;
  p.window_left = -2;
  EXPECT_EQ(heed_problem_print(&p, nullptr, 0), 0u);
  p = good;
  p.causal = HEED_CAUSAL_NONE;
  p.alibi = 1;
  EXPECT_EQ(heed_problem_print(&p, nullptr, 0), 0u);
}

}  // namespace
}  // namespace heed::test
