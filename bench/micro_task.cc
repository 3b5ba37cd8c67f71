#include "bench/micro_task.h"

#include <algorithm>
#include <cmath>

#include "bench/interleaved.h"
#include "runtime/machine.h"
#include "runtime/problem.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

NamedProblem OneHead(int64_t dim, int64_t rows, int64_t keys) {
  NamedProblem named;
  heed_problem& p = named.problem;
  heed_problem_init(&p);
  p.batch = p.heads_q = p.heads_kv = 1;
  p.len_q = rows;
  p.len_k = keys;
  p.dim_qk = p.dim_v = dim;
  p.dtype = HEED_F32;
  p.causal = HEED_CAUSAL_NONE;
  p.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  return named;
}

}  // namespace

Tile MicroTile(const Kernels& kernels, int64_t dim, Piece piece) {
  // The tile of an ordinary prompt.
  const NamedProblem named = OneHead(dim, 2048, 2048);
  Tile tile = ModelTile(named.problem, kernels, ThisMachine(), 1);
  // The copy has a place in the scratch only if the tile says so.
  if (piece == Piece::kPackV || tile.pack_v == Pack::kCall) {
    tile.pack_v = Pack::kTile;
  }
  return tile;
}

MicroTask::MicroTask(const Kernels& kernels, const Tile& tile, int64_t dim)
    : kernels_(kernels),
      attention_(OneHead(dim, static_cast<int64_t>(tile.row_block),
                         static_cast<int64_t>(tile.key_tile)),
                 0),
      scratch_(
          AllocateFloats(kernels.scratch_bytes(tile, static_cast<size_t>(dim),
                                               static_cast<size_t>(dim)) /
                             sizeof(float) +
                         1)) {
  const heed_call call = attention_.Call(0);
  block_.q = call.q.data;
  block_.k = call.k.data;
  block_.v = call.v.data;
  block_.out = call.out.data;
  block_.q_stride_token = block_.k_stride = block_.v_stride = dim;
  block_.out_stride_token = dim;
  block_.rows = tile.row_block;
  block_.group = 1;
  block_.len_k = tile.key_tile;
  block_.dim_qk = block_.dim_v = static_cast<size_t>(dim);
  block_.first_key = block_.end_key = kNoBound;
  block_.q_scale = QueryScale(attention_.problem());
  block_.tile = tile;
  block_.scratch = scratch_.get();
}

std::string MicroTask::Verify() {
  kernels_.attend(block_);
  return attention_.CheckOut(0);
}

double MicroTask::Run(Piece piece, size_t times) {
  return kernels_.run_piece(piece, block_, times);
}

size_t MicroTask::Repetitions(Piece piece) {
  const auto seconds = [&](size_t times) {
    double least = INFINITY;
    for (int i = 0; i < 3; ++i) {
      least = std::min(least, TimeCalls([&] { Run(piece, times); }, 1));
    }
    return least;
  };
  const double preparation = seconds(0);
  size_t times = 64;
  while (seconds(times) < 100 * preparation && times < (size_t{1} << 24)) {
    times *= 2;
  }
  return times;
}

}  // namespace heed
