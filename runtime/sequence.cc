#include "runtime/sequence.h"

#include <algorithm>

#include "kernels/kernels.h"
#include "runtime/problem.h"

namespace heed {
namespace {

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? INT64_MIN : INT64_MAX;
}

int64_t OffsetOf(const heed_problem& problem, const heed_call& call,
                 const Sequence& sequence) {
  switch (PlacementOf(problem)) {
    case Placement::kBottomRight:
      return sequence.len_k - sequence.len_q;
    case Placement::kOffset:
      return problem.ragged != 0 && call.causal_offsets != nullptr
                 ? call.causal_offsets[sequence.batch]
                 : call.causal_offset;
    default:
      return 0;
  }
}

// Cut to [-len_q, len_k]: beyond it every token sees no key, or all of them,
// and the kernels' i + bound cannot overflow.
int64_t CutBound(int64_t bound, const Sequence& sequence) {
  return std::clamp(bound, -sequence.len_q, sequence.len_k);
}

void SetBounds(const heed_problem& problem, int64_t offset,
               Sequence* sequence) {
  sequence->first_key = kNoBound;
  sequence->end_key = kNoBound;
  int64_t end = INT64_MAX;
  if (problem.causal != HEED_CAUSAL_NONE) end = SaturatingAdd(offset, 1);
  if (problem.window != 0 && problem.window_right >= 0) {
    end = std::min(
        end, SaturatingAdd(SaturatingAdd(offset, problem.window_right), 1));
  }
  if (end != INT64_MAX) sequence->end_key = CutBound(end, *sequence);
  if (problem.window != 0 && problem.window_left >= 0) {
    const int64_t first = SaturatingAdd(offset, -problem.window_left);
    // The last token's window reaches key 0, and so does every other.
    if (first > 1 - sequence->len_q) {
      sequence->first_key = CutBound(first, *sequence);
    }
  }
}

}  // namespace

bool IsPackedQ(const heed_problem& problem, const heed_call& call) {
  return problem.ragged != 0 && call.cu_seqlens_q != nullptr;
}

bool IsPackedK(const heed_problem& problem, const heed_call& call) {
  return problem.ragged != 0 && call.cu_seqlens_k != nullptr;
}

void RangeOfToken(const Sequence& sequence, int64_t token, int64_t* begin,
                  int64_t* end) {
  *begin = sequence.first_key == kNoBound
               ? 0
               : std::max<int64_t>(token + sequence.first_key, 0);
  *end = sequence.end_key == kNoBound
             ? sequence.len_k
             : std::min(token + sequence.end_key, sequence.len_k);
}

Sequence SequenceOf(const heed_problem& problem, const heed_call& call,
                    int64_t batch) {
  Sequence sequence{};
  sequence.batch = batch;
  sequence.len_q = problem.len_q;
  sequence.len_k = problem.len_k;
  if (IsPackedQ(problem, call)) {
    sequence.q_begin = call.cu_seqlens_q[batch];
    sequence.len_q = call.cu_seqlens_q[batch + 1] - sequence.q_begin;
  }
  if (IsPackedK(problem, call)) {
    sequence.k_begin = call.cu_seqlens_k[batch];
    sequence.len_k = call.cu_seqlens_k[batch + 1] - sequence.k_begin;
  }
  if (problem.ragged != 0 && call.seqused_k != nullptr) {
    sequence.len_k = call.seqused_k[batch];
  }
  const int64_t offset = OffsetOf(problem, call, sequence);
  SetBounds(problem, offset, &sequence);
  if (problem.alibi != 0) sequence.position = offset;
  if (sequence.len_q > 0) {
    int64_t begin, end, ignored;
    RangeOfToken(sequence, 0, &begin, &ignored);
    RangeOfToken(sequence, sequence.len_q - 1, &ignored, &end);
    if (begin < end) {
      sequence.seen_begin = static_cast<size_t>(begin);
      sequence.seen_end = static_cast<size_t>(end);
    }
  }
  return sequence;
}

}  // namespace heed
