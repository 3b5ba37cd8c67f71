// Validation of the data of one call against its problem.
#ifndef HEED_RUNTIME_CALL_H_
#define HEED_RUNTIME_CALL_H_

#include <cstddef>

#include "runtime/include/heed.h"

namespace heed {

// HEED_OK, or Fail() naming the argument, its value and what was expected.
// Reads lengths and the entries of the block table that the run will read, no
// other element, and writes nothing. Presumes a valid problem.
heed_status ValidateCall(const heed_problem& problem, const heed_call& call,
                         size_t workspace_bytes,
                         const heed_output* scores = nullptr);

// The call with 0 for the strides that no index uses, which may hold anything,
// and null for tensors without elements. Offsets formed from the result never
// overflow once ValidateCall() has passed.
heed_call WithoutUnusedStrides(const heed_problem& problem,
                               const heed_call& call);

}  // namespace heed

#endif  // HEED_RUNTIME_CALL_H_
