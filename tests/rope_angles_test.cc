// RoPE's angles against long double, and its scalings by their definition.
#include "runtime/rope_angles.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heed::test {
namespace {

constexpr long double kTwoPi = 6.283185307179586476925286766559005768L;

heed_block_desc Rope(int64_t width, double theta) {
  heed_block_desc desc;
  heed_block_desc_init(&desc);
  desc.dim_qk = width;
  desc.rope = HEED_ROPE_HALF;
  desc.rope_theta = theta;
  return desc;
}

long double Frequency(const heed_block_desc& desc, size_t i) {
  return std::pow(static_cast<long double>(desc.rope_theta),
                  -2.0L * static_cast<long double>(i) /
                      static_cast<long double>(desc.dim_qk));
}

TEST(RopeAngles, CosineAndSineAreNearTheirValues) {
  for (const int64_t width : {2, 6, 64, 80, 128, 256}) {
    for (const double theta : {0.5, 1.0, 100.0, 10000.0, 500000.0, 1e6, 1e9}) {
      const heed_block_desc desc = Rope(width, theta);
      const std::vector<double> turns = RopeTurns(desc);
      ASSERT_EQ(turns.size(), static_cast<size_t>(width / 2));
      std::vector<float> cosine(turns.size()), sine(turns.size());
      for (const int64_t position :
           {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{17},
            int64_t{1023}, int64_t{8191}, int64_t{131071}, int64_t{1} << 24}) {
        RopeAngles(turns, position, cosine.data(), sine.data());
        for (size_t i = 0; i < turns.size(); ++i) {
          const long double frequency = Frequency(desc, i);
          const long double angle =
              static_cast<long double>(position) * frequency;
          const auto bound = static_cast<double>(std::ldexp(1.0L, -24) +
                                                 std::abs(angle) * 4e-15L);
          EXPECT_NEAR(cosine[i], static_cast<double>(std::cos(angle)), bound)
              << width << " " << theta << " " << position << " " << i;
          EXPECT_NEAR(sine[i], static_cast<double>(std::sin(angle)), bound)
              << width << " " << theta << " " << position << " " << i;
        }
      }
    }
  }
}

TEST(RopeAngles, LinearScalingDividesFrequencies) {
  heed_block_desc desc = Rope(64, 10000);
  const std::vector<double> plain = RopeTurns(desc);
  desc.rope_scaling = HEED_ROPE_SCALING_LINEAR;
  desc.rope_factor = 4;
  const std::vector<double> scaled = RopeTurns(desc);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_DOUBLE_EQ(scaled[i], plain[i] / 4);
  }
}

// Llama 3.1 8B: factor 8, low 1, high 4, length 8192. Short wavelengths stay,
// long ones are divided, and between the two it is blended.
TEST(RopeAngles, Llama3ScalingByItsDefinition) {
  heed_block_desc desc = Rope(128, 500000);
  desc.rope_scaling = HEED_ROPE_SCALING_LLAMA3;
  desc.rope_factor = 8;
  desc.rope_low_freq_factor = 1;
  desc.rope_high_freq_factor = 4;
  desc.rope_original_len = 8192;
  const std::vector<double> turns = RopeTurns(desc);
  int kept = 0, divided = 0, blended = 0;
  for (size_t i = 0; i < turns.size(); ++i) {
    const long double frequency = Frequency(desc, i);
    const long double wavelength = kTwoPi / frequency;
    long double want = frequency;
    if (wavelength > 8192) {
      want = frequency / 8;
      ++divided;
    } else if (wavelength < 2048) {
      ++kept;
    } else {
      const long double smooth = (8192 / wavelength - 1) / 3;
      want = (1 - smooth) * frequency / 8 + smooth * frequency;
      ++blended;
    }
    EXPECT_NEAR(turns[i], static_cast<double>(want / kTwoPi),
                static_cast<double>(want / kTwoPi) * 4e-15)
        << i;
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(divided, 0);
  EXPECT_GT(blended, 0);
}

TEST(RopeAngles, APartOfTheHeadIsTurned) {
  heed_block_desc desc = Rope(64, 10000);
  desc.rope_width = 16;
  const std::vector<double> turns = RopeTurns(desc);
  ASSERT_EQ(turns.size(), 8u);
  EXPECT_NEAR(turns[1] * static_cast<double>(kTwoPi),
              std::pow(10000.0, -2.0 / 16), 1e-15);
}

}  // namespace
}  // namespace heed::test
