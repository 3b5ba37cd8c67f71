// One tensor as a caller described it: checked by itself and against others.
#ifndef HEED_RUNTIME_TENSOR_H_
#define HEED_RUNTIME_TENSOR_H_

#include <cstddef>
#include <cstdint>

#include "runtime/footprint.h"
#include "runtime/include/heed.h"

namespace heed {

struct Tensor {
  const char* owner;  // the struct it stands in, for messages: "call"
  const char* name;   // its field
  const void* data;
  int64_t extent[4];  // batch, head, token, dim
  int64_t stride[4];  // in elements
  int64_t element_bytes;
  bool is_output;
  bool is_pointer = false;  // the field is `data` itself, not a struct with it

  bool present = false;  // set by ValidateTensor(): it has elements
  Footprint footprint{};
};

template <typename InputOrOutput>
Tensor DescribeTensor(const char* owner, const char* name,
                      const InputOrOutput& tensor, int64_t batch, int64_t heads,
                      int64_t len, int64_t dim, int64_t element_bytes,
                      bool is_output) {
  return {owner,
          name,
          tensor.data,
          {batch, heads, len, dim},
          {tensor.stride_batch, tensor.stride_head, tensor.stride_token,
           tensor.stride_dim},
          element_bytes,
          is_output};
}

// `count` elements side by side, which are read.
Tensor DescribeArray(const char* owner, const char* name, const void* data,
                     int64_t count, int64_t element_bytes);

// Address, alignment, the last stride and reach; sets `present` and the
// footprint. HEED_OK or Fail(). Reads no element.
heed_status ValidateTensor(Tensor* tensor);

// Outputs share no byte with each other or with an input. Presumes validated
// tensors, inputs first.
heed_status ValidateDisjoint(const Tensor* tensors, size_t count);

// Clears what no index can reach: a tensor without elements, and the strides of
// axes with one index, which may hold anything.
template <typename InputOrOutput>
void ClearUnused(InputOrOutput* tensor, int64_t batch, int64_t heads,
                 int64_t len, int64_t dim) {
  if (batch == 0 || heads == 0 || len == 0 || dim == 0) *tensor = {};
  if (batch <= 1) tensor->stride_batch = 0;
  if (heads <= 1) tensor->stride_head = 0;
  if (len <= 1) tensor->stride_token = 0;
}

// Element (batch, head, token, 0), of so many bytes; null stays null.
inline const void* At(const heed_input& tensor, int64_t element_bytes,
                      int64_t batch, int64_t head, int64_t token) {
  if (tensor.data == nullptr) return nullptr;
  return static_cast<const char*>(tensor.data) +
         element_bytes *
             (batch * tensor.stride_batch + head * tensor.stride_head +
              token * tensor.stride_token);
}

inline void* At(const heed_output& tensor, int64_t element_bytes, int64_t batch,
                int64_t head, int64_t token) {
  if (tensor.data == nullptr) return nullptr;
  return static_cast<char*>(tensor.data) +
         element_bytes *
             (batch * tensor.stride_batch + head * tensor.stride_head +
              token * tensor.stride_token);
}

}  // namespace heed

#endif  // HEED_RUNTIME_TENSOR_H_
