#include "tests/kernel_call.h"

#include <algorithm>

#include "tests/input_families.h"
#include "tests/row_program.h"
#include "tests/scratch.h"

namespace heed::test {
namespace {

DType KernelDType(int32_t dtype) {
  return dtype == HEED_F32   ? DType::kF32
         : dtype == HEED_F16 ? DType::kF16
                             : DType::kBF16;
}

MaskType KernelMask(const heed_problem& problem) {
  switch (problem.mask) {
    case HEED_MASK_NONE:
      return MaskType::kNone;
    case HEED_MASK_BOOL:
      return MaskType::kBool;
    case HEED_MASK_F32:
      return MaskType::kF32;
    default:
      return problem.dtype == HEED_F32   ? MaskType::kF32
             : problem.dtype == HEED_F16 ? MaskType::kF16
                                         : MaskType::kBF16;
  }
}

// Bytes of an element.
int64_t BytesOf(MaskType type) {
  if (type == MaskType::kBool) return 1;
  return type == MaskType::kF32 ? 4 : 2;
}

const char* At(const void* data, int64_t bytes, int64_t elements) {
  if (data == nullptr) return nullptr;
  return static_cast<const char*>(data) + bytes * elements;
}

char* At(void* data, int64_t bytes, int64_t elements) {
  if (data == nullptr) return nullptr;
  return static_cast<char*>(data) + bytes * elements;
}

// Which tokens batch element b is, by the words of heed.h.
struct Tokens {
  int64_t batch_q, first_q, len_q;
  int64_t batch_k, first_k, used_k;
  int64_t offset;
};

Tokens TokensOf(const heed_problem& p, const heed_call& call, int64_t b) {
  Tokens t = {b, 0, p.len_q, b, 0, p.len_k, 0};
  const int32_t* cu_q = p.ragged != 0 ? call.cu_seqlens_q : nullptr;
  const int32_t* cu_k = p.ragged != 0 ? call.cu_seqlens_k : nullptr;
  if (cu_q != nullptr) {
    t.batch_q = 0;
    t.first_q = cu_q[b];
    t.len_q = cu_q[b + 1] - cu_q[b];
  }
  if (cu_k != nullptr) {
    t.batch_k = 0;
    t.first_k = cu_k[b];
    t.used_k = cu_k[b + 1] - cu_k[b];
  }
  if (p.ragged != 0 && call.seqused_k != nullptr) t.used_k = call.seqused_k[b];
  const bool causal = p.causal != HEED_CAUSAL_NONE;
  if (causal ? p.causal == HEED_CAUSAL_BOTTOM_RIGHT
             : p.align == HEED_ALIGN_BOTTOM_RIGHT) {
    t.offset = t.used_k - t.len_q;
  }
  if (causal ? p.causal == HEED_CAUSAL_OFFSET : p.align == HEED_ALIGN_OFFSET) {
    t.offset = p.ragged != 0 && call.causal_offsets != nullptr
                   ? call.causal_offsets[b]
                   : call.causal_offset;
  }
  return t;
}

// Where tokens at `offset` stop and begin to see keys; the call's numbers are
// small enough to be added.
void SetBounds(const heed_problem& p, int64_t offset, Block* block) {
  block->first_key = kNoBound;
  block->end_key = p.causal != HEED_CAUSAL_NONE ? offset + 1 : kNoBound;
  if (p.window == 0) return;
  if (p.window_left >= 0) block->first_key = offset - p.window_left;
  if (p.window_right >= 0) {
    const int64_t end = offset + p.window_right + 1;
    block->end_key =
        block->end_key == kNoBound ? end : std::min(block->end_key, end);
  }
}

// The rows of one kv head.
Block BlockOf(const heed_problem& p, const heed_call& call, const Tokens& t,
              int64_t batch, int64_t kv_head) {
  const int64_t bytes = p.dtype == HEED_F32 ? 4 : 2;
  const int64_t group = p.heads_q / p.heads_kv;
  const int64_t head = kv_head * group;
  const auto query = [&](const auto& x, int64_t element_bytes) {
    return At(x.data, element_bytes,
              t.batch_q * x.stride_batch + head * x.stride_head +
                  t.first_q * x.stride_token);
  };
  const auto keys = [&](const heed_input& x) {
    const int64_t sequence = p.page_size > 0 ? 0
                                             : t.batch_k * x.stride_batch +
                                                   t.first_k * x.stride_token;
    return At(x.data, bytes, sequence + kv_head * x.stride_head);
  };
  Block block{};
  block.q = query(call.q, bytes);
  block.k = keys(call.k);
  block.v = keys(call.v);
  block.out = query(call.out, bytes);
  block.lse = reinterpret_cast<float*>(query(call.lse, 4));
  block.q_stride_token = call.q.stride_token;
  block.q_stride_head = call.q.stride_head;
  block.k_stride = call.k.stride_token;
  block.v_stride = call.v.stride_token;
  block.out_stride_token = call.out.stride_token;
  block.out_stride_head = call.out.stride_head;
  block.lse_stride_token = call.lse.stride_token;
  block.lse_stride_head = call.lse.stride_head;
  block.group = static_cast<size_t>(group);
  block.len_k = static_cast<size_t>(t.used_k);
  block.dim_qk = static_cast<size_t>(p.dim_qk);
  block.dim_v = static_cast<size_t>(p.dim_v);
  SetBounds(p, t.offset, &block);
  block.q_scale = QueryScale(p);

  Bias& bias = block.bias;
  bias.softcap = static_cast<float>(p.softcap);
  bias.position = t.offset;
  if (p.alibi != 0) bias.slopes = call.alibi_slopes + head;
  if (p.sinks != 0) bias.sinks = call.sinks + head;
  bias.mask = KernelMask(p);
  if (bias.mask != MaskType::kNone) {
    bias.mask_data =
        At(call.mask.data, BytesOf(bias.mask),
           batch * call.mask.stride_batch + head * call.mask.stride_head);
    bias.mask_stride_token = call.mask.stride_token;
    bias.mask_stride_head = call.mask.stride_head;
    bias.mask_block_token = static_cast<size_t>(std::max(p.mask_block_q, 1));
    bias.mask_block_key = static_cast<size_t>(std::max(p.mask_block_k, 1));
  }
  if (p.page_size > 0) {
    block.pages.table =
        call.block_table.data + batch * call.block_table.stride_batch;
    block.pages.size = static_cast<size_t>(p.page_size);
    block.pages.k_stride = call.k.stride_batch;
    block.pages.v_stride = call.v.stride_batch;
  }
  return block;
}

void AttendAll(const Kernels& kernels, const Tile& tile, size_t rows,
               Block block) {
  block.tile = tile;
  const Scratch scratch(kernels.scratch_bytes(tile, block.dim_qk, block.dim_v));
  const Scratch packed_k(kernels.packed_k_bytes(block.len_k, block.dim_qk));
  const Scratch packed_v(kernels.packed_v_bytes(block.len_k, block.dim_v));
  block.scratch = scratch.get();
  if (tile.pack_k == Pack::kCall) block.packed_k = packed_k.floats();
  if (tile.pack_v == Pack::kCall) block.packed_v = packed_v.floats();
  if (block.packed_k != nullptr || block.packed_v != nullptr) {
    for (size_t key = 0; key < block.len_k; key += kChunk) {
      kernels.pack(block, key, std::min(key + kChunk, block.len_k));
    }
  }
  for (size_t row = 0; row < rows; row += tile.row_block) {
    block.row_begin = row;
    block.rows = std::min(tile.row_block, rows - row);
    kernels.attend(block);
  }
}

void DecodeParts(const Kernels& kernels, size_t piece, const Block& block) {
  const size_t chunks = (block.len_k + kChunk - 1) / kChunk;
  const size_t floats = kernels.state_floats(block.rows, block.dim_v);
  const Scratch states(chunks * floats * sizeof(float));
  size_t end = chunks;
  while (end > 0) {
    const size_t begin = end > piece ? end - piece : 0;
    kernels.decode_part(block, begin, end, states.floats());
    end = begin;
  }
  kernels.merge(block, chunks, states.floats());
}

void DecodeAll(const Kernels& kernels, const KernelCut& cut, size_t rows,
               Block block) {
  const Scratch scratch(
      kernels.decode_scratch_bytes(cut.rows, block.dim_qk, block.dim_v));
  block.scratch = scratch.get();
  for (size_t row = 0; row < rows; row += cut.rows) {
    block.row_begin = row;
    block.rows = std::min(cut.rows, rows - row);
    if (cut.path == KernelPath::kDecode) {
      kernels.decode(block);
    } else {
      DecodeParts(kernels, cut.chunks, block);
    }
  }
}

std::string Name(Pack pack) {
  return pack == Pack::kNone ? "none" : pack == Pack::kTile ? "tile" : "call";
}

}  // namespace

std::string NameOf(const KernelCut& cut) {
  const auto number = [](size_t x) { return std::to_string(x); };
  const std::string target = GetKernels(cut.target, DType::kF32).target;
  if (cut.path == KernelPath::kAttend) {
    return target + " attend " + number(cut.tile.row_block) + "x" +
           number(cut.tile.key_tile) + " pack_k " + Name(cut.tile.pack_k) +
           " pack_v " + Name(cut.tile.pack_v) +
           (cut.tile.prefetch ? " prefetch" : "");
  }
  return target + " decode of " + number(cut.rows) + " rows" +
         (cut.path == KernelPath::kParts
              ? " in parts of " + number(cut.chunks) + " chunks"
              : "");
}

void RunKernels(const heed_problem& problem, const heed_call& call,
                const KernelCut& cut) {
  const Kernels kernels = GetKernels(cut.target, KernelDType(problem.dtype));
  const int64_t group = problem.heads_q / problem.heads_kv;
  for (int64_t b = 0; b < problem.batch; ++b) {
    const Tokens tokens = TokensOf(problem, call, b);
    const auto rows = static_cast<size_t>(tokens.len_q * group);
    if (rows == 0) continue;
    for (int64_t kv_head = 0; kv_head < problem.heads_kv; ++kv_head) {
      const Block block = BlockOf(problem, call, tokens, b, kv_head);
      if (cut.path == KernelPath::kAttend) {
        AttendAll(kernels, cut.tile, rows, block);
      } else {
        DecodeAll(kernels, cut, rows, block);
      }
    }
  }
}

Result RunKernels(const Case& c, const KernelCut& cut) {
  Result result;
  const heed_call call = DenseCall(c, &result);
  RunKernels(c.problem, call, cut);
  return result;
}

KernelCut RandomCut(uint64_t seed, const heed_problem& problem) {
  Random random(seed ^ 0xC07u);
  std::vector<int64_t> fused;
  int64_t targets[64];
  const size_t count = SupportedTargets(targets, 64);
  for (size_t i = 0; i < count; ++i) {
    if (GetKernels(targets[i], DType::kF32).fused) fused.push_back(targets[i]);
  }
  KernelCut cut;
  cut.target = fused[random.Below(static_cast<int64_t>(fused.size()))];
  cut.path = static_cast<KernelPath>(random.Below(3));
  const Kernels kernels = GetKernels(cut.target, KernelDType(problem.dtype));
  cut.rows = static_cast<size_t>(1 + random.Below(16));
  cut.chunks = static_cast<size_t>(1 + random.Below(2));
  const bool in_place = problem.dtype == HEED_F32 && problem.page_size == 0;
  const auto pack = [&](bool may_be_none) {
    const int64_t lowest = may_be_none ? 0 : 1;
    return static_cast<Pack>(lowest + random.Below(3 - lowest));
  };
  cut.tile.row_block =
      kernels.row_multiple * static_cast<size_t>(1 + random.Below(6));
  cut.tile.key_tile = kStep * static_cast<size_t>(1 + random.Below(16));
  cut.tile.pack_k = pack(in_place);
  cut.tile.pack_v =
      pack(in_place && static_cast<size_t>(problem.dim_v) % kernels.lanes == 0);
  cut.tile.prefetch = random.Below(2) == 0;
  return cut;
}

std::vector<KernelCut> EveryCut(const heed_problem& problem) {
  std::vector<KernelCut> cuts;
  int64_t targets[64];
  const size_t count = SupportedTargets(targets, 64);
  for (size_t i = 0; i < count; ++i) {
    const Kernels kernels = GetKernels(targets[i], KernelDType(problem.dtype));
    const bool in_place = problem.dtype == HEED_F32 && problem.page_size == 0;
    const bool v_in_place =
        in_place && static_cast<size_t>(problem.dim_v) % kernels.lanes == 0;
    KernelCut cut;
    cut.target = targets[i];
    const size_t rows = kernels.row_multiple;
    for (const Tile& tile :
         {Tile{rows, kStep, Pack::kTile, Pack::kTile, false},
          Tile{6 * rows, 3 * kStep, Pack::kCall, Pack::kCall, true},
          Tile{2 * rows, kChunk, in_place ? Pack::kNone : Pack::kTile,
               v_in_place ? Pack::kNone : Pack::kCall, false}}) {
      cut.tile = tile;
      cuts.push_back(cut);
    }
    for (const size_t decoded : {size_t{1}, size_t{4}, size_t{13}}) {
      cut.rows = decoded;
      cut.path = KernelPath::kDecode;
      cuts.push_back(cut);
      cut.path = KernelPath::kParts;
      cut.chunks = decoded;
      cuts.push_back(cut);
    }
  }
  return cuts;
}

}  // namespace heed::test
