#include "tests/record_samples.h"

#include "runtime/machine.h"
#include "tests/attention_case.h"

namespace heed::test {

Record SampleRecord() {
  Record record;
  record.machine = ThisMachine();
  record.machine_key = MachineKey(record.machine);
  RecordRun run;
  run.id = "20260102T030405Z-0a1b2c3d";
  run.tool = "heed tune 0.1.0";
  run.argv = {"run", "--effort", "normal"};
  run.seed = 42;
  run.started = "2026-01-02T03:04:05Z";
  run.ended = "2026-01-02T03:06:05Z";
  run.library_version = heed_version();
  run.git = "0123456789ab";
  run.compiler = "a \"compiler\" 1.0";
  run.build_type = "Release";
  run.highway = "1.0";
  run.tbb = "2021.8";
  run.os = "Linux 6.1";
  run.rounds = 500;
  run.rounds_discarded = 17;
  run.aa_p95_pct = 1.5;
  run.fma_gflops_1t = 100.25;
  run.fma_gflops_all = 200.5;
  run.read_gbs_1t = 12.5;
  run.read_gbs_all = 25;
  record.runs.push_back(run);

  RecordEntry entry;
  entry.shape_class = ClassOf(
      MakeProblem(1, 4, 4, 1024, 1024, 64, 64, HEED_CAUSAL_TOP_LEFT), 2);
  entry.problem = "b1_hq4_hkv4_q1024_k1024_d64_causal_f32";
  entry.target = TargetNames(/*fused_only=*/false).front();
  entry.config.tile = {96, 192, Pack::kNone, Pack::kTile, true};
  entry.default_target = entry.target;
  entry.default_config.tile = {48, 96, Pack::kNone, Pack::kTile, false};
  entry.decision = Decision::kAdopted;
  entry.gain = {1.0625, 1.03125, 1.09375};
  entry.rounds = 80;
  entry.guards.push_back(
      {"b1_hq4_hkv4_q513_k513_d64_causal_f32", {1.03125, 1.0, 1.0625}});
  entry.default_us = 1062.5;
  entry.tuned_us = 1000;
  entry.pct_peak = 61.5;
  entry.candidates = 24;
  entry.search_samples = 310;
  entry.run = run.id;
  entry.confirmed = run.ended;
  record.entries.push_back(entry);

  entry.shape_class = ClassOf(MakeProblem(1, 32, 8, 1, 4096, 128, 128), 2);
  entry.problem = "b1_hq32_hkv8_q1_k4096_d128_f32";
  entry.config.tile = {16, 96, Pack::kTile, Pack::kTile, false};
  entry.config.cut.tasks_per_worker = 8;
  entry.default_config.tile = entry.config.tile;
  entry.decision = Decision::kKeptDefault;
  entry.reason = "nothing seemed faster";
  entry.gain = Gain{};
  entry.guards.clear();
  record.entries.push_back(entry);
  return record;
}

}  // namespace heed::test
