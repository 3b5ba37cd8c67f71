#include "runtime/lengths.h"

#include <algorithm>
#include <cinttypes>

#include "runtime/error.h"
#include "runtime/problem.h"
#include "runtime/sequence.h"

namespace heed {
namespace {

// The farthest a caller may put queries from keys: ALiBi's distances then fit
// 64 bits. (Without ALiBi nothing beyond the lengths matters.)
constexpr int64_t kMaxOffset = int64_t{1} << 61;

heed_status ValidateUsed(const heed_problem& problem, const heed_call& call) {
  const bool packed = IsPackedK(problem, call);
  for (int64_t b = 0; b < problem.batch; ++b) {
    const int64_t used = call.seqused_k[b];
    const int64_t room =
        packed ? int64_t{call.cu_seqlens_k[b + 1]} - call.cu_seqlens_k[b]
               : problem.len_k;
    if (used < 0 || used > room) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "call.seqused_k of sequence %" PRId64 " is %" PRId64
                  "; expected 0 to %" PRId64 ", %s",
                  b, used, room,
                  packed ? "its length in cu_seqlens_k" : "problem.len_k");
    }
  }
  return HEED_OK;
}

heed_status ValidateOffsets(const heed_problem& problem,
                            const heed_call& call) {
  const auto fits = [](int64_t offset) {
    return offset >= -kMaxOffset && offset <= kMaxOffset;
  };
  if (problem.ragged == 0 || call.causal_offsets == nullptr) {
    if (fits(call.causal_offset)) return HEED_OK;
    return Fail(HEED_INVALID_ARGUMENT,
                "call.causal_offset is %" PRId64
                "; expected -2^61 to 2^61 with ALiBi",
                call.causal_offset);
  }
  for (int64_t b = 0; b < problem.batch; ++b) {
    if (fits(call.causal_offsets[b])) continue;
    return Fail(HEED_INVALID_ARGUMENT,
                "call.causal_offsets of sequence %" PRId64 " is %" PRId64
                "; expected -2^61 to 2^61 with ALiBi",
                b, call.causal_offsets[b]);
  }
  return HEED_OK;
}

}  // namespace

heed_status ValidateCumulative(const char* owner, const char* name,
                               const int32_t* ends, int64_t batch,
                               const char* longest_name, int64_t longest) {
  if (ends[0] != 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "%s.%s begins with %" PRId32 "; expected 0", owner, name,
                ends[0]);
  }
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = int64_t{ends[b + 1]} - ends[b];
    if (length < 0) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "%s.%s of sequence %" PRId64 ": entry %" PRId64 " is %" PRId32
                  "; expected at least entry %" PRId64 ", which is %" PRId32,
                  owner, name, b, b + 1, ends[b + 1], b, ends[b]);
    }
    if (length > longest) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "%s.%s of sequence %" PRId64 ": its length is %" PRId64
                  "; expected at most %s, which is %" PRId64,
                  owner, name, b, length, longest_name, longest);
    }
  }
  return HEED_OK;
}

heed_status ValidateLengths(const heed_problem& problem,
                            const heed_call& call) {
  heed_status status = HEED_OK;
  if (IsPackedK(problem, call) && problem.page_size > 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.cu_seqlens_k is %p; expected NULL with pages, of which "
                "block_table says where they are",
                static_cast<const void*>(call.cu_seqlens_k));
  }
  if (IsPackedQ(problem, call)) {
    status = ValidateCumulative("call", "cu_seqlens_q", call.cu_seqlens_q,
                                problem.batch, "problem.len_q", problem.len_q);
  }
  if (status == HEED_OK && IsPackedK(problem, call)) {
    status = ValidateCumulative("call", "cu_seqlens_k", call.cu_seqlens_k,
                                problem.batch, "problem.len_k", problem.len_k);
  }
  if (status == HEED_OK && problem.ragged != 0 && call.seqused_k != nullptr) {
    status = ValidateUsed(problem, call);
  }
  if (status == HEED_OK && problem.alibi != 0 &&
      PlacementOf(problem) == Placement::kOffset) {
    status = ValidateOffsets(problem, call);
  }
  return status;
}

heed_status ValidateTableSizes(const char* owner,
                               const heed_block_table& table) {
  if (table.max_pages < 0 || table.num_pages < 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "%s.block_table.%s is %" PRId64 "; expected 0 or more", owner,
                table.max_pages < 0 ? "max_pages" : "num_pages",
                table.max_pages < 0 ? table.max_pages : table.num_pages);
  }
  return HEED_OK;
}

heed_status ValidatePages(const char* owner, const heed_block_table& table,
                          int64_t page_size, int64_t batch, int64_t keys,
                          int64_t key_begin, int64_t key_end) {
  const int64_t pages = keys / page_size + (keys % page_size != 0);
  if (pages > table.max_pages) {
    return Fail(HEED_INVALID_ARGUMENT,
                "%s.block_table.max_pages is %" PRId64
                "; expected at least %" PRId64 " for the %" PRId64
                " keys of sequence %" PRId64 " in pages of %" PRId64,
                owner, table.max_pages, pages, keys, batch, page_size);
  }
  if (key_begin >= key_end) return HEED_OK;
  const int32_t* row = TableRow(table, batch);
  const int64_t last = (key_end - 1) / page_size;
  for (int64_t entry = key_begin / page_size; entry <= last; ++entry) {
    if (row[entry] >= 0 && row[entry] < table.num_pages) continue;
    return Fail(HEED_INVALID_ARGUMENT,
                "%s.block_table of sequence %" PRId64 ": entry %" PRId64
                " is %" PRId32 "; expected 0 to %" PRId64,
                owner, batch, entry, row[entry], table.num_pages - 1);
  }
  return HEED_OK;
}

}  // namespace heed
