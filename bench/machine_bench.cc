// The roofs themselves, as benchmarks: FMA peak, read bandwidth, canary.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>

#include "bench/register.h"

namespace heed {
namespace {

using Probe = ProbeResult (Roof::*)();

// The threads start together and are timed from the first start to the last
// end, hence manual time: it is real time without the start of the threads.
void RunProbe(benchmark::State& state, BenchContext& context, Roof& roof,
              Probe probe, const char* counter) {
  // Once without the clock: pages are touched, the clock speed is up.
  bool sound = (roof.*probe)().sound;
  const double canary_before = roof.CanaryRate();
  double work = 0, seconds = 0;
  for (auto _ : state) {
    const ProbeResult result = (roof.*probe)();
    state.SetIterationTime(result.seconds);
    work += result.work;
    seconds += result.seconds;
    sound = sound && result.sound;
  }
  const double canary_after = roof.CanaryRate();
  if (!sound) {
    context.SetFailed();
    state.SkipWithError("the probe did no work or its sum is not finite");
    return;
  }
  state.counters[counter] = work / seconds * 1e-9;
  state.counters["canary"] =
      std::min(canary_before, canary_after) / roof.best_canary();
}

}  // namespace

void RegisterMachineBenchmarks(BenchContext* context) {
  struct Named {
    const char* name;
    Probe probe;
    const char* counter;
  };
  constexpr Named kProbes[] = {{"fma", &Roof::Fma, "GFLOP/s"},
                               {"read", &Roof::Read, "GB/s"},
                               {"canary", &Roof::Canary, "Gelem/s"}};
  for (const BenchTarget& target : context->targets()) {
    for (const int threads : context->threads()) {
      for (const Named& named : kProbes) {
        const std::string name = fmt::format("machine/{}/threads:{}/target:{}",
                                             named.name, threads, target.name);
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State&
                                                           state) {
          RunProbe(state, *context, context->RoofOf(target, threads),
                   named.probe, named.counter);
        })->UseManualTime();
      }
    }
  }
}

}  // namespace heed
