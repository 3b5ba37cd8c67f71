#include "tests/random_problems.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/input_families.h"

namespace heed::test {

uint64_t ProblemCount(double share) {
  const char* text = std::getenv("HEED_RANDOM_PROBLEMS");
  const double all = text == nullptr ? 20000 : std::atof(text);
  return static_cast<uint64_t>(std::max(1.0, all * share));
}

Settings RandomFusedSettings(uint64_t seed) {
  static const std::vector<std::string> targets =
      TargetNames(/*fused_only=*/true);
  Settings settings = RandomSettings(seed);
  settings.target = targets[seed % targets.size()];
  return settings;
}

std::string Compared(const Result& got, const Result& want,
                     const std::string& how) {
  const std::string difference = Difference(got, want);
  return difference.empty() ? "" : how + ": " + difference;
}

bool RandomRow(uint64_t seed, const Case& c, Result* result, RowPlace* place) {
  Random random(seed);
  std::vector<RowPlace> all;
  const heed_call call = DenseCall(c, result);
  ForEachRow(c.problem, call,
             [&all](const RowPlace& row) { all.push_back(row); });
  if (all.empty()) return false;
  *place = all[random.Below(static_cast<int64_t>(all.size()))];
  return true;
}

std::string RowDifference(const Case& c, const Result& got, const Result& want,
                          const Result& from, const RowPlace& place) {
  const size_t lse = place.lse - from.lse.data();
  const int64_t out = place.out - from.out.data();
  const auto row = [&](const Result& all) {
    Result one;
    one.status = all.status;
    one.error = all.error;
    one.lse = {all.lse[lse]};
    // Without a value column there is no out, and its place is no number.
    if (c.problem.dim_v > 0) {
      one.out.assign(all.out.begin() + out,
                     all.out.begin() + out + c.problem.dim_v);
    }
    return one;
  };
  return Difference(row(got), row(want));
}

}  // namespace heed::test
