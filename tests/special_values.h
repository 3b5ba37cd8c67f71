#ifndef HEED_TESTS_SPECIAL_VALUES_H_
#define HEED_TESTS_SPECIAL_VALUES_H_

#include <limits>

namespace heed::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What a test's outputs hold before the call.
inline constexpr float kSentinel = -7.70807e33f;

}  // namespace heed::test

#endif  // HEED_TESTS_SPECIAL_VALUES_H_
