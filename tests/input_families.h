// Inputs that can see a mistake in the bits. Ordinary random numbers cannot
// tell a running maximum taken per tile from one taken per step; these can.
#ifndef HEED_TESTS_INPUT_FAMILIES_H_
#define HEED_TESTS_INPUT_FAMILIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/attention_case.h"

namespace heed::test {

// Seeded numbers that are the same on every machine (splitmix64; Steele, Lea
// and Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  double Uniform();              // [0, 1)
  int64_t Below(int64_t count);  // [0, count)
  float Normal();                // N(0, 1), Box-Muller
  void FillNormal(std::vector<float>* x);

 private:
  uint64_t state_;
};

struct Family {
  std::string name;
  // Fills the inputs, and sets the scale where the family steers the scores.
  void (*fill)(Random* random, Case* c);
  // Scores stay finite in float and their errors below one half, so that an
  // error bound says something.
  bool is_moderate;
};

// All of them; the first is ordinary N(0, 1).
const std::vector<Family>& Families();

// A problem with ordinary numbers.
Case NormalCase(const heed_problem& problem, uint64_t seed = 1,
                int64_t causal_offset = 0);

}  // namespace heed::test

#endif  // HEED_TESTS_INPUT_FAMILIES_H_
