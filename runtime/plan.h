// A plan: one problem bound to a SIMD target, a tile and a number of workers.
#ifndef HEED_RUNTIME_PLAN_H_
#define HEED_RUNTIME_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/kernels.h"
#include "runtime/include/heed.h"
#include "runtime/record_files.h"

// Immutable after heed_plan_create(), so that any number of threads may run it.
//
// A task is one row block of one kv head of one batch element. Workers take
// tasks from a counter until none is left; each works in its own slice of the
// caller's workspace. Which worker runs a task cannot be seen in the result.
// A tile may ask for copies of k or v that all tasks of a kv head share: they
// follow the slices. Several workers make the copies of all heads first; one
// worker makes each head's before its row blocks, in one place.
struct heed_plan {
  heed_problem problem;
  heed::Kernels kernels;
  heed::TileChoice choice;
  heed_runner runner;
  float q_scale;
  size_t group;           // query heads per kv head
  size_t rows;            // query rows per kv head
  size_t row_blocks;      // per kv head
  size_t heads;           // kv heads of all batch elements
  size_t tasks;           // row_blocks * heads
  size_t workers;         // min(threads, tasks)
  size_t slice_bytes;     // scratch of one worker, a multiple of 64
  size_t packed_k_bytes;  // one kv head's copy of k, a multiple of 64; or 0
  size_t packed_v_bytes;  // of v
  size_t packed_heads;    // kv heads whose copies are held at once
};

namespace heed {

// Which rows a task owns.
struct TaskPlace {
  int64_t batch;
  int64_t kv_head;
  size_t row_begin;
  size_t rows;
};

// The place of the task that is `position`-th in line.
//  - One worker: a kv head's row blocks follow each other, so that its keys and
//    values stay in the cache.
//  - Several workers and causal: the last row blocks of all heads come first.
//    They see the most keys, whatever the offset, and a long task that starts
//    last would keep the others waiting.
TaskPlace PlaceOf(const heed_plan& plan, size_t position);

}  // namespace heed

#endif  // HEED_RUNTIME_PLAN_H_
