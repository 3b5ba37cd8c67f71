// Promises P1 to P4 and P8: what rows without keys, invisible keys, NaN,
// extreme logits and empty tensors give.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/input_families.h"
#include "tests/kernel_call.h"
#include "tests/special_values.h"

namespace heed::test {
namespace {

// Every target and every tile, since each has its own careful path.
std::vector<Settings> AllSettings() {
  std::vector<Settings> all;
  for (const std::string& target : TargetNames(/*fused_only=*/false)) {
    Settings settings;
    settings.target = target;
    all.push_back(settings);
    settings.pinned = true;
    for (const heed_tile& tile : VariedTiles()) {
      settings.tile = tile;
      all.push_back(settings);
    }
  }
  return all;
}

// Rows [0, tokens) of every head.
Result FirstTokens(const Result& all, const heed_problem& p, int64_t tokens) {
  Result first;
  for (int64_t head = 0; head < p.batch * p.heads_q; ++head) {
    const int64_t row = head * p.len_q;
    first.lse.insert(first.lse.end(), all.lse.begin() + row,
                     all.lse.begin() + row + tokens);
    first.out.insert(first.out.end(), all.out.begin() + row * p.dim_v,
                     all.out.begin() + (row + tokens) * p.dim_v);
  }
  return first;
}

TEST(Visibility, EmptyRowIsZeroWithLogSumMinusInfinity) {
  // Tokens 0 to 6 see nothing.
  Case c = NormalCase(MakeProblem(2, 3, 1, 20, 9, 16, 24, HEED_CAUSAL_OFFSET),
                      1, -7);
  std::fill(c.k.begin(), c.k.begin() + 16, kNan);
  for (const Settings& settings : AllSettings()) {
    const Result got = RunHeed(c, settings);
    ASSERT_EQ(got.status, HEED_OK) << got.error;
    const Result empty = FirstTokens(got, c.problem, 7);
    for (const float x : empty.out) {
      ASSERT_TRUE(SameBits(x, 0.0f)) << x << " " << NameOf(settings);
    }
    for (const float x : empty.lse)
      ASSERT_EQ(x, -kInfinity) << NameOf(settings);
  }
}

TEST(Visibility, LaterKeysAndValuesHaveNoInfluenceWhateverTheyHold) {
  for (const int64_t dim : {64, 15, 128}) {
    const heed_problem p =
        MakeProblem(1, 2, 1, 101, 101, dim, dim + 1, HEED_CAUSAL_TOP_LEFT);
    const Case clean = NormalCase(p);
    for (const int64_t kept : {1, 5, 47, 48, 49, 96, 100}) {
      for (const float poison : {kNan, kInfinity, -kInfinity, 1e38f}) {
        Case dirty = clean;
        std::fill(dirty.k.begin() + kept * p.dim_qk, dirty.k.end(), poison);
        std::fill(dirty.v.begin() + kept * p.dim_v, dirty.v.end(), poison);
        for (const Settings& settings : AllSettings()) {
          const Result want = FirstTokens(RunHeed(clean, settings), p, kept);
          const Result got = FirstTokens(RunHeed(dirty, settings), p, kept);
          ASSERT_EQ(Difference(got, want), "")
              << kept << " keys kept, then " << poison << ", dim " << dim << " "
              << NameOf(settings);
        }
      }
    }
  }
}

TEST(Visibility, EachKeyPoisonedAloneReachesOnlyTheRowsThatSeeIt) {
  const heed_problem p =
      MakeProblem(1, 1, 1, 60, 60, 24, 24, HEED_CAUSAL_TOP_LEFT);
  const Case clean = NormalCase(p);
  for (int64_t key = 1; key < 60; ++key) {
    Case dirty = clean;
    std::fill_n(dirty.v.begin() + key * 24, 24, kNan);
    const Result want = RunHeed(clean);
    const Result got = RunHeed(dirty);
    ASSERT_EQ(Difference(FirstTokens(got, p, key), FirstTokens(want, p, key)),
              "")
        << key;
    for (size_t i = key * 24; i < got.out.size(); ++i) {
      ASSERT_TRUE(std::isnan(got.out[i])) << key << " at " << i;
    }
  }
}

TEST(Visibility, InvisibleRowsOfTheQueryDoNotMatterToOthers) {
  const heed_problem p = MakeProblem(1, 4, 2, 33, 50, 16, 16);
  const Case clean = NormalCase(p);
  Case dirty = clean;
  // Token 20 of every head.
  for (int64_t head = 0; head < 4; ++head) {
    std::fill_n(dirty.q.begin() + (head * 33 + 20) * 16, 16, kNan);
  }
  for (const Settings& settings : AllSettings()) {
    const Result want = RunHeed(clean, settings);
    Result got = RunHeed(dirty, settings);
    for (int64_t head = 0; head < 4; ++head) {
      const int64_t row = head * 33 + 20;
      ASSERT_TRUE(std::isnan(got.out[row * 16])) << NameOf(settings);
      got.lse[row] = want.lse[row];
      std::copy_n(want.out.begin() + row * 16, 16, got.out.begin() + row * 16);
    }
    ASSERT_EQ(Difference(got, want), "") << NameOf(settings);
  }
}

TEST(Visibility, VisibleNanReachesEveryElementOfItsRow) {
  for (const uint32_t payload : {0x7FC00000u, 0x7FFFFFFFu, 0xFFC12345u}) {
    for (const int64_t key : {0, 47, 48, 95, 767, 768, 799}) {
      Case c = NormalCase(MakeProblem(1, 1, 1, 9, 800, 8, 24));
      std::memcpy(&c.k[key * 8 + 3], &payload, sizeof(payload));
      for (const Settings& settings : AllSettings()) {
        const Result got = RunHeed(c, settings);
        for (const float x : got.out) {
          ASSERT_TRUE(std::isnan(x)) << key << " " << NameOf(settings);
        }
        for (const float x : got.lse) {
          ASSERT_TRUE(std::isnan(x)) << key << " " << NameOf(settings);
        }
      }
    }
  }
}

TEST(Visibility, VisibleNanInOneValueColumnStaysInThatColumn) {
  Case c = NormalCase(MakeProblem(1, 1, 1, 9, 100, 8, 24));
  c.v[50 * 24 + 7] = kNan;
  for (const Settings& settings : AllSettings()) {
    const Result got = RunHeed(c, settings);
    for (size_t i = 0; i < got.out.size(); ++i) {
      ASSERT_EQ(std::isnan(got.out[i]), i % 24 == 7) << i << NameOf(settings);
    }
  }
}

TEST(Visibility, OneDominantLogitGivesItsValueWhereverItLies) {
  for (const float logit : {1e3f, 1e6f, 1e9f, 1e30f}) {
    for (const int64_t key : {0, 47, 48, 767, 768, 800}) {
      Case c = NormalCase(MakeProblem(1, 1, 1, 3, 801, 1, 16));
      std::fill(c.q.begin(), c.q.end(), 1.0f);
      std::fill(c.k.begin(), c.k.end(), 0.0f);
      c.k[key] = logit;
      for (const Settings& settings : AllSettings()) {
        const Result got = RunHeed(c, settings);
        for (size_t i = 0; i < got.out.size(); ++i) {
          // w * v / w rounds three times.
          const float want = c.v[key * 16 + i % 16];
          ASSERT_NEAR(got.out[i], want, 2e-7 * std::fabs(want))
              << logit << " at " << key << " " << NameOf(settings);
        }
      }
    }
  }
}

// P4: no finite logit counts as masked. All logits equal, of any size, is the
// mean.
TEST(Visibility, EqualLogitsOfAnySizeGiveTheMean) {
  for (const float logit :
       {0.0f, -5e4f, -1e8f, -1e30f, -FLT_MAX, 1e8f, 1e30f, FLT_MAX}) {
    Case c = NormalCase(MakeProblem(1, 1, 1, 2, 64, 1, 8));
    c.problem.scale_mode = HEED_SCALE_VALUE;
    c.problem.scale = 0.6931471805599453;  // q's factor is exactly 1
    std::fill(c.q.begin(), c.q.end(), 1.0f);
    std::fill(c.k.begin(), c.k.end(), logit);
    for (const Settings& settings : AllSettings()) {
      const Result got = RunHeed(c, settings);
      for (int64_t d = 0; d < 8; ++d) {
        double mean = 0;
        for (int64_t key = 0; key < 64; ++key) mean += c.v[key * 8 + d] / 64.0;
        ASSERT_NEAR(got.out[d], mean, 1e-6) << logit << " " << NameOf(settings);
        ASSERT_NEAR(got.out[8 + d], mean, 1e-6);
      }
    }
  }
}

TEST(Visibility, ScaleMayBeZeroNegativeOrHuge) {
  Case c = NormalCase(MakeProblem(1, 1, 1, 5, 70, 8, 8));
  c.problem.scale_mode = HEED_SCALE_VALUE;
  c.problem.scale = 0;
  double mean = 0;
  for (int64_t key = 0; key < 70; ++key) mean += c.v[key * 8] / 70.0;
  EXPECT_NEAR(RunHeed(c).out[0], mean, 1e-6);

  c.problem.scale = -0.5;
  Case negated = c;
  negated.problem.scale = 0.5;
  for (float& x : negated.q) x = -x;
  EXPECT_EQ(Difference(RunHeed(c), RunHeed(negated)), "");

  for (const double scale : {1e300, -1e300, 1e30}) {
    c.problem.scale = scale;
    const Result got = RunHeed(c);
    ASSERT_EQ(got.status, HEED_OK) << got.error;
    EXPECT_EQ(Difference(got, RunRowProgram(c)), "") << scale;
  }
}

TEST(Visibility, DefaultScaleIsTheExplicitOne) {
  const Case c = NormalCase(MakeProblem(1, 1, 1, 5, 70, 16, 8));
  Case explicitly = c;
  explicitly.problem.scale_mode = HEED_SCALE_VALUE;
  explicitly.problem.scale = 0.25;
  EXPECT_EQ(Difference(RunHeed(c), RunHeed(explicitly)), "");
}

TEST(Visibility, NoKeysMeansEmptyRows) {
  for (const int32_t causal : {HEED_CAUSAL_NONE, HEED_CAUSAL_TOP_LEFT,
                               HEED_CAUSAL_BOTTOM_RIGHT, HEED_CAUSAL_OFFSET}) {
    const Case c = NormalCase(MakeProblem(2, 2, 1, 3, 0, 8, 5, causal), 1, 4);
    const Result got = RunHeed(c);
    ASSERT_EQ(got.status, HEED_OK) << got.error;
    for (const float x : got.out) EXPECT_TRUE(SameBits(x, 0.0f));
    for (const float x : got.lse) EXPECT_EQ(x, -kInfinity);
  }
}

TEST(Visibility, NoQueryDimensionMeansUniformWeights) {
  const Case c = NormalCase(MakeProblem(1, 1, 1, 3, 10, 0, 4));
  const Result got = RunHeed(c);
  ASSERT_EQ(got.status, HEED_OK) << got.error;
  for (int64_t d = 0; d < 4; ++d) {
    double mean = 0;
    for (int64_t key = 0; key < 10; ++key) mean += c.v[key * 4 + d] / 10.0;
    EXPECT_NEAR(got.out[d], mean, 1e-6);
  }
  EXPECT_NEAR(got.lse[0], std::log(10.0), 1e-6);
}

TEST(Visibility, ZeroSizedOutputIsASuccessThatDoesNothing) {
  const heed_problem problems[] = {
      MakeProblem(0, 2, 1, 3, 4, 8, 8),
      MakeProblem(1, 0, 1, 3, 4, 8, 8),
      MakeProblem(1, 0, 0, 3, 4, 8, 8),
      MakeProblem(1, 2, 1, 0, 4, 8, 8),
      MakeProblem(1, 2, 1, 0, 0, 8, 8, HEED_CAUSAL_TOP_LEFT),
      MakeProblem(0, 0, 0, 0, 0, 0, 0)};
  for (const heed_problem& problem : problems) {
    const Case c = NormalCase(problem);
    const Result got = RunHeed(c);
    EXPECT_EQ(got.status, HEED_OK) << NameOf(c) << got.error;
  }
}

// Sums of them would leave 64 bits.
TEST(Visibility, OffsetsAndWindowsMayBeAnyNumber) {
  const int64_t most = INT64_MAX, least = INT64_MIN;
  const std::vector<int64_t> sides = {-1, 0, 7, most / 2, most - 1, most};
  for (const int32_t causal : {HEED_CAUSAL_NONE, HEED_CAUSAL_OFFSET}) {
    for (const int64_t offset : {least, least + 1, least / 2, int64_t{-3},
                                 int64_t{5}, most / 2, most - 1, most}) {
      for (const int64_t left : sides) {
        for (const int64_t right : sides) {
          for (const int64_t len_q : {1, 40}) {
            heed_problem p = MakeProblem(1, 2, 1, len_q, 60, 4, 4, causal);
            p.window = 1;
            p.window_left = left;
            p.window_right = right;
            if (causal == HEED_CAUSAL_NONE) p.align = HEED_ALIGN_OFFSET;
            const Case c = NormalCase(p, 1, offset);
            EXPECT_EQ(Difference(RunHeed(c), RunRowProgram(c)), "")
                << NameOf(c);
          }
        }
      }
    }
  }
}

// On each path: a state without columns is a state.
TEST(Visibility, LogSumIsWrittenEvenWithoutValueColumns) {
  for (const int64_t len_k : {40, 800, 1600}) {
    for (const int64_t len_q : {1, 3, 33}) {
      const Case c = NormalCase(MakeProblem(1, 2, 1, len_q, len_k, 8, 0));
      const Result want = RunRowProgram(c);
      EXPECT_EQ(Difference(RunHeed(c), want), "") << NameOf(c);
      for (const KernelCut& cut : EveryCut(c.problem)) {
        const Result got = RunKernels(c, cut);
        for (size_t row = 0; row < want.lse.size(); ++row) {
          EXPECT_NEAR(got.lse[row], want.lse[row], 1e-5)
              << NameOf(c) << " " << NameOf(cut);
        }
      }
    }
  }
}

}  // namespace
}  // namespace heed::test
