// Error bounds of the functions the row program approximates: 2^x, log2 and the
// soft cap's tanh.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/row_program.h"

namespace heed::test {
namespace {

// The stated bound on a weight's relative error. The polynomial alone is within
// 1.54e-7; its roundings in float add the rest.
constexpr double kWeightBound = 1.75e-7;

double WeightError(float f) {
  const double exact = std::exp2(static_cast<double>(f));
  return std::fabs(RowWeight(f, 0.0f) / exact - 1);
}

// Every fraction that a score of magnitude 1/2 or more can have: those scores
// are multiples of 2^-24, and so are their fractions.
TEST(Weight, OfEveryMultipleOfTheUnitRoundoffIsWithinItsBound) {
  double worst = 0;
  for (int i = -(1 << 23); i <= (1 << 23); ++i) {
    worst = std::max(worst, WeightError(static_cast<float>(i) * 0x1p-24f));
  }
  EXPECT_LE(worst, kWeightBound);
}

// Scores below 1/2 are their own fraction, in all their bits: every one of
// [1/16, 1/2], both signs.
TEST(Weight, OfEveryFloatFromASixteenthToAHalfIsWithinItsBound) {
  double worst = 0;
  float worst_at = 0;
  for (float f = 0.0625f; f <= 0.5f; f = std::nextafter(f, 1.0f)) {
    for (const float signed_f : {f, -f}) {
      const double error = WeightError(signed_f);
      if (error > worst) {
        worst = error;
        worst_at = signed_f;
      }
    }
  }
  std::printf("largest relative error of a weight: %.4g at %a\n", worst,
              worst_at);
  EXPECT_LE(worst, kWeightBound);
}

TEST(Weight, OfASampleOfEverySmallerBinadeIsWithinItsBound) {
  for (int exponent = -149; exponent < -4; ++exponent) {
    const float low = std::ldexp(1.0f, exponent);
    for (int step = 0; step < 1000; ++step) {
      const float f = low + low * (static_cast<float>(step) / 1000);
      ASSERT_LE(WeightError(f), kWeightBound) << f;
      ASSERT_LE(WeightError(-f), kWeightBound) << -f;
    }
  }
}

TEST(Weight, OfAnIntegerIsExact) {
  for (int n = -126; n <= 8; ++n) {
    for (const float m : {0.0f, 1.0f, -77.0f, 4194303.0f, -4194303.0f}) {
      EXPECT_EQ(RowWeight(m + n, m), std::ldexp(1.0f, n)) << n << " " << m;
    }
  }
}

// The fraction of a score does not depend on the running maximum, so a weight's
// significand does not either.
TEST(Weight, OnlyItsExponentDependsOnTheMaximum) {
  for (int i = 0; i < 4000; ++i) {
    const float s = std::sin(static_cast<float>(i)) * 20;
    const float want = RowWeight(s, 0.0f);
    for (const float m : {1.0f, 15.0f, 21.0f, 40.0f}) {
      ASSERT_EQ(RowWeight(s, m), std::ldexp(want, -static_cast<int>(m)));
    }
  }
}

// Beyond 2^22 the program takes the fraction another way.
TEST(Weight, OfEnormousScoresIsAsAccurate) {
  for (const float m : {4194304.0f, -4194304.0f, 8388608.0f, -5e6f, 1e9f, 1e30f,
                        -2147483648.0f}) {
    float s = m;
    for (int i = 0; i < 300; ++i) {
      const double exact = std::exp2(static_cast<double>(s) - m);
      if (exact > 0x1p-126) {
        ASSERT_LE(std::fabs(RowWeight(s, m) / exact - 1), kWeightBound) << s;
      } else {
        ASSERT_LE(RowWeight(s, m), 0x1p-125f) << s << " " << m;
      }
      s = std::nextafter(s, -INFINITY);
    }
  }
}

TEST(Weight, FarBelowTheMaximumIsZero) {
  for (const float m : {0.0f, 100.0f, -1000.0f, 1e6f, 1e7f, 1e30f}) {
    EXPECT_EQ(RowWeight(m - 128, m), m < 1e9f ? 0.0f : 1.0f);
    EXPECT_EQ(RowWeight(-INFINITY, m), 0.0f);
    EXPECT_EQ(RowWeight(-3e38f, m), 0.0f);
  }
}

TEST(Weight, NeverDecreasesByMoreThanItsErrorAsTheScoreRises) {
  float previous = 0;
  for (int i = -130 * 512; i <= 8 * 512; ++i) {
    const float weight = RowWeight(static_cast<float>(i) / 512, 0.0f);
    ASSERT_GE(weight, previous * (1 - 2 * static_cast<float>(kWeightBound)));
    previous = weight;
  }
}

// A row's sum lies in [1/2, 2^8 * keys]. Every float of one octave on both
// sides of 1, and a sample of the others.
TEST(LogOfSum, IsWithinItsBound) {
  double worst = 0;
  const auto check = [&worst](uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    const double exact = std::log2(static_cast<double>(x));
    const double error = std::fabs(RowLog2(x) - exact);
    // The exponent is added last, with one rounding.
    worst = std::max(worst, error / std::max(1.0, std::fabs(exact)));
  };
  for (uint32_t bits = 0x3F000000u; bits < 0x40000000u; ++bits) check(bits);
  for (uint32_t bits = 0x40000000u; bits < 0x60000000u; bits += 1013) {
    check(bits);
  }
  std::printf("largest error of log2: %.4g\n", worst);
  EXPECT_LE(worst, 1.3e-7);
}

TEST(LogOfSum, OfAPowerOfTwoIsExact) {
  for (int n = -1; n <= 100; ++n) {
    EXPECT_EQ(RowLog2(std::ldexp(1.0f, n)), static_cast<float>(n));
  }
}

// The bound that tests/reference.cc adds for a soft cap.
constexpr double kSoftCapBound = 1.2e-6;

// Of a score in the log2 domain, relative to the result.
double SoftCapError(float s, float cap) {
  constexpr double kLn2 = 0.69314718055994530942;
  const double exact = cap / kLn2 * std::tanh(s * kLn2 / cap);
  return std::fabs(RowSoftCap(s, cap) / exact - 1);
}

TEST(SoftCap, IsWithinItsRelativeBound) {
  double worst = 0;
  float worst_at = 0, worst_cap = 0;
  for (const float cap : {1.0f, 50.0f, 0.3f, 30.0f, 1e-6f, 1e6f, 7.7f}) {
    // Of tanh's argument: all of what is small, and dense where it bends.
    for (double x = 1e-12; x < 40; x *= 1 + 1e-5) {
      const auto s = static_cast<float>(x * cap);
      const double error = SoftCapError(s, cap);
      if (error > worst) {
        worst = error;
        worst_at = s;
        worst_cap = cap;
      }
      ASSERT_TRUE(std::isfinite(error)) << s << " " << cap;
    }
  }
  std::printf("largest relative error of a soft cap: %.4g at %a of %g\n", worst,
              worst_at, worst_cap);
  EXPECT_LE(worst, kSoftCapBound);
}

TEST(SoftCap, IsOddAndItsLimitsAreTheCap) {
  for (const float cap : {0.3f, 1.0f, 50.0f, 1000.0f}) {
    const float most = RowSoftCap(INFINITY, cap);
    EXPECT_NEAR(most, cap * 1.4426950408889634, cap * 1e-6);
    EXPECT_EQ(RowSoftCap(-INFINITY, cap), -most);
    EXPECT_EQ(RowSoftCap(3e38f, cap), most);
    EXPECT_EQ(std::signbit(RowSoftCap(-0.0f, cap)), true);
    EXPECT_EQ(RowSoftCap(0.0f, cap), 0.0f);
    EXPECT_TRUE(std::isnan(RowSoftCap(NAN, cap)));
    for (float s = 1e-3f; s < 1e4f; s *= 1.37f) {
      EXPECT_EQ(RowSoftCap(-s, cap), -RowSoftCap(s, cap));
      EXPECT_LE(RowSoftCap(s, cap), most);
    }
  }
}

// A weight's error is its own bound at most where its argument falls, too: a
// soft cap that fell while its score rose would turn two keys round.
TEST(SoftCap, NeverDecreasesByMoreThanItsErrorAsTheScoreRises) {
  for (const float cap : {1.0f, 30.0f}) {
    float previous = 0;
    for (int i = 1; i < 400000; ++i) {
      const float capped = RowSoftCap(static_cast<float>(i) * cap / 40000, cap);
      ASSERT_GE(capped, previous * (1 - 2 * static_cast<float>(kSoftCapBound)));
      previous = capped;
    }
  }
}

}  // namespace
}  // namespace heed::test
