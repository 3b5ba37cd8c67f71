// Error bounds of the two functions the row program approximates, 2^x and log2.
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

}  // namespace
}  // namespace heed::test
