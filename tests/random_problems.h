// What tests on random problems share.
//
// HEED_RANDOM_PROBLEMS is how many there are in all (20000 if it is not set).
// The number in a message is the seed that makes the problem again.
#ifndef HEED_TESTS_RANDOM_PROBLEMS_H_
#define HEED_TESTS_RANDOM_PROBLEMS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/attention_case.h"
#include "tests/random_case.h"
#include "tests/row_program.h"

namespace heed::test {

// Failures that a test reports before it stops.
constexpr int kMostFailures = 5;

// So many of all problems.
uint64_t ProblemCount(double share);

// Calls check(seed, case) -> what is wrong, for that share of all problems.
template <typename Check>
void ForEachProblem(uint64_t first_seed, double share, uint32_t wanted,
                    Check check) {
  int failures = 0;
  const uint64_t count = ProblemCount(share);
  for (uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    const Case c = RandomCase(seed, wanted);
    const std::string wrong = check(seed, c);
    if (wrong.empty()) continue;
    ADD_FAILURE() << "seed " << seed << ": " << NameOf(c) << ": " << wrong;
    if (++failures == kMostFailures) return;
  }
}

// RandomSettings() on one of the targets with fused multiply-add.
Settings RandomFusedSettings(uint64_t seed);

// Difference(), with how the result was made.
std::string Compared(const Result& got, const Result& want,
                     const std::string& how);

// The place of one of the case's rows in `result`, which is sized; false if the
// case has none.
bool RandomRow(uint64_t seed, const Case& c, Result* result, RowPlace* place);

// Where results differ in the row that lies at `place` in `from`.
std::string RowDifference(const Case& c, const Result& got, const Result& want,
                          const Result& from, const RowPlace& place);

}  // namespace heed::test

#endif  // HEED_TESTS_RANDOM_PROBLEMS_H_
