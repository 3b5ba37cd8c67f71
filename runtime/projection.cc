#include "runtime/projection.h"

#include <algorithm>

#include "runtime/counted_tasks.h"
#include "runtime/plan.h"
#include "runtime/sticky_size.h"

namespace heed {
namespace {

size_t DivideUp(size_t a, size_t b) { return a / b + (a % b != 0); }

// Panels that one row meets at once (kernels/project-inl.h).
constexpr size_t kPanelsAtOnce = 4;

size_t WideFloats(const TokenKernels& kernels) {
  return RoundUp(kInputChunk * kernels.panel_columns, 16);
}

void RunTask(const void* context, size_t worker, size_t number) {
  const auto& run = *static_cast<const ProjectionRun*>(context);
  const ProjectionCut& cut = run.cut;
  // Tasks that follow each other share their panels: these come from memory
  // once, and from a cache for the other rows.
  const size_t row_block = number % cut.row_blocks;
  const size_t panel_block = number / cut.row_blocks;
  const size_t row_begin = row_block * cut.row_block;
  const size_t panel_begin = panel_block * cut.panel_block;
  const size_t column_begin = panel_begin * run.kernels->panel_columns;
  auto* slice = reinterpret_cast<float*>(run.slices + worker * run.slice_bytes);

  ProjectTask task{};
  task.x = run.x + row_begin * run.x_stride;
  task.x_stride = run.x_stride;
  task.rows = std::min(cut.row_block, cut.rows - row_begin);
  task.inputs = run.matrix->inputs;
  task.w = run.matrix->data.get();
  task.panels = cut.panels;
  task.bias = static_cast<const float*>(run.matrix->bias.get());
  task.panel_begin = panel_begin;
  task.panel_end = std::min(panel_begin + cut.panel_block, cut.panels);
  task.scratch = slice;
  if (run.y != nullptr) {
    task.y = run.y + row_begin * run.y_stride + column_begin;
    task.y_stride = run.y_stride;
  } else {
    task.y = slice + WideFloats(*run.kernels);
    task.y_stride = ScratchStride(cut.panel_block * run.kernels->panel_columns);
  }
  run.kernels->project[static_cast<size_t>(run.matrix->dtype)](task);
  if (run.y != nullptr) return;
  const size_t columns =
      (task.panel_end - panel_begin) * run.kernels->panel_columns;
  run.finish(run.context,
             {row_begin, task.rows, column_begin,
              std::min(columns, run.matrix->outputs - column_begin), task.y,
              task.y_stride});
}

}  // namespace

ProjectionCut CutProjection(const TokenKernels& kernels,
                            const PackedMatrix& matrix, size_t rows,
                            size_t workers, size_t l2_bytes) {
  ProjectionCut cut;
  cut.rows = rows;
  cut.panels = matrix.panels;
  if (rows == 0) return cut;
  const size_t multiple = kernels.row_multiple;
  // A chunk of x takes a seventh of the L2 at most, and the sums of a task,
  // which come back at every chunk, a quarter: of 512 KB 72 rows of 1 KB, and
  // 28 panels of 64 bytes in each. From 24 rows to 126 it hardly matters (Zen
  // 3, 1024 x 768 x 2304, one thread's own time: 93 to 95 GFLOP/s of 103); 210
  // and more lose 5 %.
  const size_t most =
      std::max(l2_bytes / 7 / (kInputChunk * sizeof(float)), 2 * multiple) /
      multiple * multiple;
  cut.row_blocks = DivideUp(rows, most);
  cut.row_block = RoundUp(DivideUp(rows, cut.row_blocks), multiple);
  cut.row_blocks = DivideUp(rows, cut.row_block);
  const size_t panel_bytes =
      std::min(rows, cut.row_block) * kernels.panel_columns * sizeof(float);
  cut.panel_block = std::max<size_t>(l2_bytes / 4 / panel_bytes, 1);
  if (workers > 1) {
    // Enough tasks that the wait for the last one is short.
    const size_t wanted =
        DivideUp(2 * kTasksPerWorker * workers, cut.row_blocks);
    cut.panel_block =
        std::min(cut.panel_block, std::max<size_t>(matrix.panels / wanted, 1));
  }
  if (cut.panel_block > kPanelsAtOnce) {
    cut.panel_block -= cut.panel_block % kPanelsAtOnce;
  } else if (rows == 1) {
    cut.panel_block = kPanelsAtOnce;
  }
  cut.panel_block = std::min(cut.panel_block, matrix.panels);
  cut.panel_blocks = DivideUp(matrix.panels, cut.panel_block);
  return cut;
}

size_t ProjectionFloats(const TokenKernels& kernels, const ProjectionCut& cut,
                        bool with_y) {
  const size_t stride = ScratchStride(cut.panel_block * kernels.panel_columns);
  return WideFloats(kernels) +
         (with_y ? std::min(cut.row_block, cut.rows) * stride : 0);
}

heed_status RunProjection(const ProjectionRun& run, const heed_runner& runner,
                          size_t workers) {
  return RunCounted(runner, workers, run.cut.tasks(), RunTask, &run);
}

size_t ScratchStride(size_t floats) {
  const size_t stride = (floats + 15) / 16 * 16;
  return stride % 1024 == 0 ? stride + 16 : stride;
}

}  // namespace heed
