// The header of a .safetensors file: bytes in, a list of tensors or a reason
// out. No I/O.
//
// Format: https://huggingface.co/docs/safetensors, "Format": 8 bytes of header
// length (little endian), a JSON object of that many bytes, data. As the
// reference implementation does, refuses data that belong to no tensor, or to
// two.
#ifndef HEED_TUNE_SAFETENSORS_H_
#define HEED_TUNE_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heed {

struct StoredTensor {
  std::string name;
  std::string dtype;  // "F32", "BF16", ...: one of the format's names
  std::vector<int64_t> shape;
  // Where its elements lie, in C order, little endian, of any alignment: bytes
  // [begin, end) of the file.
  size_t begin, end;
};

// Longest header that is read, as in the reference implementation. It keeps a
// hostile length field from asking for memory.
constexpr size_t kMaxSafetensorsHeaderBytes = 100'000'000;

// Parses a whole file, of whose data nothing is read. The tensors come in the
// order of their data, and lie within the file one after the other. On failure
// returns false and says why in one line, which names the tensor if one is at
// fault.
bool ParseSafetensors(const unsigned char* bytes, size_t size,
                      std::vector<StoredTensor>* tensors, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_SAFETENSORS_H_
