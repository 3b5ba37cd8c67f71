#include "tests/input_families.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace heed::test {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kScaleOfPowersOfTwo = 0.69314718055994530942;  // ln 2

void FillAll(Random* random, Case* c) {
  random->FillNormal(&c->q);
  random->FillNormal(&c->k);
  random->FillNormal(&c->v);
}

// Makes the score of key j, in the row program's base-2 domain, score(j) plus
// `noise` times what random q and k give: the scale is ln 2, so q's factor is
// 1, and dimension 0 carries the score.
template <typename Score>
void Steer(Random* random, Case* c, float noise, Score score) {
  FillAll(random, c);
  c->problem.scale_mode = HEED_SCALE_VALUE;
  c->problem.scale = kScaleOfPowersOfTwo;
  const int64_t dim = c->problem.dim_qk;
  if (dim == 0) return;
  for (float& x : c->q) x *= noise;
  for (size_t i = 0; i < c->q.size(); i += dim) c->q[i] = 1.0f;
  for (size_t i = 0; i < c->k.size(); i += dim) {
    c->k[i] = score(static_cast<int64_t>(i) / dim % c->problem.len_k);
  }
}

// v[key][..] *= factor(key)
template <typename Factor>
void ScaleValues(Case* c, Factor factor) {
  const int64_t dim = c->problem.dim_v;
  for (size_t i = 0; i < c->v.size(); ++i) {
    c->v[i] *= factor(static_cast<int64_t>(i) / dim % c->problem.len_k);
  }
}

void DenormalValues(Random* random, Case* c) {
  // Twice the normal spread, so that weights far below 1 occur and round in the
  // subnormals.
  Steer(random, c, 1.0f, [&](int64_t) { return 8.0f * random->Normal(); });
  ScaleValues(c, [](int64_t) { return 1e-40f; });
}

void ClimbingWithOutliers(Random* random, Case* c) {
  Steer(random, c, 0.25f, [](int64_t key) { return 3.0f * key; });
  ScaleValues(c, [](int64_t key) { return key % 13 == 5 ? 1e36f : 1.0f; });
}

void Growing(Random* random, Case* c) {
  Steer(random, c, 0.1f, [](int64_t key) { return 0.17f * key; });
}

void Falling(Random* random, Case* c) {
  Steer(random, c, 0.1f, [](int64_t key) { return -0.9f * key; });
}

void TenThousands(Random* random, Case* c) {
  Steer(random, c, 1.0f, [&](int64_t) {
    return (random->Next() & 1 ? 1e4f : -1e4f) + random->Normal();
  });
}

void Enormous(Random* random, Case* c) {
  Steer(random, c, 1.0f, [&](int64_t key) {
    return (key % 7 == 3 ? -1e30f : 1e30f) * (key % 3 == 0 ? 0.5f : 1.0f);
  });
}

void MinusFiveMillions(Random* random, Case* c) {
  Steer(random, c, 0.5f,
        [&](int64_t) { return -5e6f + 4.0f * random->Normal(); });
}

// Astride 2^22, where the program changes its way of taking a fraction.
void AstrideExactMaximum(Random* random, Case* c) {
  Steer(random, c, 0.5f, [&](int64_t key) {
    return 4194304.0f + 0.5f * static_cast<float>(random->Below(9) - 4) +
           static_cast<float>(key % 96 - 48);
  });
}

void NearMinusTwoTo31(Random* random, Case* c) {
  Steer(random, c, 1.0f, [&](int64_t) {
    return -2147483648.0f + 128.0f * static_cast<float>(random->Below(5) - 2);
  });
}

void MixedMagnitudes(Random* random, Case* c) {
  FillAll(random, c);
  const auto spread = [random](std::vector<float>* x, int64_t exponents) {
    for (float& value : *x) {
      value = std::ldexp(
          value, static_cast<int>(random->Below(2 * exponents) - exponents));
    }
  };
  spread(&c->q, 6);
  spread(&c->k, 6);
  spread(&c->v, 90);
}

void HugeAndTinyValues(Random* random, Case* c) {
  Steer(random, c, 1.0f, [&](int64_t) { return 4.0f * random->Normal(); });
  ScaleValues(c, [](int64_t key) { return key % 2 == 0 ? 1e30f : 1e-30f; });
}

// Scores that lie exactly between two integers, or a hair beside; exactly kRise
// above the maximum, or a hair beyond.
void RoundingTies(Random* random, Case* c) {
  Steer(random, c, 0.0f, [&](int64_t key) {
    const float whole = static_cast<float>(random->Below(17) - 8);
    const float hairs[] = {0.0f, 0.5f, -0.5f, 0.50000006f, 0.49999997f, 1e-6f};
    return whole + hairs[random->Below(6)] +
           8.0f * static_cast<float>(key / 48);
  });
}

void AllEqual(Random*, Case* c) {
  for (float& x : c->q) x = 0.75f;
  for (float& x : c->k) x = -1.5f;
  for (float& x : c->v) x = 3.1f;
}

// Keys that a tensor of this width certainly holds: sequences of their own
// lengths may all be shorter than the longest allowed.
int64_t KeysIn(const Case& c, const std::vector<float>& x, int64_t dim) {
  if (dim == 0) return 0;
  return std::min(c.problem.len_k, static_cast<int64_t>(x.size()) / dim);
}

// One key's every number NaN, another's value alone, with payloads an integer
// addition can turn into finite numbers. Behind a causal line the rows before
// them stay clean.
void VisibleNan(Random* random, Case* c) {
  FillAll(random, c);
  const auto poison = [](std::vector<float>* x, int64_t dim, int64_t key,
                         uint32_t bits) {
    for (int64_t d = 0; d < dim; ++d) {
      std::memcpy(x->data() + key * dim + d, &bits, sizeof(bits));
    }
  };
  const int64_t dim_qk = c->problem.dim_qk, dim_v = c->problem.dim_v;
  const int64_t keys = KeysIn(*c, c->k, dim_qk);
  const int64_t values = KeysIn(*c, c->v, dim_v);
  if (keys > 0) poison(&c->k, dim_qk, keys / 2, 0x7FFFFFFFu);
  if (values > 0) poison(&c->v, dim_v, values / 3, 0xFFC12345u);
}

void VisibleInfinity(Random* random, Case* c) {
  FillAll(random, c);
  const float infinity = std::numeric_limits<float>::infinity();
  const int64_t dim_qk = c->problem.dim_qk, dim_v = c->problem.dim_v;
  const int64_t keys = KeysIn(*c, c->k, dim_qk);
  const int64_t values = KeysIn(*c, c->v, dim_v);
  if (keys > 0) {
    c->k[keys / 2 * dim_qk] = infinity;
    c->k[keys * 2 / 3 * dim_qk] = -infinity;
  }
  if (values > 0) c->v[values / 3 * dim_v] = -infinity;
}

// A row's maximum stays where it begins: at the lowest float there is, or
// below.
void LowestScores(Random* random, Case* c) {
  Steer(random, c, 0.0f, [](int64_t key) {
    if (key % 5 == 4) return -std::numeric_limits<float>::infinity();
    return key % 2 == 0 ? -FLT_MAX : -3.4e38f;
  });
}

// Weights on both sides of the flush at 2^-127.
void Flushed(Random* random, Case* c) {
  Steer(random, c, 0.0f, [&](int64_t key) {
    return key % 48 == 0
               ? 0.25f
               : -127.5f + 0.125f * static_cast<float>(random->Below(24));
  });
  ScaleValues(c, [](int64_t key) { return key % 48 == 0 ? 1e-38f : 1e37f; });
}

}  // namespace

uint64_t Random::Next() {
  state_ += 0x9E3779B97F4A7C15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double Random::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

int64_t Random::Below(int64_t count) {
  return static_cast<int64_t>(Next() % static_cast<uint64_t>(count));
}

float Random::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  return static_cast<float>(radius * std::cos(2.0 * kPi * Uniform()));
}

void Random::FillNormal(std::vector<float>* x) {
  for (float& value : *x) value = Normal();
}

const std::vector<Family>& Families() {
  static const std::vector<Family> families = {
      {"normal", FillAll, true},
      {"denormal_values", DenormalValues, true},
      {"climbing_with_outliers", ClimbingWithOutliers, false},
      {"growing", Growing, true},
      {"falling", Falling, true},
      {"ten_thousands", TenThousands, true},
      {"enormous", Enormous, false},
      {"minus_five_millions", MinusFiveMillions, false},
      {"astride_exact_maximum", AstrideExactMaximum, false},
      {"near_minus_two_to_31", NearMinusTwoTo31, false},
      {"mixed_magnitudes", MixedMagnitudes, false},
      {"huge_and_tiny_values", HugeAndTinyValues, true},
      {"rounding_ties", RoundingTies, true},
      {"all_equal", AllEqual, true},
      {"visible_nan", VisibleNan, false},
      {"visible_infinity", VisibleInfinity, false},
      {"lowest_scores", LowestScores, false},
      {"flushed", Flushed, true},
  };
  return families;
}

Case NormalCase(const heed_problem& problem, uint64_t seed,
                int64_t causal_offset) {
  Case c = MakeCase(problem, causal_offset);
  Random random(seed);
  Families().front().fill(&random, &c);
  return c;
}

}  // namespace heed::test
