// What a refused call says.
#ifndef HEED_TESTS_REFUSED_CALL_H_
#define HEED_TESTS_REFUSED_CALL_H_

#include <heed.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/attention_case.h"

namespace heed::test {

// A problem that is accepted, with sizes that all differ.
heed_problem GoodProblem();

// heed_last_error() is one line that has each of these parts.
void ExpectMessage(const std::vector<std::string>& parts);

// The case's call, changed, is refused with a message of these parts, and
// writes nothing.
void ExpectRefused(const Case& c, const std::function<void(heed_call*)>& change,
                   const std::vector<std::string>& parts);

}  // namespace heed::test

#endif  // HEED_TESTS_REFUSED_CALL_H_
