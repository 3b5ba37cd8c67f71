// The inputs of a node as heed takes them: views of tensors of either rank, and
// masks of every shape that the operator allows.
#ifndef HEED_ONNXRUNTIME_NODE_INPUTS_H_
#define HEED_ONNXRUNTIME_NODE_INPUTS_H_

#include <heed.h>
#include <onnxruntime_cxx_api.h>

#include <cstdint>
#include <string>
#include <vector>

namespace heed_ort {

// Throws Ort::Exception: what the node's user gave is wrong.
[[noreturn]] void Refuse(const std::string& line);

// A tensor seen as [batch, heads, len, dim], strides in elements.
struct View {
  const void* data = nullptr;
  int64_t batch = 0, heads = 0, len = 0, dim = 0;
  heed_input input{};
};

// `heads` is read only of a tensor of rank 3. Refuses other ranks.
View ViewOf(const Ort::ConstValue& value, const char* name, int64_t heads);

// All elements of a tensor of `dtype`.
std::vector<float> Floats(const Ort::ConstValue& value, heed_dtype dtype);

// Sets the mask of a problem, whose sizes are set, and of its call.
// Broadcasting is aligned to the right; the keys that a short mask lacks are
// hidden, as the operator has it, in a copy that `longer` then holds.
void TakeMask(const Ort::ConstValue& value, heed_problem* problem,
              heed_call* call, std::vector<char>* longer);

}  // namespace heed_ort

#endif  // HEED_ONNXRUNTIME_NODE_INPUTS_H_
