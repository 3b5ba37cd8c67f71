// The shapes of a class that a configuration must not make slower, beside the
// one it was found with.
#ifndef HEED_TUNE_GUARD_SHAPES_H_
#define HEED_TUNE_GUARD_SHAPES_H_

#include <vector>

#include "runtime/include/heed.h"

namespace heed {

// The two ends of the class's lengths; in place of an end that is `problem`
// itself, the geometric middle. Each is of the same class for so many threads
// (an end that is not is moved towards `problem` until it is), none is
// `problem` and none is there twice; so there may be fewer than two.
std::vector<heed_problem> GuardShapes(const heed_problem& problem, int threads);

}  // namespace heed

#endif  // HEED_TUNE_GUARD_SHAPES_H_
