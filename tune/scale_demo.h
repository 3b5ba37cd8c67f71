// Why scores are divided by the square root of the head's width: how the
// largest weight of a row depends on the width, for three divisors.
#ifndef HEED_TUNE_SCALE_DEMO_H_
#define HEED_TUNE_SCALE_DEMO_H_

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

struct ScaleDemoOptions {
  int64_t tokens = 64;    // queries, and keys
  int64_t matrices = 32;  // pairs of a q and a k, each number N(0, 1)
  uint64_t seed = 1;
};

// The divisors, by their power of the width.
constexpr double kScalePowers[] = {0, 0.5, 1};
constexpr const char* kScaleNames[] = {"1", "sqrt(d)", "d"};

struct ScaleDemoRow {
  int64_t dim;
  // By divisor: the mean over all rows of all matrices of the largest weight,
  // and the standard error of that mean, from the matrices' means.
  double peak[3], error[3];
};

// For d = 16, 32, .. 1024, by heed_scores(), without a mask. On failure returns
// false and the library's reason.
bool RunScaleDemo(const ScaleDemoOptions& options,
                  std::vector<ScaleDemoRow>* rows, std::string* why);

// The peaks as a chart of characters, a line per width.
std::string DrawScaleText(const std::vector<ScaleDemoRow>& rows);

// The peaks over the width, as a line for each divisor, into a .png or .svg.
bool WriteScaleImage(const ScaleDemoOptions& options,
                     const std::vector<ScaleDemoRow>& rows,
                     const std::string& path, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_SCALE_DEMO_H_
