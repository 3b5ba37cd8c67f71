// Memory that the code under test works in: aligned, of just the size it asked
// for, filled with NaN, since nothing may depend on what lies there, and
// between guards, since nothing may be written beside it.
#ifndef HEED_TESTS_SCRATCH_H_
#define HEED_TESTS_SCRATCH_H_

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/sanitizer.h"

namespace heed::test {

class Scratch {
 public:
  explicit Scratch(size_t bytes) : bytes_(bytes) {
    const size_t whole_lines = (bytes + kLine - 1) / kLine * kLine;
    const size_t all = whole_lines + 2 * kGuard;
    if (all == 0) return;
    memory_ = static_cast<char*>(std::aligned_alloc(kLine, all));
    std::memset(memory_, kGuardByte, all);
    std::memset(memory_ + kGuard, 0xFF, bytes);
  }
  ~Scratch() {
    const std::vector<char> guard(kGuard, kGuardByte);
    if (kGuard > 0 &&
        (std::memcmp(memory_, guard.data(), kGuard) != 0 ||
         std::memcmp(memory_ + kGuard + bytes_, guard.data(), kGuard) != 0)) {
      std::fprintf(stderr, "written beside a scratch of %zu bytes\n", bytes_);
      std::abort();
    }
    std::free(memory_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Null if no byte was asked for.
  void* get() const { return bytes_ == 0 ? nullptr : memory_ + kGuard; }
  float* floats() const { return static_cast<float*>(get()); }

 private:
  static constexpr size_t kLine = 64;
  // A sanitizer's own guards see more, if nothing of ours is in their place.
  static constexpr size_t kGuard = HEED_MALLOC_SANITIZER ? 0 : 4096;
  static constexpr char kGuardByte = '\x5A';

  size_t bytes_;
  char* memory_ = nullptr;
};

}  // namespace heed::test

#endif  // HEED_TESTS_SCRATCH_H_
