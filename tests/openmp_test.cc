// heed inside an OpenMP program: called from each of its threads at once, and
// between its parallel loops.
#include <gtest/gtest.h>
#include <omp.h>

#include <vector>

#include "tests/attention_case.h"
#include "tests/input_families.h"

namespace heed::test {
namespace {

TEST(OpenMp, ThreadsOfAParallelLoopGetTheirOwnResults) {
  constexpr int kCalls = 16;
  const heed_problem p =
      MakeProblem(1, 4, 2, 65, 130, 24, 16, HEED_CAUSAL_BOTTOM_RIGHT);
  std::vector<Case> cases(kCalls);
  std::vector<Result> want(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    cases[i] = MakeCase(p);
    Random random(i);
    Families().front().fill(&random, &cases[i]);
    want[i] = RunHeed(cases[i]);
  }
  for (const int threads : {1, 2, 4}) {
    int wrong = 0, seen = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : wrong) \
    reduction(max : seen)
    for (int i = 0; i < kCalls; ++i) {
      seen = omp_get_num_threads();
      if (!SameBits(RunHeed(cases[i]), want[i])) ++wrong;
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(seen, threads);
    // And by the thread that the loop leaves.
    EXPECT_TRUE(SameBits(RunHeed(cases[0]), want[0]));
  }
}

}  // namespace
}  // namespace heed::test
