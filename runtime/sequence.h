// One sequence of a call: where its tokens lie and which keys its rows see.
#ifndef HEED_RUNTIME_SEQUENCE_H_
#define HEED_RUNTIME_SEQUENCE_H_

#include <cstddef>
#include <cstdint>

#include "runtime/include/heed.h"

namespace heed {

struct Sequence {
  int64_t batch;
  // First token of a tensor whose batch is one run of tokens; else 0.
  int64_t q_begin, k_begin;
  int64_t len_q;
  int64_t len_k;  // in use
  // As in Block: token i sees keys [i + first_key, i + end_key), cut to
  // [0, len_k). Both lie in [-len_q, len_k] or are kNoBound.
  int64_t first_key, end_key;
  int64_t position;  // token i stands at key i + position; 0 if none asks
  // No row sees a key outside [seen_begin, seen_end); both 0 if none sees any.
  size_t seen_begin, seen_end;
};

// Presumes a valid problem, and arrays of lengths that ValidateLengths() has
// passed. Takes nanoseconds.
Sequence SequenceOf(const heed_problem& problem, const heed_call& call,
                    int64_t batch);

// Keys that token i sees: [*begin, *end), empty if *begin >= *end.
void RangeOfToken(const Sequence& sequence, int64_t token, int64_t* begin,
                  int64_t* end);

// The call gives sequence lengths in one run of tokens of q (of k).
bool IsPackedQ(const heed_problem& problem, const heed_call& call);
bool IsPackedK(const heed_problem& problem, const heed_call& call);

}  // namespace heed

#endif  // HEED_RUNTIME_SEQUENCE_H_
