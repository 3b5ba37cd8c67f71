#include "runtime/record.h"

#include <algorithm>

#include "runtime/problem.h"

namespace heed {
namespace {

constexpr int64_t kMaxLength = int64_t{1} << 40;

int64_t PowerOfTwoFrom(int64_t value, int64_t lowest) {
  int64_t power = lowest;
  while (power < value && power < kMaxLength) power *= 2;
  return power;
}

// How far apart two power-of-two lengths are, in doublings.
int Doublings(int64_t a, int64_t b) {
  int count = 0;
  for (int64_t low = std::min(a, b); low < std::max(a, b); low *= 2) ++count;
  return count;
}

}  // namespace

bool operator==(const ShapeClass& a, const ShapeClass& b) {
  return a.dtype == b.dtype && a.dim_qk == b.dim_qk && a.dim_v == b.dim_v &&
         a.causal == b.causal && a.group == b.group && a.len_q == b.len_q &&
         a.len_k == b.len_k && a.threads == b.threads;
}

ShapeClass ClassOf(const heed_problem& problem, int threads) {
  ShapeClass shape_class;
  shape_class.dtype = problem.dtype;
  shape_class.dim_qk = problem.dim_qk;
  shape_class.dim_v = problem.dim_v;
  shape_class.causal = problem.causal != HEED_CAUSAL_NONE;
  shape_class.group = Group(problem);
  // 1, then 2-4, then 5-16: short queries differ by how full one vector of rows
  // is, which a factor of four resolves well enough.
  shape_class.len_q = problem.len_q <= 1    ? 1
                      : problem.len_q <= 4  ? 4
                      : problem.len_q <= 16 ? 16
                                            : PowerOfTwoFrom(problem.len_q, 32);
  shape_class.len_k = PowerOfTwoFrom(problem.len_k, 128);
  shape_class.threads = threads;
  return shape_class;
}

std::string ToString(const ShapeClass& c) {
  const char* dtype = DtypeName(c.dtype);
  return std::string(dtype == nullptr ? "unknown" : dtype) + "_d" +
         std::to_string(c.dim_qk) + "_dv" + std::to_string(c.dim_v) +
         (c.causal ? "_causal" : "_full") + "_g" + std::to_string(c.group) +
         "_q" + std::to_string(c.len_q) + "_k" + std::to_string(c.len_k) +
         "_t" + std::to_string(c.threads);
}

const RecordEntry* Find(const Record& record, const ShapeClass& wanted,
                        const std::string& target) {
  const RecordEntry* nearest = nullptr;
  int nearest_distance = 2;  // more than a factor of two is no entry
  for (const RecordEntry& entry : record.entries) {
    ShapeClass other = entry.shape_class;
    const int distance = Doublings(other.len_q, wanted.len_q) +
                         Doublings(other.len_k, wanted.len_k);
    other.len_q = wanted.len_q;
    other.len_k = wanted.len_k;
    if (other == wanted && entry.target == target &&
        distance < nearest_distance) {
      nearest = &entry;
      nearest_distance = distance;
    }
  }
  return nearest;
}

}  // namespace heed
