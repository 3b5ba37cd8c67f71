#include "tests/refused_call.h"

#include <gtest/gtest.h>

#include "tests/input_families.h"

namespace heed::test {

heed_problem GoodProblem() { return MakeProblem(2, 4, 2, 5, 7, 8, 6); }

void ExpectMessage(const std::vector<std::string>& parts) {
  const std::string message = heed_last_error();
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos)
        << "'" << part << "' is not in: " << message;
  }
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

void ExpectRefused(const Case& c, const std::function<void(heed_call*)>& change,
                   const std::vector<std::string>& parts) {
  Result untouched, result;
  DenseCall(c, &untouched);
  heed_call call = DenseCall(c, &result);
  change(&call);
  EXPECT_EQ(RunCall(c.problem, call, {}), HEED_INVALID_ARGUMENT);
  ExpectMessage(parts);
  EXPECT_EQ(Difference(result, untouched), "");
}

}  // namespace heed::test
