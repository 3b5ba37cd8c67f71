#include "runtime/bind.h"

#include <algorithm>

#include "runtime/lengths.h"
#include "runtime/problem.h"
#include "runtime/tensor.h"

namespace heed {
namespace {

void BindBias(const heed_problem& problem, const heed_call& call,
              const Sequence& sequence, int64_t first_head, Bias* bias) {
  bias->position = sequence.position;
  if (problem.alibi != 0) bias->slopes = call.alibi_slopes + first_head;
  if (problem.sinks != 0) bias->sinks = call.sinks + first_head;
  if (problem.mask != HEED_MASK_NONE) {
    bias->mask_data =
        At(call.mask, MaskBytes(problem), sequence.batch, first_head, 0);
  }
}

void BindCopies(const heed_plan& plan, const heed_call& call, size_t head,
                Block* block) {
  const WorkspaceLayout& at = plan.workspace;
  const size_t place = at.packed_heads == 1 ? 0 : head;
  char* packed = static_cast<char*>(call.workspace) + at.copies +
                 place * (at.packed_k_bytes + at.packed_v_bytes);
  if (at.packed_k_bytes != 0) {
    block->packed_k = reinterpret_cast<float*>(packed);
  }
  if (at.packed_v_bytes != 0) {
    block->packed_v = reinterpret_cast<float*>(packed + at.packed_k_bytes);
  }
}

}  // namespace

Block CommonBlock(const heed_plan& plan, const heed_call& call) {
  const heed_problem& problem = plan.problem;
  Block block{};
  block.q_stride_token = call.q.stride_token;
  block.q_stride_head = call.q.stride_head;
  block.k_stride = call.k.stride_token;
  block.v_stride = call.v.stride_token;
  block.out_stride_token = call.out.stride_token;
  block.out_stride_head = call.out.stride_head;
  block.lse_stride_token = call.lse.stride_token;
  block.lse_stride_head = call.lse.stride_head;
  block.group = plan.group;
  block.dim_qk = static_cast<size_t>(problem.dim_qk);
  block.dim_v = static_cast<size_t>(problem.dim_v);
  block.q_scale = plan.q_scale;
  block.bias.softcap = static_cast<float>(problem.softcap);
  block.bias.mask = KernelMask(problem);
  block.bias.mask_block_token =
      static_cast<size_t>(std::max(problem.mask_block_q, 1));
  block.bias.mask_block_key =
      static_cast<size_t>(std::max(problem.mask_block_k, 1));
  block.bias.mask_stride_token = call.mask.stride_token;
  block.bias.mask_stride_head = call.mask.stride_head;
  if (problem.page_size > 0) {
    block.pages.size = static_cast<size_t>(problem.page_size);
    block.pages.k_stride = call.k.stride_batch;
    block.pages.v_stride = call.v.stride_batch;
  }
  block.tile = plan.choice.tile;
  return block;
}

void Bind(const heed_plan& plan, const heed_call& call,
          const Sequence& sequence, int64_t kv_head, Block* block) {
  const heed_problem& problem = plan.problem;
  const int64_t element = ElementBytes(problem.dtype);
  const int64_t first_head = kv_head * static_cast<int64_t>(plan.group);
  const int64_t batch = sequence.batch, token = sequence.q_begin;
  // Tensors of one run of tokens have no stride_batch left, and pages have
  // theirs in block->pages.
  block->q = At(call.q, element, batch, first_head, token);
  block->out = At(call.out, element, batch, first_head, token);
  block->lse = static_cast<float*>(At(call.lse, 4, batch, first_head, token));
  const int64_t kv_batch = problem.page_size > 0 ? 0 : batch;
  block->k = At(call.k, element, kv_batch, kv_head, sequence.k_begin);
  block->v = At(call.v, element, kv_batch, kv_head, sequence.k_begin);
  if (problem.page_size > 0) {
    block->pages.table = TableRow(call.block_table, batch);
  }
  block->len_k = static_cast<size_t>(sequence.len_k);
  block->first_key = sequence.first_key;
  block->end_key = sequence.end_key;
  BindBias(problem, call, sequence, first_head, &block->bias);
  BindCopies(plan, call,
             static_cast<size_t>(batch * problem.heads_kv + kv_head), block);
}

}  // namespace heed
