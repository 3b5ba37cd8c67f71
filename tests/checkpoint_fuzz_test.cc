// A fixed walk through damaged checkpoints: nothing crashes, and what is
// refused is refused with a line. libFuzzer goes further with the same inputs
// (HEED_BUILD_FUZZERS).
#include "tests/checkpoint_fuzz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace heed {
namespace {

int Try(const std::string& input) {
  return TryCheckpoint(reinterpret_cast<const uint8_t*>(input.data()),
                       input.size());
}

TEST(CheckpointFuzz, SeedsAreGood) {
  for (const std::string& seed : CheckpointSeeds()) {
    EXPECT_EQ(Try(seed), 3) << seed.substr(0, 200);
  }
}

TEST(CheckpointFuzz, DamagedCheckpointsAreRefusedWithALine) {
  const std::vector<std::string> seeds = CheckpointSeeds();
  int reached[4] = {};
  for (unsigned number = 0; number < 20000; ++number) {
    std::mt19937 random(number);
    std::string input = seeds[number % seeds.size()];
    const unsigned changes = 1 + random() % 3;
    for (unsigned i = 0; i < changes; ++i) MutateCheckpoint(&random, &input);
    ++reached[Try(input)];
  }
  // Some of the changes harm nothing; most do, some to the file, some to what
  // is in it.
  EXPECT_GT(reached[0], 1000);
  EXPECT_GT(reached[1], 100);
  EXPECT_GT(reached[3], 500);
}

}  // namespace
}  // namespace heed
