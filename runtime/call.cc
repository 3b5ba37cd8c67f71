#include "runtime/call.h"

#include <cinttypes>
#include <cstdint>

#include "kernels/kernels.h"
#include "runtime/error.h"
#include "runtime/lengths.h"
#include "runtime/problem.h"
#include "runtime/sequence.h"
#include "runtime/tensor.h"

namespace heed {
namespace {

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

// Saturates, so that ValidateCall() sees and refuses what does not fit.
int64_t Product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

// Axes of the tensors: what the problem says, or one run of tokens, or pages.
struct Extents {
  int64_t batch, heads, len;
};

Extents ExtentsOfQ(const heed_problem& p, const heed_call& call) {
  if (!IsPackedQ(p, call)) return {p.batch, p.heads_q, p.len_q};
  return {1, p.heads_q, call.cu_seqlens_q[p.batch]};
}

Extents ExtentsOfK(const heed_problem& p, const heed_call& call) {
  if (IsPackedK(p, call)) return {1, p.heads_kv, call.cu_seqlens_k[p.batch]};
  if (p.page_size == 0) return {p.batch, p.heads_kv, p.len_k};
  // No key, no page.
  const int64_t pages = p.len_k == 0 ? 0 : call.block_table.num_pages;
  return {pages, p.heads_kv, p.page_size};
}

// The tensors of one call, inputs first.
class Tensors {
 public:
  void Add(const Tensor& tensor) { tensors_[count_++] = tensor; }

  template <typename InputOrOutput>
  void Add(const char* name, const InputOrOutput& tensor, const Extents& axes,
           int64_t dim, int64_t element_bytes, bool is_output) {
    Add(DescribeTensor("call", name, tensor, axes.batch, axes.heads, axes.len,
                       dim, element_bytes, is_output));
  }

  template <typename Element>
  void AddArray(const char* name, const Element* data, int64_t count) {
    Add(DescribeArray("call", name, data, count, sizeof(Element)));
  }

  heed_status Validate() {
    for (size_t i = 0; i < count_; ++i) {
      const heed_status status = ValidateTensor(&tensors_[i]);
      if (status != HEED_OK) return status;
    }
    return HEED_OK;
  }

  heed_status ValidateApart() const {
    return ValidateDisjoint(tensors_, count_);
  }

 private:
  // q, k, v, mask, slopes, sinks, four arrays of lengths, the table, out, lse,
  // the scores, the workspace.
  static constexpr size_t kMost = 15;
  Tensor tensors_[kMost];
  size_t count_ = 0;
};

// The arrays beside q, k and v. All are inputs.
void AddArrays(const heed_problem& p, const heed_call& call, Tensors* tensors) {
  if (p.alibi != 0) {
    tensors->AddArray("alibi_slopes", call.alibi_slopes, p.heads_q);
  }
  if (p.sinks != 0) tensors->AddArray("sinks", call.sinks, p.heads_q);
  if (p.ragged != 0) {
    // Each may be left out.
    if (call.seqused_k != nullptr) {
      tensors->AddArray("seqused_k", call.seqused_k, p.batch);
    }
    if (call.cu_seqlens_q != nullptr) {
      tensors->AddArray("cu_seqlens_q", call.cu_seqlens_q, p.batch + 1);
    }
    if (call.cu_seqlens_k != nullptr) {
      tensors->AddArray("cu_seqlens_k", call.cu_seqlens_k, p.batch + 1);
    }
    if (call.causal_offsets != nullptr) {
      tensors->AddArray("causal_offsets", call.causal_offsets, p.batch);
    }
  }
  if (p.page_size > 0) {
    const heed_block_table& table = call.block_table;
    tensors->Add({"call",
                  "block_table",
                  table.data,
                  {p.batch, 1, 1, p.len_k == 0 ? 0 : table.max_pages},
                  {table.stride_batch, 0, 0, 1},
                  sizeof(int32_t),
                  false});
  }
}

// The entries of the block table that a run reads: of the keys that some row
// sees, from the first one's chunk on.
heed_status ValidateTable(const heed_problem& p, const heed_call& call) {
  constexpr auto kChunkKeys = static_cast<int64_t>(kChunk);
  for (int64_t b = 0; b < p.batch; ++b) {
    const Sequence sequence = SequenceOf(p, call, b);
    const auto begin = static_cast<int64_t>(sequence.seen_begin);
    const heed_status status =
        ValidatePages("call", call.block_table, p.page_size, b, sequence.len_k,
                      begin / kChunkKeys * kChunkKeys,
                      static_cast<int64_t>(sequence.seen_end));
    if (status != HEED_OK) return status;
  }
  return HEED_OK;
}

}  // namespace

heed_call WithoutUnusedStrides(const heed_problem& p, const heed_call& call) {
  heed_call used = call;
  const Extents q = ExtentsOfQ(p, call), k = ExtentsOfK(p, call);
  ClearUnused(&used.q, q.batch, q.heads, q.len, p.dim_qk);
  ClearUnused(&used.k, k.batch, k.heads, k.len, p.dim_qk);
  ClearUnused(&used.v, k.batch, k.heads, k.len, p.dim_v);
  ClearUnused(&used.out, q.batch, q.heads, q.len, p.dim_v);
  ClearUnused(&used.lse, q.batch, q.heads, q.len, 1);
  ClearUnused(&used.mask, p.batch, p.heads_q,
              MaskExtent(p.len_q, p.mask_block_q),
              MaskExtent(p.len_k, p.mask_block_k));
  return used;
}

heed_status ValidateCall(const heed_problem& p, const heed_call& call,
                         size_t workspace_bytes, const heed_output* scores) {
  if (call.struct_size != sizeof(heed_call)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.struct_size is %zu; expected %zu, as heed_call_init() "
                "sets it",
                call.struct_size, sizeof(heed_call));
  }
  heed_status status = ValidateWorkspace(call, workspace_bytes);
  if (status != HEED_OK) return status;

  // The arrays come first: lengths say how far q, k and v reach.
  Tensors tensors;
  AddArrays(p, call, &tensors);
  if (p.page_size > 0) status = ValidateTableSizes("call", call.block_table);
  if (status == HEED_OK) status = tensors.Validate();
  if (status == HEED_OK) status = ValidateLengths(p, call);
  if (status != HEED_OK) return status;

  const int64_t bytes = ElementBytes(p.dtype);
  const Extents q = ExtentsOfQ(p, call), k = ExtentsOfK(p, call);
  tensors.Add("q", call.q, q, p.dim_qk, bytes, false);
  tensors.Add("k", call.k, k, p.dim_qk, bytes, false);
  tensors.Add("v", call.v, k, p.dim_v, bytes, false);
  if (p.mask != HEED_MASK_NONE) {
    tensors.Add("mask", call.mask,
                {p.batch, p.heads_q, MaskExtent(p.len_q, p.mask_block_q)},
                MaskExtent(p.len_k, p.mask_block_k), MaskBytes(p), false);
  }
  tensors.Add("out", call.out, q, p.dim_v, bytes, true);
  if (call.lse.data != nullptr) tensors.Add("lse", call.lse, q, 1, 4, true);
  if (scores != nullptr) {
    tensors.Add(DescribeTensor("heed_scores", "scores", *scores, p.batch,
                               p.heads_q, p.len_q, p.len_k, 4, true));
  }
  // Not a tensor, but it must not meet one either.
  tensors.Add({"call",
               "workspace",
               call.workspace,
               {1, 1, 1, static_cast<int64_t>(workspace_bytes)},
               {0, 0, 0, 1},
               1,
               true,
               true});
  status = tensors.Validate();
  if (status == HEED_OK) status = tensors.ValidateApart();
  if (status == HEED_OK && p.page_size > 0 && !HasNoRows(p)) {
    status = ValidateTable(p, call);
  }
  return status;
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
