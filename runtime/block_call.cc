// Validation of the data of one run of a block.
#include <cinttypes>
#include <cstdint>

#include "runtime/block.h"
#include "runtime/error.h"
#include "runtime/tensor.h"

namespace heed {
namespace {

heed_status ValidateWorkspace(const heed_block_call& call, size_t needed) {
  if (needed == 0) return HEED_OK;
  if (call.workspace == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.workspace is NULL; expected %zu bytes", needed);
  }
  if (call.workspace_size < needed) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.workspace_size is %zu; expected at least %zu, as "
                "heed_block_plan_workspace_size() says",
                call.workspace_size, needed);
  }
  if (reinterpret_cast<uintptr_t>(call.workspace) % 64 != 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.workspace is %p; expected a multiple of 64 bytes",
                call.workspace);
  }
  return HEED_OK;
}

heed_status ValidatePositions(const heed_block_plan& plan,
                              const heed_block_call& call) {
  const bool cached = plan.len_cache > 0;
  if (call.positions == nullptr) {
    if (!cached || plan.batch == 0) return HEED_OK;
    return Fail(HEED_INVALID_ARGUMENT,
                "call.positions is NULL; expected the tokens that each of "
                "%" PRId64 " sequences has in the cache",
                plan.batch);
  }
  // Positions are exact in double, which RoPE's angles need.
  const int64_t room = cached ? plan.len_cache : int64_t{1} << 53;
  for (int64_t b = 0; b < plan.batch; ++b) {
    const int64_t position = call.positions[b];
    if (position < 0 || position > room - plan.len) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "call.positions of sequence %" PRId64 " is %" PRId64
                  "; expected 0 or more, and room for %" PRId64
                  " new tokens among %" PRId64,
                  b, position, plan.len, room);
    }
  }
  return HEED_OK;
}

// The call's tensors, each checked as it is added; inputs first.
class CallTensors {
 public:
  explicit CallTensors(const heed_block_plan& plan) : plan_(plan) {}

  heed_status Add(Tensor tensor) {
    const heed_status status = ValidateTensor(&tensor);
    tensors_[count_++] = tensor;
    return status;
  }

  heed_status AddTokens(const char* name, const heed_output& tensor) {
    return Add(DescribeTensor("call", name, tensor, plan_.batch, 1, plan_.len,
                              plan_.block->desc.d_model, sizeof(float), true));
  }

  heed_status AddHeads(const char* name, const heed_output& tensor,
                       int64_t heads, int64_t len, int64_t dim) {
    return Add(DescribeTensor("call", name, tensor, plan_.batch, heads, len,
                              dim, sizeof(float), true));
  }

  heed_status ValidateApart() const {
    return ValidateDisjoint(tensors_, count_);
  }

 private:
  static constexpr size_t kMost = 16;
  const heed_block_plan& plan_;
  Tensor tensors_[kMost];
  size_t count_ = 0;
};

heed_status ValidateTensors(const heed_block_plan& plan,
                            const heed_block_call& call) {
  const heed_block_desc& desc = plan.block->desc;
  CallTensors tensors(plan);
  heed_status status =
      tensors.Add(DescribeTensor("call", "x", call.x, plan.batch, 1, plan.len,
                                 desc.d_model, sizeof(float), false));
  if (status == HEED_OK && call.positions != nullptr) {
    status = tensors.Add(DescribeArray("call", "positions", call.positions,
                                       plan.batch, sizeof(int64_t)));
  }
  if (status == HEED_OK) status = tensors.AddTokens("y", call.y);

  const struct {
    const char* name;
    const heed_output& tensor;
    int64_t heads;  // 0: tokens of d_model
    int64_t len, dim;
    bool is_needed;
  } rest[] = {{"k_cache", call.k_cache, desc.heads_kv, plan.len_cache,
               desc.dim_qk, plan.len_cache > 0},
              {"v_cache", call.v_cache, desc.heads_kv, plan.len_cache,
               desc.dim_v, plan.len_cache > 0},
              {"ln", call.ln, 0, 0, 0, false},
              {"q", call.q, desc.heads_q, plan.len, desc.dim_qk, false},
              {"k", call.k, desc.heads_kv, plan.len, desc.dim_qk, false},
              {"v", call.v, desc.heads_kv, plan.len, desc.dim_v, false},
              {"scores", call.scores, desc.heads_q, plan.len,
               plan.problem.len_k, false},
              {"pattern", call.pattern, desc.heads_q, plan.len,
               plan.problem.len_k, false},
              {"z", call.z, desc.heads_q, plan.len, desc.dim_v, false},
              {"attn_out", call.attn_out, 0, 0, 0, false},
              {"resid", call.resid, 0, 0, 0, false}};
  for (const auto& one : rest) {
    if (status != HEED_OK) return status;
    if (!one.is_needed && one.tensor.data == nullptr) continue;
    // Without a cache, one that is given is not looked at.
    if (one.heads != 0 && one.len == 0) continue;
    status = one.heads == 0 ? tensors.AddTokens(one.name, one.tensor)
                            : tensors.AddHeads(one.name, one.tensor, one.heads,
                                               one.len, one.dim);
  }
  // It is written, so that nothing else may lie in it, as an output may not.
  if (status == HEED_OK) {
    status = tensors.Add({"call",
                          "workspace",
                          call.workspace,
                          {1, 1, 1, static_cast<int64_t>(plan.workspace.bytes)},
                          {0, 0, 0, 1},
                          1,
                          true,
                          true});
  }
  return status == HEED_OK ? tensors.ValidateApart() : status;
}

}  // namespace

heed_status ValidateBlockCall(const heed_block_plan& plan,
                              const heed_block_call& call) {
  if (call.struct_size != sizeof(heed_block_call)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.struct_size is %zu; expected %zu, as "
                "heed_block_call_init() sets it",
                call.struct_size, sizeof(heed_block_call));
  }
  heed_status status = ValidateWorkspace(call, plan.workspace.bytes);
  if (status == HEED_OK) status = ValidatePositions(plan, call);
  if (status == HEED_OK) status = ValidateTensors(plan, call);
  return status;
}

}  // namespace heed

extern "C" void heed_block_call_init(heed_block_call* call) {
  if (call == nullptr) return;
  *call = heed_block_call{};
  call->struct_size = sizeof(heed_block_call);
}
