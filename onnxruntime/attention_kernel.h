// One node heed.Attention: ONNX's Attention (opset 23 and 24) on heed.h. What
// the operator has and heed has not (tensors of rank 3, past and present, short
// masks) is arranged here; attention_op.cc tells ONNX Runtime of it.
#ifndef HEED_ONNXRUNTIME_ATTENTION_KERNEL_H_
#define HEED_ONNXRUNTIME_ATTENTION_KERNEL_H_

#include <heed.h>
#include <onnxruntime_cxx_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace heed_ort {

// Inputs of the node, all but the first three optional. A past and
// nonpad_kv_seqlen together, which ONNX does not allow, are what
// com.microsoft's GroupQueryAttention has: the past is a buffer with room, in
// which the new tokens of sequence b end at key nonpad_kv_seqlen[b].
enum Input : size_t {
  kQ,          // [batch, heads_q, len_q, dim], or [batch, len_q, heads_q * dim]
  kK,          // [batch, heads_kv, len_new, dim], or as q
  kV,          // [batch, heads_kv, len_new, dim_v], or as q
  kMask,       // broadcasts to [batch, heads_q, len_q, keys]; bool or q's type
  kPastKey,    // [batch, heads_kv, len_past, dim]
  kPastValue,  // [batch, heads_kv, len_past, dim_v]
  kNonpad,     // int64 [batch]: keys in use
  kSinks,      // [heads_q], q's type: not ONNX's, but GroupQueryAttention's
  kInputs
};

enum Output : size_t {
  kY,             // as q, but of v's width
  kPresentKey,    // [batch, heads_kv, keys, dim]
  kPresentValue,  // [batch, heads_kv, keys, dim_v]
  kScores,        // [batch, heads_q, len_q, keys]
  kOutputs
};

struct Attributes {
  int64_t is_causal = 0;
  int64_t q_num_heads = 0;  // read only of tensors of rank 3
  int64_t kv_num_heads = 0;
  int64_t scores_stage = 0;  // qk_matmul_output_mode
  // Not ONNX's: keys that a causal query sees before its own; -1 = all.
  int64_t local_window_size = -1;
  bool has_scale = false;
  float scale = 0;
  float softcap = 0;
};

Attributes ReadAttributes(const OrtKernelInfo* info);

class AttentionKernel {
 public:
  AttentionKernel(const Attributes& attributes, heed_dtype dtype)
      : attributes_(attributes), dtype_(dtype) {}

  // Any number of threads may compute at once. Throws Ort::Exception with
  // heed's line.
  void Compute(OrtKernelContext* context);
  OrtStatusPtr ComputeV2(OrtKernelContext* context);  // the same as a status

 private:
  using Plan = std::shared_ptr<const heed_plan>;
  struct Made {
    heed_problem problem;
    Plan plan;
  };

  Plan PlanOf(const heed_problem& problem);

  const Attributes attributes_;
  const heed_dtype dtype_;
  std::mutex mutex_;
  std::vector<Made> made_;  // the latest few
};

}  // namespace heed_ort

#endif  // HEED_ONNXRUNTIME_ATTENTION_KERNEL_H_
