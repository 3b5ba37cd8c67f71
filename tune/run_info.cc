#include "tune/run_info.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/probe.h"
#include "runtime/runner_tbb.h"
#include "tune/merge_records.h"
#include "tune/weather.h"
#include "tune_git_commit.h"

namespace heed {
namespace {

std::string CompilerText() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__,
                     __clang_patchlevel__);
#else
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__,
                     __GNUC_PATCHLEVEL__);
#endif
}

std::string SystemText() {
  utsname name;
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {}", name.sysname, name.release);
}

}  // namespace

std::string NewRunId() {
  std::string time = UtcNow();
  time.erase(std::remove_if(time.begin(), time.end(),
                            [](char c) { return c == '-' || c == ':'; }),
             time.end());
  return fmt::format("{}-{:08x}", time, std::random_device()());
}

RecordRun BeginRun(const TuneOptions& options,
                   const std::vector<std::string>& argv) {
  RecordRun run;
  run.id = options.run_id;
  run.tool = fmt::format("heed tune {}", heed_version());
  run.argv = argv;
  run.seed = options.seed;
  run.started = run.ended = UtcNow();
  run.library_version = heed_version();
  run.git = kGitCommit;
  run.compiler = CompilerText();
  run.build_type = HEED_BUILD_TYPE;
  run.highway = HighwayVersion();
  run.tbb = TbbVersion();
  run.os = SystemText();
  run.load_1m = LoadAverage();
  run.min_gain_pct = 100 * options.min_gain;
  run.demand_pct = run.min_gain_pct;
  return run;
}

void UpdateRun(const TuneMachine& machine,
               const std::vector<TunedShape>& results, double demand,
               const Disturbance& before, double seconds, RecordRun* run) {
  run->ended = UtcNow();
  run->rounds = run->rounds_discarded = 0;
  for (const TunedShape& tuned : results) {
    run->rounds += tuned.counts.rounds;
    run->rounds_discarded += tuned.counts.discarded;
  }
  const Disturbance now = ReadDisturbance();
  if (seconds > 0) {
    run->steal_pct = std::max(0.0, 100 * (now.steal - before.steal) / seconds);
    run->psi_cpu_some_pct =
        std::max(0.0, 100 * (now.pressure - before.pressure) / seconds);
  }
  run->quiet = machine.gauge.QuietShare();
  run->aa_p95_pct = 100 * std::expm1(machine.noise.p95);
  run->demand_pct = 100 * std::expm1(demand);
  run->fma_gflops_1t = machine.peaks.fma_gflops_1t;
  run->fma_gflops_all = machine.peaks.fma_gflops_all;
  run->read_gbs_1t = machine.peaks.read_gbs_1t;
  run->read_gbs_all = machine.peaks.read_gbs_all;
}

}  // namespace heed
