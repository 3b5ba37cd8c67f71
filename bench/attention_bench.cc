// Attention end to end through the C API, shape by shape.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/measured.h"
#include "bench/register.h"

namespace heed {
namespace {

void RunAttention(benchmark::State& state, BenchContext& context,
                  const NamedProblem& problem, const BenchTarget& target,
                  int threads) {
  AttentionCase& attention = context.CaseOf(problem);
  AttentionRun run(&attention, target.name, threads);
  const std::string wrong = run.Verify();
  if (!wrong.empty()) {
    context.SetFailed();
    state.SkipWithError(wrong.c_str());
    return;
  }
  state.SetLabel(run.Tile() + " " + run.Tier());
  const Measured measured =
      Measure(state, context.RoofOf(target, threads), Beside::kFmaAndRead, 1,
              [&run] { run.Run(); });
  const double flops = attention.flops() * measured.rate;
  const double bytes = attention.bytes() * measured.rate;
  state.counters["GFLOP/s"] = flops * 1e-9;
  state.counters["pct_peak"] = 100 * flops / measured.fma_peak;
  state.counters["GB/s"] = bytes * 1e-9;
  state.counters["pct_bw"] = 100 * bytes / measured.read_peak;
  state.counters["canary"] = measured.canary;
}

}  // namespace

void RegisterAttentionBenchmarks(BenchContext* context) {
  for (const NamedProblem& problem : context->problems()) {
    for (const BenchTarget& target : context->targets()) {
      for (const int threads : context->threads()) {
        const std::string name =
            fmt::format("attention/{}/{}/threads:{}/target:{}", problem.name,
                        problem.text, threads, target.name);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) {
                                       RunAttention(state, *context, problem,
                                                    target, threads);
                                     })
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace heed
