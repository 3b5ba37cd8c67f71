// The tasks of a batch of sequences of different lengths, costliest first.
//
// Written into the workspace by one thread before the others start. (Sequences
// of the same length need no list: run.cc counts them off.)
#ifndef HEED_RUNTIME_TASK_LIST_H_
#define HEED_RUNTIME_TASK_LIST_H_

#include <cstddef>
#include <cstdint>

#include "runtime/plan.h"
#include "runtime/sequence.h"

namespace heed {

// Bytes that a count of finished parts takes: a cache line, since the workers
// of other heads write its neighbours.
constexpr size_t kCountBytes = 64;

// What one task does, for the kv head that is still to be named.
struct TaskPlace {
  int64_t batch;
  size_t row_begin, rows;  // of the kv head's row list
  // 0: attend. 1: decode. More: decode part `part` of so many, whose states
  // are in slot `slot`.
  size_t parts, part, slot;
};

// The same for every kv head of a sequence: head h has slot `slot + h`.
struct ListedTask {
  double cost;  // in (row, key) pairs
  TaskPlace place;
};

// How the rows of one sequence are cut: decoded whole, or in blocks of like
// size.
struct SequenceCut {
  bool decodes;
  size_t rows;       // per kv head
  size_t blocks;     // 0 if there are no rows
  size_t row_block;  // of all but the last
};
SequenceCut CutSequence(const heed_plan& plan, const Sequence& sequence);

// The block-th task of a sequence cut so.
TaskPlace BlockPlace(const Sequence& sequence, const SequenceCut& cut,
                     size_t block);

// Chunks of keys that some row of the sequence sees: [*begin, *end).
void SeenChunks(const Sequence& sequence, size_t* begin, size_t* end);

// Entries a list may need.
size_t TaskListRoom(const heed_plan& plan);

// The list and how many slots its decodes use.
struct TaskList {
  const ListedTask* tasks;
  size_t count;
  size_t slots;
};

// Presumes room for TaskListRoom() entries at `room`. Allocates nothing.
TaskList ListTasks(const heed_plan& plan, const heed_call& call,
                   ListedTask* room);

}  // namespace heed

#endif  // HEED_RUNTIME_TASK_LIST_H_
