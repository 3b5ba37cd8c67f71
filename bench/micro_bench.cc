// The pieces of a task, one at a time, on one thread: scores, softmax step,
// blend, packing.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>

#include "bench/measured.h"
#include "bench/micro_task.h"
#include "bench/register.h"

namespace heed {
namespace {

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
  const size_t times = task.Repetitions(named.piece);
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
    for (const int64_t dim : kPieceDims) {
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
