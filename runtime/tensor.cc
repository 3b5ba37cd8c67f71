#include "runtime/tensor.h"

#include <cinttypes>

#include "runtime/error.h"

namespace heed {
namespace {

constexpr const char* kAxisNames[4] = {"batch", "head", "token", "dim"};

bool IsEmpty(const Tensor& tensor) {
  for (int64_t extent : tensor.extent) {
    if (extent == 0) return true;
  }
  return false;
}

// The field that holds the address.
const char* Data(const Tensor& tensor) {
  return tensor.is_pointer ? "" : ".data";
}

}  // namespace

Tensor DescribeArray(const char* owner, const char* name, const void* data,
                     int64_t count, int64_t element_bytes) {
  return {owner,        name,          data,  {1, 1, 1, count},
          {0, 0, 0, 1}, element_bytes, false, true};
}

heed_status ValidateTensor(Tensor* tensor) {
  if (IsEmpty(*tensor)) return HEED_OK;
  const char* owner = tensor->owner;
  const char* name = tensor->name;
  const auto base = reinterpret_cast<uintptr_t>(tensor->data);
  const int64_t bytes = tensor->element_bytes;
  if (tensor->data == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "%s.%s%s is NULL; expected the address of a tensor of "
                "[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]",
                owner, name, Data(*tensor), tensor->extent[0],
                tensor->extent[1], tensor->extent[2], tensor->extent[3]);
  }
  if (base % static_cast<uintptr_t>(bytes) != 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "%s.%s%s is %p; expected a multiple of %" PRId64 " bytes",
                owner, name, Data(*tensor), tensor->data, bytes);
  }
  if (tensor->extent[3] > 1 && tensor->stride[3] != 1) {
    return Fail(HEED_INVALID_ARGUMENT,
                "%s.%s.stride_dim is %" PRId64
                "; expected 1: the last dimension must be contiguous",
                owner, name, tensor->stride[3]);
  }
  tensor->present = true;
  Footprint& footprint = tensor->footprint;
  footprint.base = base;
  footprint.element_bytes = bytes;
  for (int axis = 0; axis < 4; ++axis) {
    footprint.extent[axis] = tensor->extent[axis];
    // The stride of an axis with one index is never used, whatever it is.
    const int64_t stride = tensor->extent[axis] > 1 ? tensor->stride[axis] : 0;
    if (__builtin_mul_overflow(stride, bytes, &footprint.stride_bytes[axis])) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "%s.%s.stride_%s is %" PRId64
                  "; expected a stride within the address space",
                  owner, name, kAxisNames[axis], stride);
    }
    if (tensor->is_output && stride == 0 && tensor->extent[axis] > 1) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "%s.%s.stride_%s is 0 with %" PRId64
                  " indices; expected another stride: only inputs broadcast",
                  owner, name, kAxisNames[axis], tensor->extent[axis]);
    }
  }
  if (!Measure(&footprint)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "%s.%s reaches beyond the address space (strides %" PRId64
                ", %" PRId64 ", %" PRId64 "); expected smaller strides",
                owner, name, tensor->stride[0], tensor->stride[1],
                tensor->stride[2]);
  }
  if (tensor->is_output && !IsInjective(footprint)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "%s.%s overlaps itself (strides %" PRId64 ", %" PRId64
                ", %" PRId64 "); expected every element at its own place",
                owner, name, tensor->stride[0], tensor->stride[1],
                tensor->stride[2]);
  }
  return HEED_OK;
}

heed_status ValidateDisjoint(const Tensor* tensors, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Tensor& output = tensors[i];
    if (!output.present || !output.is_output) continue;
    for (size_t j = 0; j < i; ++j) {
      const Tensor& other = tensors[j];
      if (other.present && !AreDisjoint(output.footprint, other.footprint)) {
        return Fail(HEED_INVALID_ARGUMENT,
                    "%s.%s at %p overlaps %s.%s at %p; expected them to share "
                    "no byte",
                    output.owner, output.name, output.data, other.owner,
                    other.name, other.data);
      }
    }
  }
  return HEED_OK;
}

}  // namespace heed
