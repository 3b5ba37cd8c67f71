#include "tune/guard_shapes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/shape_class.h"

namespace heed {
namespace {

// a at 0, b at 1, and between them along the geometric mean.
int64_t Between(int64_t a, int64_t b, double part) {
  const double x = static_cast<double>(std::max<int64_t>(a, 1));
  const double y = static_cast<double>(std::max<int64_t>(b, 1));
  return std::llround(x * std::pow(y / x, part));
}

// `problem` with its lengths moved towards these.
heed_problem Towards(const heed_problem& problem, int64_t len_q, int64_t len_k,
                     double part) {
  heed_problem moved = problem;
  moved.len_q = Between(problem.len_q, len_q, part);
  // As many queries as keys: self-attention, which stays that.
  moved.len_k = problem.len_q == problem.len_k
                    ? moved.len_q
                    : Between(problem.len_k, len_k, part);
  return moved;
}

bool SameLengths(const heed_problem& a, const heed_problem& b) {
  return a.len_q == b.len_q && a.len_k == b.len_k;
}

}  // namespace

std::vector<heed_problem> GuardShapes(const heed_problem& problem,
                                      int threads) {
  const ShapeClass wanted = ClassOf(problem, threads);
  const int64_t low_q = QueryBucketBegin(wanted.len_q);
  const int64_t low_k = KeyBucketBegin(wanted.len_k);
  const int64_t middle_q = Between(low_q, wanted.len_q, 0.5);
  const int64_t middle_k = Between(low_k, wanted.len_k, 0.5);
  const int64_t places[][2] = {
      {low_q, low_k}, {wanted.len_q, wanted.len_k}, {middle_q, middle_k}};
  std::vector<heed_problem> guards;
  for (const auto& place : places) {
    for (const double part : {1.0, 0.75, 0.5, 0.25}) {
      const heed_problem guard = Towards(problem, place[0], place[1], part);
      if (ClassOf(guard, threads) != wanted) continue;
      const bool known = SameLengths(guard, problem) ||
                         std::any_of(guards.begin(), guards.end(),
                                     [&guard](const heed_problem& other) {
                                       return SameLengths(guard, other);
                                     });
      if (!known && guards.size() < 2) guards.push_back(guard);
      break;
    }
  }
  return guards;
}

}  // namespace heed
