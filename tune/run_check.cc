#include "tune/run_check.h"

#include <cstddef>
#include <vector>

#include "tune/storage.h"

namespace heed {
namespace {

std::vector<float> Floats(int32_t dtype, const NpyTensor& tensor) {
  std::vector<float> floats(tensor.count());
  Widen(dtype, tensor.bytes.data(), floats.size(), floats.data());
  return floats;
}

// [tokens, heads, width] as [heads, tokens, width], which the reference reads.
std::vector<float> HeadsFirst(const std::vector<float>& from, int64_t tokens,
                              int64_t heads, int64_t width) {
  std::vector<float> to;
  to.reserve(from.size());
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t token = 0; token < tokens; ++token) {
      const float* row = from.data() + (token * heads + head) * width;
      to.insert(to.end(), row, row + width);
    }
  }
  return to;
}

std::vector<float> ForReference(int32_t dtype, const NpyTensor& tensor,
                                bool packed) {
  std::vector<float> floats = Floats(dtype, tensor);
  if (!packed) return floats;
  const auto& shape = tensor.shape;  // lse has no width
  return HeadsFirst(floats, shape[0], shape[1],
                    shape.size() == 3 ? shape[2] : 1);
}

}  // namespace

ReferenceError CheckRun(const RunOptions& options, const RunInputs& inputs,
                        const NpyTensor& out, const NpyTensor& lse) {
  const heed_problem& problem = inputs.problem;
  const heed_call call = CallOn(options, inputs);
  const auto q = ForReference(problem.dtype, inputs.q, inputs.packed_q);
  const auto k = ForReference(problem.dtype, inputs.k, inputs.packed_k);
  const auto v = ForReference(problem.dtype, inputs.v, inputs.packed_k);
  ReferenceInputs reference = {q.data(), k.data(), v.data()};
  reference.causal_offset = call.causal_offset;
  reference.mask = call.mask;
  std::vector<float> mask;
  if (problem.mask == HEED_MASK_DTYPE) {
    mask = Floats(problem.dtype, inputs.mask);
    reference.mask.data = mask.data();
  }
  reference.alibi_slopes = call.alibi_slopes;
  reference.sinks = call.sinks;
  reference.seqused_k = call.seqused_k;
  reference.cu_seqlens_q = call.cu_seqlens_q;
  reference.cu_seqlens_k = call.cu_seqlens_k;
  reference.causal_offsets = call.causal_offsets;
  reference.block_table = call.block_table.data;
  reference.max_pages = call.block_table.max_pages;
  return CompareWithReference(
      problem, reference,
      ForReference(problem.dtype, out, inputs.packed_q).data(),
      ForReference(HEED_F32, lse, inputs.packed_q).data());
}

}  // namespace heed
