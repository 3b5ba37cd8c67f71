// Reads and writes tensors as .npy files (NumPy's format): float32, float16,
// and uint16, as which bfloat16 is stored, since NumPy has no such type.
#ifndef HEED_TUNE_NPY_H_
#define HEED_TUNE_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tune/staged_file.h"

namespace heed {

enum class NpyType { kFloat32, kFloat16, kUint16 };

// "float32", "float16" or "uint16".
const char* NpyTypeName(NpyType type);

struct NpyTensor {
  std::vector<int64_t> shape;
  NpyType type = NpyType::kFloat32;
  std::vector<float> data;      // C order; empty unless float32
  std::vector<uint16_t> words;  // the elements of the other types

  // Makes room for so many elements of the type.
  void Resize(size_t count);
  void* elements();
  const void* elements() const;
};

// Reads a little-endian tensor of exactly `rank` dimensions in C order. On
// failure returns false and says why in one line that begins with the path.
// Allocates only what the file really holds, whatever its header claims.
bool ReadNpy(const std::string& path, size_t rank, NpyTensor* tensor,
             std::string* why);

// Stages `data` (the product of `shape` elements, C order) as a version 1.0
// file; nothing is at its path before CommitAll().
bool StageNpy(const std::string& path, NpyType type,
              const std::vector<int64_t>& shape, const void* data,
              StagedFile* file, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_NPY_H_
