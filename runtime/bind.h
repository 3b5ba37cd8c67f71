// From a call's tensors to the Block of one kv head of one sequence.
#ifndef HEED_RUNTIME_BIND_H_
#define HEED_RUNTIME_BIND_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "runtime/plan.h"
#include "runtime/sequence.h"

namespace heed {

// What is the same for all tasks of a run. `call` has no unused strides
// (WithoutUnusedStrides).
Block CommonBlock(const heed_plan& plan, const heed_call& call);

// Points such a block at a kv head of a sequence: its tensors, its keys' ranges
// and its copies. The rows and the scratch are left to the caller.
void Bind(const heed_plan& plan, const heed_call& call,
          const Sequence& sequence, int64_t kv_head, Block* block);

}  // namespace heed

#endif  // HEED_RUNTIME_BIND_H_
