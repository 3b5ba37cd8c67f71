// libFuzzer's entry points, for checkpoint_fuzz.h. With clang:
//   cmake --preset asan -DHEED_BUILD_FUZZERS=ON -DCMAKE_C_COMPILER=clang
//         -DCMAKE_CXX_COMPILER=clang++
//   build/asan/heed_checkpoint_fuzzer -max_len=8192 -max_total_time=600 CORPUS
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "tests/checkpoint_fuzz.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heed::TryCheckpoint(data, size);
  return 0;
}

// Half of the changes are such as know the format; now and then it begins anew
// from a seed, so that no folder of seeds is needed.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max_size, unsigned seed) {
  static const std::vector<std::string> seeds = heed::CheckpointSeeds();
  std::mt19937 random(seed);
  std::string input(data, data + size);
  if (size < 2 || random() % 128 == 0) input = seeds[random() % seeds.size()];
  if (random() % 2 == 0) {
    heed::MutateCheckpoint(&random, &input);
    input.resize(std::min(input.size(), max_size));
    std::memcpy(data, input.data(), input.size());
    return input.size();
  }
  input.resize(std::min(input.size(), max_size));
  std::memcpy(data, input.data(), input.size());
  return LLVMFuzzerMutate(data, input.size(), max_size);
}
