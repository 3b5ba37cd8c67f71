#include "runtime/call.h"

#include <cinttypes>
#include <cstdint>

#include "runtime/error.h"
#include "runtime/footprint.h"
#include "runtime/problem.h"

namespace heed {
namespace {

// One tensor of a call, as an input or output described it.
struct Tensor {
  const char* name;
  const void* data;
  int64_t extent[4];  // batch, head, token, dim
  int64_t stride[4];  // in elements
  int64_t element_bytes;
  bool is_output;

  bool present = false;  // set by ValidateTensor(): it has elements
  Footprint footprint{};
};

constexpr const char* kAxisNames[4] = {"batch", "head", "token", "dim"};

bool IsEmpty(const Tensor& tensor) {
  for (int64_t extent : tensor.extent) {
    if (extent == 0) return true;
  }
  return false;
}

// Alignment, the last stride and reach of one tensor; sets its footprint.
heed_status ValidateTensor(Tensor* tensor) {
  if (IsEmpty(*tensor)) return HEED_OK;
  const char* name = tensor->name;
  const auto base = reinterpret_cast<uintptr_t>(tensor->data);
  const int64_t bytes = tensor->element_bytes;
  if (tensor->data == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.%s.data is NULL; expected the address of a tensor of "
                "[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]",
                name, tensor->extent[0], tensor->extent[1], tensor->extent[2],
                tensor->extent[3]);
  }
  if (base % static_cast<uintptr_t>(bytes) != 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.%s.data is %p; expected a multiple of %" PRId64 " bytes",
                name, tensor->data, bytes);
  }
  if (tensor->extent[3] > 1 && tensor->stride[3] != 1) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.%s.stride_dim is %" PRId64
                "; expected 1: the last dimension must be contiguous",
                name, tensor->stride[3]);
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
                  "call.%s.stride_%s is %" PRId64
                  "; expected a stride within the address space",
                  name, kAxisNames[axis], stride);
    }
    if (tensor->is_output && stride == 0 && tensor->extent[axis] > 1) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "call.%s.stride_%s is 0 with %" PRId64
                  " indices; expected another stride: only inputs broadcast",
                  name, kAxisNames[axis], tensor->extent[axis]);
    }
  }
  if (!Measure(&footprint)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.%s reaches beyond the address space (strides %" PRId64
                ", %" PRId64 ", %" PRId64 "); expected smaller strides",
                name, tensor->stride[0], tensor->stride[1], tensor->stride[2]);
  }
  if (tensor->is_output && !IsInjective(footprint)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.%s overlaps itself (strides %" PRId64 ", %" PRId64
                ", %" PRId64 "); expected every element at its own place",
                name, tensor->stride[0], tensor->stride[1], tensor->stride[2]);
  }
  return HEED_OK;
}

heed_status ValidateWorkspace(const heed_call& call, size_t needed) {
  if (needed == 0) return HEED_OK;
  if (call.workspace == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.workspace is NULL; expected %zu bytes", needed);
  }
  if (call.workspace_size < needed) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.workspace_size is %zu; expected at least %zu, as "
                "heed_plan_workspace_size() says",
                call.workspace_size, needed);
  }
  if (reinterpret_cast<uintptr_t>(call.workspace) % 64 != 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.workspace is %p; expected a multiple of 64 bytes",
                call.workspace);
  }
  return HEED_OK;
}

template <typename InputOrOutput>
Tensor Describe(const char* name, const InputOrOutput& tensor, int64_t batch,
                int64_t heads, int64_t len, int64_t dim, int64_t element_bytes,
                bool is_output) {
  return {name,
          tensor.data,
          {batch, heads, len, dim},
          {tensor.stride_batch, tensor.stride_head, tensor.stride_token,
           tensor.stride_dim},
          element_bytes,
          is_output};
}

// Saturates, so that ValidateCall() sees and refuses what does not fit.
int64_t Product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

// Clears what no index can reach.
template <typename InputOrOutput>
void Clear(InputOrOutput* tensor, int64_t batch, int64_t heads, int64_t len,
           int64_t dim) {
  if (batch == 0 || heads == 0 || len == 0 || dim == 0) *tensor = {};
  if (batch <= 1) tensor->stride_batch = 0;
  if (heads <= 1) tensor->stride_head = 0;
  if (len <= 1) tensor->stride_token = 0;
}

}  // namespace

heed_call WithoutUnusedStrides(const heed_problem& p, const heed_call& call) {
  heed_call used = call;
  Clear(&used.q, p.batch, p.heads_q, p.len_q, p.dim_qk);
  Clear(&used.k, p.batch, p.heads_kv, p.len_k, p.dim_qk);
  Clear(&used.v, p.batch, p.heads_kv, p.len_k, p.dim_v);
  Clear(&used.out, p.batch, p.heads_q, p.len_q, p.dim_v);
  Clear(&used.lse, p.batch, p.heads_q, p.len_q, 1);
  return used;
}

heed_status ValidateCall(const heed_problem& p, const heed_call& call,
                         size_t workspace_bytes) {
  if (call.struct_size != sizeof(heed_call)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.struct_size is %zu; expected %zu, as heed_call_init() "
                "sets it",
                call.struct_size, sizeof(heed_call));
  }
  const int64_t bytes = ElementBytes(p.dtype);
  Tensor tensors[] = {
      Describe("q", call.q, p.batch, p.heads_q, p.len_q, p.dim_qk, bytes,
               false),
      Describe("k", call.k, p.batch, p.heads_kv, p.len_k, p.dim_qk, bytes,
               false),
      Describe("v", call.v, p.batch, p.heads_kv, p.len_k, p.dim_v, bytes,
               false),
      Describe("out", call.out, p.batch, p.heads_q, p.len_q, p.dim_v, bytes,
               true),
      Describe("lse", call.lse, p.batch, p.heads_q, p.len_q, 1, 4, true),
      // Not a tensor, but it must not meet one either.
      {"workspace",
       call.workspace,
       {1, 1, 1, static_cast<int64_t>(workspace_bytes)},
       {0, 0, 0, 1},
       1,
       true}};
  const heed_status status = ValidateWorkspace(call, workspace_bytes);
  if (status != HEED_OK) return status;
  for (Tensor& tensor : tensors) {
    const bool not_wanted = &tensor == &tensors[4] && tensor.data == nullptr;
    if (not_wanted) continue;
    const heed_status tensor_status = ValidateTensor(&tensor);
    if (tensor_status != HEED_OK) return tensor_status;
  }
  for (const Tensor& output : tensors) {
    if (!output.present || !output.is_output) continue;
    for (const Tensor& other : tensors) {
      if (&other == &output) break;
      if (other.present && !AreDisjoint(output.footprint, other.footprint)) {
        return Fail(HEED_INVALID_ARGUMENT,
                    "call.%s at %p overlaps call.%s at %p; expected them to "
                    "share no byte",
                    output.name, output.data, other.name, other.data);
      }
    }
  }
  return HEED_OK;
}

}  // namespace heed

extern "C" {

void heed_call_init(heed_call* call) {
  if (call == nullptr) return;
  *call = heed_call{};
  call->struct_size = sizeof(heed_call);
}

heed_input heed_dense_input(const void* data, int64_t heads, int64_t len,
                            int64_t dim) {
  const int64_t stride_head = heed::Product(len, dim);
  return {data, heed::Product(heads, stride_head), stride_head, dim, 1};
}

heed_output heed_dense_output(void* data, int64_t heads, int64_t len,
                              int64_t dim) {
  const int64_t stride_head = heed::Product(len, dim);
  return {data, heed::Product(heads, stride_head), stride_head, dim, 1};
}

}  // extern "C"
