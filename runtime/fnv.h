// FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv): short, without
// tables, and good enough to tell machines apart and to notice damage. No
// defence against anybody who means harm.
#ifndef HEED_RUNTIME_FNV_H_
#define HEED_RUNTIME_FNV_H_

#include <cstdint>
#include <string>

namespace heed {

constexpr uint64_t kFnvStart = 0xcbf29ce484222325u;
constexpr uint64_t kFnvPrime = 0x100000001b3u;

inline uint64_t Fnv1a(const std::string& text, uint64_t hash = kFnvStart) {
  for (const unsigned char byte : text) hash = (hash ^ byte) * kFnvPrime;
  return hash;
}

}  // namespace heed

#endif  // HEED_RUNTIME_FNV_H_
