// Random problems over everything a call of heed can say. A seed makes the same
// case on every machine.
//
// Knows no test framework.
#ifndef HEED_TESTS_RANDOM_CASE_H_
#define HEED_TESTS_RANDOM_CASE_H_

#include <cstdint>

#include "tests/attention_case.h"

namespace heed::test {

// What a case can be made to have, beside what it has by chance.
enum Feature : uint32_t {
  kWindow = 1,
  kSoftCap = 2,
  kAlibi = 4,
  kBoolMask = 8,
  kAdditiveMask = 16,
  kSinks = 32,
  kRagged = 64,
  kPages = 128,
  kDecode = 256,     // 1 to 16 query tokens
  kManyKeys = 512,   // more than one chunk of keys
  kPlain = 1024,     // none of the above by chance
  kBlocks = 2048,    // a boolean mask by blocks
  kModerate = 4096,  // no numbers so extreme that an error bound says nothing
};

// `wanted` is a sum of features.
Case RandomCase(uint64_t seed, uint32_t wanted = 0);

// Settings that must not show in the result: threads, runner, and a tile on two
// of three cases. The target is the best.
Settings RandomSettings(uint64_t seed);

}  // namespace heed::test

#endif  // HEED_TESTS_RANDOM_CASE_H_
