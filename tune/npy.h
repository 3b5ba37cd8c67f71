// Reads and writes tensors as .npy files (NumPy's format), float32 only.
#ifndef HEED_TUNE_NPY_H_
#define HEED_TUNE_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tune/staged_file.h"

namespace heed {

struct NpyTensor {
  std::vector<int64_t> shape;
  std::vector<float> data;  // C order
};

// Reads a little-endian float32 tensor of exactly `rank` dimensions in C order.
// On failure returns false and says why in one line that begins with the path;
// float16 and bfloat16 (stored as uint16) are recognised and refused by name.
// Allocates only what the file really holds, whatever its header claims.
bool ReadNpy(const std::string& path, size_t rank, NpyTensor* tensor,
             std::string* why);

// Stages `data` (the product of `shape` floats, C order) as a version 1.0 file;
// nothing is at its path before CommitAll().
bool StageNpy(const std::string& path, const std::vector<int64_t>& shape,
              const float* data, StagedFile* file, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_NPY_H_
