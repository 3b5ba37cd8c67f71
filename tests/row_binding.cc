// Binds the rows of a call to the row program: by the words of heed.h, where
// each sequence's tokens lie and which keys each row may see.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/row_program.h"

namespace heed::test {
namespace {

// Offsets and window sides may be any number, so their sums saturate.
int64_t Add(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<int64_t>::min()
               : std::numeric_limits<int64_t>::max();
}

// One batch element: where its tokens begin in its batch's tensors, how many it
// has, and where token 0 of q stands among its keys.
struct Sequence {
  int64_t first_q = 0, len_q = 0;
  int64_t first_k = 0, used_k = 0;
  int64_t offset = 0;
  bool q_in_one_run = false, k_in_one_run = false;  // stride_batch is not used
};

Sequence SequenceOf(const heed_problem& problem, const heed_call& call,
                    int64_t batch) {
  Sequence s;
  s.len_q = problem.len_q;
  s.used_k = problem.len_k;
  if (problem.ragged != 0) {
    if (call.cu_seqlens_q != nullptr) {
      s.q_in_one_run = true;
      s.first_q = call.cu_seqlens_q[batch];
      s.len_q = call.cu_seqlens_q[batch + 1] - s.first_q;
    }
    if (call.cu_seqlens_k != nullptr) {
      s.k_in_one_run = true;
      s.first_k = call.cu_seqlens_k[batch];
      s.used_k = call.cu_seqlens_k[batch + 1] - s.first_k;
    }
    if (call.seqused_k != nullptr) s.used_k = call.seqused_k[batch];
  }
  // A causal line is an alignment, and the two enumerations agree.
  static_assert(static_cast<int>(HEED_CAUSAL_TOP_LEFT) ==
                    static_cast<int>(HEED_ALIGN_TOP_LEFT) &&
                static_cast<int>(HEED_CAUSAL_BOTTOM_RIGHT) ==
                    static_cast<int>(HEED_ALIGN_BOTTOM_RIGHT) &&
                static_cast<int>(HEED_CAUSAL_OFFSET) ==
                    static_cast<int>(HEED_ALIGN_OFFSET));
  const int32_t align =
      problem.causal != HEED_CAUSAL_NONE ? problem.causal : problem.align;
  if (align == HEED_ALIGN_BOTTOM_RIGHT) {
    s.offset = s.used_k - s.len_q;
  } else if (align == HEED_ALIGN_OFFSET) {
    s.offset = problem.ragged != 0 && call.causal_offsets != nullptr
                   ? call.causal_offsets[batch]
                   : call.causal_offset;
  }
  return s;
}

// Key 0 of a sequence's k or v.
KeyRows KeyRowsOf(const heed_problem& problem, const heed_call& call,
                  const heed_input& x, const Sequence& sequence, int64_t batch,
                  int64_t kv_head) {
  KeyRows rows;
  rows.data = static_cast<const float*>(x.data) + kv_head * x.stride_head;
  rows.stride = x.stride_token;
  if (problem.page_size > 0) {
    const heed_block_table& table = call.block_table;
    rows.pages = table.data + batch * table.stride_batch;
    rows.page_size = problem.page_size;
    rows.page_stride = x.stride_batch;
  } else if (sequence.k_in_one_run) {
    rows.data += sequence.first_k * x.stride_token;
  } else {
    rows.data += batch * x.stride_batch;
  }
  return rows;
}

// Sets the keys of token i that lengths, causal line and window leave. In this
// order a sum saturates only where the exact one lies beyond any key as well.
void SetRange(const heed_problem& problem, const Sequence& sequence,
              int64_t token, Row* row) {
  row->begin = 0;
  row->end = sequence.used_k;
  if (problem.causal != HEED_CAUSAL_NONE) {
    row->end = std::min(row->end, Add(Add(token, sequence.offset), 1));
  }
  if (problem.window == 0) return;
  if (problem.window_left >= 0) {
    row->begin = std::max<int64_t>(
        0, Add(token, Add(sequence.offset, -problem.window_left)));
  }
  if (problem.window_right >= 0) {
    row->end = std::min(
        row->end,
        Add(Add(token, Add(sequence.offset, problem.window_right)), 1));
  }
}

}  // namespace

float QueryScale(const heed_problem& problem) {
  double scale = problem.scale;
  if (problem.scale_mode == HEED_SCALE_INV_SQRT_DIM) {
    const double dim = static_cast<double>(problem.dim_qk);
    scale = problem.dim_qk == 0 ? 1.0 : 1.0 / std::sqrt(dim);
  }
  constexpr double kExactLog2E = 1.4426950408889634074;
  constexpr double kLimit = std::numeric_limits<float>::max();
  scale = std::max(-kLimit, std::min(scale * kExactLog2E, kLimit));
  return static_cast<float>(scale);
}

void ForEachRow(const heed_problem& problem, const heed_call& call,
                const std::function<void(const RowPlace&)>& visit) {
  for (int64_t b = 0; b < problem.batch; ++b) {
    const Sequence sequence = SequenceOf(problem, call, b);
    const int64_t batch = sequence.q_in_one_run ? 0 : b;
    for (int64_t h = 0; h < problem.heads_q; ++h) {
      for (int64_t i = 0; i < sequence.len_q; ++i) {
        const int64_t token = sequence.first_q + i;
        const auto at = [&](const heed_output& x) {
          return static_cast<float*>(x.data) + batch * x.stride_batch +
                 h * x.stride_head + token * x.stride_token;
        };
        visit({b, h, i, at(call.out),
               call.lse.data == nullptr ? nullptr : at(call.lse)});
      }
    }
  }
}

Row RowOf(const heed_problem& problem, const heed_call& call, int64_t batch,
          int64_t head, int64_t token) {
  const int64_t kv_head = head / (problem.heads_q / problem.heads_kv);
  const Sequence sequence = SequenceOf(problem, call, batch);
  Row row;
  row.q = static_cast<const float*>(call.q.data) +
          (sequence.q_in_one_run ? 0 : batch * call.q.stride_batch) +
          head * call.q.stride_head +
          (sequence.first_q + token) * call.q.stride_token;
  row.k = KeyRowsOf(problem, call, call.k, sequence, batch, kv_head);
  row.v = KeyRowsOf(problem, call, call.v, sequence, batch, kv_head);
  row.dim_qk = static_cast<size_t>(problem.dim_qk);
  row.dim_v = static_cast<size_t>(problem.dim_v);
  row.q_scale = QueryScale(problem);
  row.position = Add(token, sequence.offset);
  SetRange(problem, sequence, token, &row);
  row.softcap = static_cast<float>(problem.softcap);
  if (problem.alibi != 0) row.slope = call.alibi_slopes + head;
  if (problem.sinks != 0) row.sink = call.sinks + head;
  const int64_t block_q = std::max(problem.mask_block_q, 1);
  const int64_t mask_row = batch * call.mask.stride_batch +
                           head * call.mask.stride_head +
                           token / block_q * call.mask.stride_token;
  if (problem.mask == HEED_MASK_BOOL) {
    row.visible = static_cast<const uint8_t*>(call.mask.data) + mask_row;
    row.visible_block = std::max(problem.mask_block_k, 1);
  } else if (problem.mask != HEED_MASK_NONE) {
    row.added = static_cast<const float*>(call.mask.data) + mask_row;
  }
  return row;
}

void RowProgramAttention(const heed_problem& problem, const heed_call& call,
                         size_t step) {
  ForEachRow(problem, call, [&](const RowPlace& place) {
    float ignored;
    RowProgram(RowOf(problem, call, place.batch, place.head, place.token),
               place.out, place.lse == nullptr ? &ignored : place.lse, step);
  });
}

}  // namespace heed::test
