// A plan: one problem bound to a SIMD target, a tile and a number of workers.
#ifndef HEED_RUNTIME_PLAN_H_
#define HEED_RUNTIME_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/kernels.h"
#include "runtime/include/heed.h"
#include "runtime/tile_choice.h"

namespace heed {

// Where the parts of a workspace begin; each begins at a cache line.
//   slices: scratch, one for each worker
//   copies: of k and v, kv head by kv head
//   states: of decodes that are cut over keys, slot by slot
//   counts: parts of each slot that are done, a cache line each
//   list:   the tasks of sequences of different lengths (task_list.h)
struct WorkspaceLayout {
  size_t slice_bytes = 0;
  size_t copies = 0;
  size_t packed_k_bytes = 0;  // one kv head's copy of k; 0: none
  size_t packed_v_bytes = 0;  // of v
  size_t packed_heads = 0;    // kv heads whose copies are held at once
  size_t states = 0, slot_bytes = 0;
  size_t slots = 0;  // kv heads that can be cut at once
  size_t counts = 0;
  size_t list = 0, list_room = 0;  // entries
  size_t bytes = 0;                // of the whole
};

}  // namespace heed

// Immutable after heed_plan_create(), so that any number of threads may run it.
//
// A task is one of
//  - a row block of one kv head of one sequence, run by Kernels::attend;
//  - all rows of one kv head of a sequence of few rows, by Kernels::decode;
//  - a part of the keys of such a kv head, where heads are fewer than workers
//    can share. The worker that finishes a kv head's last part merges them.
// Workers take tasks from a counter until none is left; each works in its own
// slice of the caller's workspace. Which worker runs a task, and how keys are
// cut, cannot be seen in the result.
// A tile may ask for copies of k or v that all row blocks of a kv head share.
// Several workers make the copies of all heads first; one worker makes each
// head's before its row blocks, in one place.
struct heed_plan {
  heed_problem problem;
  heed::Kernels kernels;
  heed::TileChoice choice;
  heed_runner runner;
  float q_scale;
  size_t group;        // query heads per kv head
  size_t rows;         // query rows per kv head; of the longest sequence
  size_t decode_rows;  // of those, the most that may be decoded; 0: none
  size_t row_blocks;   // per kv head, of the longest sequence; 0: all decode
  size_t heads;        // kv heads of all batch elements
  size_t parts;        // of the keys of a decode, at most
  size_t tasks;        // at most
  size_t workers;      // min(threads, tasks)
  heed::WorkspaceLayout workspace;
};

#endif  // HEED_RUNTIME_PLAN_H_
