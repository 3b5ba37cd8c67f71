#include "onnxruntime/node_inputs.h"

#include <algorithm>
#include <cstring>

namespace heed_ort {

void Refuse(const std::string& line) {
  throw Ort::Exception("heed.Attention: " + line, ORT_INVALID_ARGUMENT);
}

View ViewOf(const Ort::ConstValue& value, const char* name, int64_t heads) {
  const auto shape = value.GetTensorTypeAndShapeInfo().GetShape();
  View view;
  view.data = value.GetTensorRawData();
  if (shape.size() == 4) {
    view.batch = shape[0], view.heads = shape[1], view.len = shape[2];
    view.dim = shape[3];
    view.input = heed_dense_input(view.data, view.heads, view.len, view.dim);
  } else if (shape.size() == 3) {
    if (heads <= 0 || shape[2] % heads != 0) {
      Refuse(std::string(name) + " is " + std::to_string(shape[2]) +
             " wide; expected a multiple of its number of heads, " +
             std::to_string(heads) + ", which tensors of rank 3 need");
    }
    view.batch = shape[0], view.heads = heads, view.len = shape[1];
    view.dim = shape[2] / heads;
    view.input = {view.data, shape[1] * shape[2], view.dim, shape[2], 1};
  } else {
    Refuse(std::string(name) + " has rank " + std::to_string(shape.size()) +
           "; expected 3 or 4");
  }
  return view;
}

std::vector<float> Floats(const Ort::ConstValue& value, heed_dtype dtype) {
  const size_t count = value.GetTensorTypeAndShapeInfo().GetElementCount();
  std::vector<float> floats(count);
  const void* data = value.GetTensorRawData();
  for (size_t i = 0; i < count; ++i) {
    floats[i] = dtype == HEED_F32 ? static_cast<const float*>(data)[i]
                : dtype == HEED_F16
                    ? static_cast<const Ort::Float16_t*>(data)[i].ToFloat()
                    : static_cast<const Ort::BFloat16_t*>(data)[i].ToFloat();
  }
  return floats;
}

void TakeMask(const Ort::ConstValue& value, heed_problem* problem,
              heed_call* call, std::vector<char>* longer) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  const auto type = info.GetElementType();
  const auto given = info.GetShape();
  if (given.empty() || given.size() > 4) {
    Refuse("attn_mask has rank " + std::to_string(given.size()) +
           "; expected 1 to 4");
  }
  const bool is_bool = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
  const bool is_f32 = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  const bool is_own = (problem->dtype == HEED_F16 &&
                       type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16) ||
                      (problem->dtype == HEED_BF16 &&
                       type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16);
  if (!is_bool && !is_f32 && !is_own) {
    Refuse("attn_mask has element type " + std::to_string(type) +
           "; expected bool, float or that of Q");
  }
  problem->mask = is_bool  ? HEED_MASK_BOOL
                  : is_f32 ? HEED_MASK_F32
                           : HEED_MASK_DTYPE;
  int64_t shape[4] = {1, 1, 1, 1};
  std::copy(given.begin(), given.end(), shape + 4 - given.size());
  const int64_t want[4] = {problem->batch, problem->heads_q, problem->len_q,
                           problem->len_k};
  for (int axis = 0; axis < 4; ++axis) {
    const bool fits = axis == 3 ? shape[axis] <= want[axis]
                                : shape[axis] == 1 || shape[axis] == want[axis];
    if (!fits) {
      Refuse("attn_mask has size " + std::to_string(shape[axis]) + " on axis " +
             std::to_string(axis) + " of 4; expected " +
             (axis == 3 ? "at most " : "1 or ") + std::to_string(want[axis]));
    }
  }
  const void* data = value.GetTensorRawData();
  const int64_t keys = want[3];
  if (shape[3] < keys) {
    const auto bytes = static_cast<size_t>(is_bool ? 1 : is_f32 ? 4 : 2);
    // False, or -inf in float32, float16 or bfloat16.
    const uint32_t hidden = is_bool                      ? 0
                            : is_f32                     ? 0xFF800000u
                            : problem->dtype == HEED_F16 ? 0xFC00u
                                                         : 0xFF80u;
    const auto rows = static_cast<size_t>(shape[0] * shape[1] * shape[2]);
    const auto row = static_cast<size_t>(keys) * bytes;
    const auto have = static_cast<size_t>(shape[3]) * bytes;
    longer->resize(rows * row);
    for (size_t r = 0; r < rows; ++r) {
      char* to = longer->data() + r * row;
      if (have != 0) {
        std::memcpy(to, static_cast<const char*>(data) + r * have, have);
      }
      for (size_t at = have; at < row; at += bytes) {
        std::memcpy(to + at, &hidden, bytes);
      }
    }
    data = longer->data();
  }
  call->mask = {data, shape[0] == 1 ? 0 : shape[1] * shape[2] * keys,
                shape[1] == 1 ? 0 : shape[2] * keys, shape[2] == 1 ? 0 : keys,
                1};
}

}  // namespace heed_ort
