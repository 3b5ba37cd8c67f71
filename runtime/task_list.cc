#include "runtime/task_list.h"

#include <algorithm>
#include <cmath>

#include "runtime/problem.h"

namespace heed {
namespace {

// Rows that cost what fetching a key costs. dim 128, f32, of one core: a key
// and its value are 1 KB, at 12 GB/s 85 ns; a row takes 512 flops for it, at
// 100 GFLOP/s 5 ns.
constexpr double kFetchRows = 16;

// (row, key) pairs of the rows and what fetching their keys costs. Between its
// first and last token a block's ranges are taken to change evenly.
double CostOf(const heed_plan& plan, const Sequence& sequence,
              const TaskPlace& place) {
  const auto first = static_cast<int64_t>(place.row_begin / plan.group);
  const auto last =
      static_cast<int64_t>((place.row_begin + place.rows - 1) / plan.group);
  int64_t first_begin, first_end, last_begin, last_end;
  RangeOfToken(sequence, first, &first_begin, &first_end);
  RangeOfToken(sequence, last, &last_begin, &last_end);
  const auto keys = [](int64_t begin, int64_t end) {
    return static_cast<double>(std::max<int64_t>(end - begin, 0));
  };
  return static_cast<double>(place.rows) / 2 *
             (keys(first_begin, first_end) + keys(last_begin, last_end)) +
         kFetchRows * keys(first_begin, last_end);
}

bool ComesFirst(const ListedTask& a, const ListedTask& b) {
  if (a.cost != b.cost) return a.cost > b.cost;
  // Equal ones in the order of their keys, so that neighbours share them.
  if (a.place.batch != b.place.batch) return a.place.batch < b.place.batch;
  if (a.place.row_begin != b.place.row_begin) {
    return a.place.row_begin < b.place.row_begin;
  }
  return a.place.part < b.place.part;
}

// Cuts the decodes among tasks [0, list->count) that would keep one worker
// longer than all have on average for each of their tasks.
void CutDecodes(const heed_plan& plan, const heed_call& call, double total,
                ListedTask* tasks, TaskList* list) {
  const auto heads = static_cast<size_t>(plan.problem.heads_kv);
  const double share =
      total /
      static_cast<double>(plan.choice.cut.tasks_per_worker * plan.workers);
  const size_t whole = list->count;
  for (size_t i = 0; i < whole; ++i) {
    ListedTask& task = tasks[i];
    if (task.place.parts != 1 || !(task.cost > share)) continue;
    size_t begin, end;
    SeenChunks(SequenceOf(plan.problem, call, task.place.batch), &begin, &end);
    const size_t room = plan.workspace.list_room - list->count;
    const double wanted = std::ceil(task.cost / share);
    const size_t most = std::min({end - begin, room + 1, plan.parts});
    const size_t parts =
        wanted < static_cast<double>(most) ? static_cast<size_t>(wanted) : most;
    if (parts <= 1 || list->slots + heads > plan.workspace.slots) continue;
    task.cost /= static_cast<double>(parts);
    task.place.parts = parts;
    task.place.slot = list->slots;
    list->slots += heads;
    for (size_t part = 1; part < parts; ++part) {
      tasks[list->count] = task;
      tasks[list->count].place.part = part;
      ++list->count;
    }
  }
}

}  // namespace

SequenceCut CutSequence(const heed_plan& plan, const Sequence& sequence) {
  SequenceCut cut;
  cut.rows = static_cast<size_t>(sequence.len_q) * plan.group;
  cut.decodes = cut.rows <= plan.choice.cut.decode_rows;
  cut.row_block = cut.rows;
  cut.blocks = cut.rows != 0;
  if (cut.decodes) return cut;
  const size_t most = plan.choice.tile.row_block;
  cut.blocks = cut.rows / most + (cut.rows % most != 0);
  if (cut.rows == plan.rows) {
    // As the tile's row block, which was chosen for this length.
    cut.row_block = most;
    return cut;
  }
  const size_t multiple = plan.kernels.row_multiple;
  const size_t like = (cut.rows + cut.blocks - 1) / cut.blocks;
  cut.row_block = std::min(most, (like + multiple - 1) / multiple * multiple);
  cut.blocks = cut.rows / cut.row_block + (cut.rows % cut.row_block != 0);
  return cut;
}

TaskPlace BlockPlace(const Sequence& sequence, const SequenceCut& cut,
                     size_t block) {
  TaskPlace place{};
  place.batch = sequence.batch;
  place.row_begin = block * cut.row_block;
  place.rows = std::min(cut.row_block, cut.rows - place.row_begin);
  place.parts = cut.decodes ? 1 : 0;
  return place;
}

void SeenChunks(const Sequence& sequence, size_t* begin, size_t* end) {
  *begin = sequence.seen_begin / kChunk;
  *end = sequence.seen_end / kChunk + (sequence.seen_end % kChunk != 0);
}

size_t TaskListRoom(const heed_plan& plan) {
  const auto batch = static_cast<size_t>(plan.problem.batch);
  // Parts beyond a head's first: ListTasks() makes one for each whole share of
  // the work that a head is.
  const size_t shares =
      plan.parts > 1 ? plan.choice.cut.tasks_per_worker * plan.workers : 0;
  return batch * std::max<size_t>(plan.row_blocks, 1) + shares;
}

TaskList ListTasks(const heed_plan& plan, const heed_call& call,
                   ListedTask* room) {
  TaskList list = {room, 0, 0};
  double total = 0;
  for (int64_t batch = 0; batch < plan.problem.batch; ++batch) {
    const Sequence sequence = SequenceOf(plan.problem, call, batch);
    const SequenceCut cut = CutSequence(plan, sequence);
    for (size_t block = 0; block < cut.blocks; ++block) {
      ListedTask& task = room[list.count++];
      task.place = BlockPlace(sequence, cut, block);
      task.cost = CostOf(plan, sequence, task.place);
      total += task.cost;
    }
  }
  total *= static_cast<double>(plan.problem.heads_kv);
  CutDecodes(plan, call, total, room, &list);
  std::sort(room, room + list.count, ComesFirst);
  return list;
}

}  // namespace heed
