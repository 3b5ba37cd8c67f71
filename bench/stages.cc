#include "bench/stages.h"

#include <fmt/format.h>

#include <cstdio>

#include "bench/micro_task.h"

namespace heed {
namespace {

// Scores of a full prompt that the piece's one time belongs to. A row of q is
// packed once for all keys, a row of v once for all queries.
double ScoresOf(const NamedPiece& named, double work, int64_t dim) {
  if (named.piece == Piece::kSoftmax) return work;
  const double rows_or_pairs = work / static_cast<double>(dim);
  return named.is_product ? rows_or_pairs
                          : rows_or_pairs * static_cast<double>(kStageLength);
}

RoundsWanted WantedOf(const BenchOptions& options) {
  RoundsWanted wanted;
  wanted.quiet = options.rounds;
  wanted.seconds = options.seconds;
  return wanted;
}

bool MeasurePieces(const BenchOptions& options, const BenchTarget& target,
                   Roof* roof, StageRow* row, std::string* why) {
  const Kernels kernels = GetKernels(target.id, DType::kF32);
  for (const NamedPiece& named : kPieces) {
    MicroTask task(kernels, MicroTile(kernels, row->dim, named.piece),
                   row->dim);
    *why = task.Verify();
    if (!why->empty()) return false;
    const size_t times = task.Repetitions(named.piece);
    Stage stage;
    stage.name = named.name;
    double work = 0;
    stage.rounds = Interleave(WantedOf(options), roof,
                              [&] { work = task.Run(named.piece, times); });
    stage.scores = ScoresOf(named, work, row->dim) * static_cast<double>(times);
    row->stages.push_back(stage);
  }
  return true;
}

bool MeasureWhole(const BenchOptions& options, const BenchTarget& target,
                  Roof* roof, StageRow* row, std::string* why) {
  for (const char* causal : {"", "_causal"}) {
    NamedProblem named;
    named.name = named.text = fmt::format("b1_hq1_hkv1_q{0}_k{0}_d{1}{2}_f32",
                                          kStageLength, row->dim, causal);
    heed_problem_parse(named.text.c_str(), &named.problem);
    AttentionCase attention(named, 0);
    AttentionRun run(&attention, target.name, 1);
    *why = run.Verify();
    if (!why->empty()) return false;
    row->tile = run.Tile();
    Stage stage;
    stage.name = *causal == 0 ? "full" : "causal";
    stage.scores = attention.flops() / (4 * static_cast<double>(row->dim));
    stage.rounds = Interleave(WantedOf(options), roof, [&run] { run.Run(); });
    row->stages.push_back(stage);
  }
  return true;
}

}  // namespace

bool MeasureStages(const BenchOptions& options, BenchContext* context,
                   std::vector<StageRow>* rows, std::string* why) {
  for (const BenchTarget& target : context->targets()) {
    Roof& roof = context->RoofOf(target, 1);
    for (const int64_t dim : kPieceDims) {
      fmt::print(stderr, "stages of D {} on {}\n", dim, target.name);
      StageRow row;
      row.dim = dim;
      row.target = target.name;
      if (!MeasurePieces(options, target, &roof, &row, why) ||
          !MeasureWhole(options, target, &roof, &row, why)) {
        *why = fmt::format("D {}: {}", dim, *why);
        return false;
      }
      rows->push_back(row);
    }
  }
  // The last round may have had the best canary.
  for (StageRow& row : *rows) {
    row.best_canary = context->BestCanary(row.target, 1);
  }
  return true;
}

}  // namespace heed
