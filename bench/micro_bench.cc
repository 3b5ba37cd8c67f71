// The pieces of a task, one at a time, on one thread: scores, softmax step,
// blend, packing.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <heed.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "bench/measured.h"
#include "bench/register.h"
#include "kernels/kernels.h"
#include "runtime/problem.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

struct NamedPiece {
  Piece piece;
  const char* name;
  bool is_product;  // counted in multiply-adds; else in elements
};
constexpr NamedPiece kPieces[] = {{Piece::kScores, "scores", true},
                                  {Piece::kSoftmax, "softmax", false},
                                  {Piece::kBlend, "blend", true},
                                  {Piece::kPackQ, "pack_q", false},
                                  {Piece::kPackV, "pack_v", false}};
constexpr int64_t kDims[] = {64, 128, 256, 40, 80};

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

// One task of the tile's rows and keys, as the runtime would hand it out.
class MicroTask {
 public:
  MicroTask(const Kernels& kernels, const Tile& tile, int64_t dim)
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

  // The pieces leave their results in the scratch; that they are the pieces of
  // a right whole is what can be checked.
  std::string Verify() {
    kernels_.attend(block_);
    return attention_.CheckOut(0);
  }

  double Run(Piece piece, size_t times) {
    return kernels_.run_piece(piece, block_, times);
  }

 private:
  Kernels kernels_;
  AttentionCase attention_;
  Floats scratch_;
  Block block_ = {};
};

// run_piece() first does one whole tile to fill the scratch. So many
// repetitions that this is a hundredth of the time.
size_t Repetitions(MicroTask& task, Piece piece) {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [&](size_t times) {
    double least = INFINITY;
    for (int i = 0; i < 3; ++i) {
      const Clock::time_point begin = Clock::now();
      task.Run(piece, times);
      const std::chrono::duration<double> passed = Clock::now() - begin;
      least = std::min(least, passed.count());
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

void RunMicro(benchmark::State& state, BenchContext& context,
              const BenchTarget& target, const NamedPiece& named, int64_t dim) {
  const Kernels kernels = GetKernels(target.id, DType::kF32);
  MicroTask task(kernels, MicroTile(kernels, dim, named.piece), dim);
  const std::string wrong = task.Verify();
  if (!wrong.empty()) {
    context.SetFailed();
    state.SkipWithError(wrong.c_str());
    return;
  }
  const size_t times = Repetitions(task, named.piece);
  double work = 0;  // of one repetition
  const Measured measured =
      Measure(state, context.RoofOf(target, 1), Beside::kFma, times,
              [&] { work = task.Run(named.piece, times); });
  const double rate = work * measured.rate;
  if (named.is_product) {
    state.counters["GFLOP/s"] = 2 * rate * 1e-9;
    state.counters["pct_peak"] = 100 * 2 * rate / measured.fma_peak;
  } else {
    state.counters["Gelem/s"] = rate * 1e-9;
  }
  state.counters["canary"] = measured.canary;
}

}  // namespace

void RegisterMicroBenchmarks(BenchContext* context) {
  for (const BenchTarget& target : context->targets()) {
    const Kernels kernels = GetKernels(target.id, DType::kF32);
    for (const int64_t dim : kDims) {
      for (const NamedPiece& named : kPieces) {
        const Tile tile = MicroTile(kernels, dim, named.piece);
        const std::string name = fmt::format(
            "micro/{}/d:{}/rows:{}/keys:{}/threads:1/target:{}", named.name,
            dim, tile.row_block, tile.key_tile, target.name);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) {
                                       RunMicro(state, *context, target, named,
                                                dim);
                                     })
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace heed
