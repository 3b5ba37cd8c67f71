// What the tests made of public bug reports share: the data their cases name,
// and the comparison with the definition in double precision.
#ifndef HEED_TESTS_REPORT_CASE_H_
#define HEED_TESTS_REPORT_CASE_H_

#include <heed.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/stored_case.h"

namespace heed::test {

// x[n] = ((n * 7919 + 17 * t) mod 1009) / 504.5 - 1 with t = 1, 2, 3 for q, k,
// v.
Case GenCase(const heed_problem& problem, int64_t causal_offset = 0);

// Every target, with the model's tile and with tiles of many sizes, on one and
// two threads.
std::vector<Settings> EveryKernel();

// Fails the test unless |got - reference| <= tolerance * (1 + |reference|) for
// all of out and lse. `call` describes where the results lie.
void ExpectReference(const heed_problem& problem, const heed_call& call,
                     const std::string& where, double tolerance = 1e-5);

void ExpectReference(const Case& c, Result* result, const std::string& where,
                     double tolerance = 1e-5);

// Runs the case with every kernel through heed, and on the kernels' own table
// with every path of every target. `check` is given each result and how it was
// made; the first failure is the last.
void ForEveryPath(
    const Case& c,
    const std::function<void(Result* result, const std::string& how)>& check);
void ForEveryPath(
    const StoredCase& c,
    const std::function<void(Result* result, const std::string& how)>& check);

// Runs the case on every path and compares each with the reference.
void ExpectEveryKernelRight(const Case& c, double tolerance = 1e-5);

}  // namespace heed::test

#endif  // HEED_TESTS_REPORT_CASE_H_
