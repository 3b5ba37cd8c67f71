// Reads and writes tensors as .npy files (NumPy's format). bfloat16 is stored
// as uint16, since NumPy has no such type.
#ifndef HEED_TUNE_NPY_H_
#define HEED_TUNE_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tune/staged_file.h"

namespace heed {

enum class NpyType {
  kFloat32,
  kFloat16,
  kUint16,
  kBool,
  kUint8,
  kInt32,
  kInt64
};

// "float32" and so on, NumPy's name.
const char* NpyTypeName(NpyType type);

struct NpyTensor {
  std::vector<int64_t> shape;
  NpyType type = NpyType::kFloat32;
  std::vector<unsigned char> bytes;  // the elements, in C order

  // Makes room for so many elements of the type; an exception if there is none.
  void Resize(size_t count);
  size_t count() const;
  // `T` is what the type is in C++: float, uint16_t, uint8_t, ...
  template <typename T>
  const T* elements() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
};

// What a file has to be.
struct NpyForm {
  size_t min_rank, max_rank;
  std::vector<NpyType> types;
};

// Reads a little-endian tensor of that form in C order. On failure returns
// false and says why in one line that begins with the path. Allocates only what
// the file really holds, whatever its header claims.
bool ReadNpy(const std::string& path, const NpyForm& form, NpyTensor* tensor,
             std::string* why);

// Stages `data` (the product of `shape` elements, C order) as a version 1.0
// file; nothing is at its path before CommitAll().
bool StageNpy(const std::string& path, NpyType type,
              const std::vector<int64_t>& shape, const void* data,
              StagedFile* file, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_NPY_H_
