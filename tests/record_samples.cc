#include "tests/record_samples.h"

#include "runtime/machine.h"
#include "tests/attention_case.h"

namespace heed::test {

Record SampleRecord() {
  Record record;
  record.machine = ThisMachine();
  record.machine_key = MachineKey(record.machine);
  record.library_version = heed_version();
  record.compiler = "a \"compiler\" 1.0";
  record.highway = "1.0";
  record.created = "2026-01-02T03:04:05Z";
  record.command = "heed tune";
  record.fma_gflops_1t = 100.25;
  record.read_gbs_1t = 12.5;

  RecordEntry entry;
  entry.shape_class = ClassOf(
      MakeProblem(1, 4, 4, 1024, 1024, 64, 64, HEED_CAUSAL_TOP_LEFT), 2);
  entry.problem = "b1_hq4_hkv4_q1024_k1024_d64_causal_f32";
  entry.target = TargetNames(/*fused_only=*/false).front();
  entry.tile = {96, 192, Pack::kNone, Pack::kTile, true};
  entry.default_tile = {48, 96, Pack::kNone, Pack::kTile, false};
  entry.adopted = true;
  entry.gain = 1.0625;
  entry.gain_low = 1.03125;
  entry.gain_high = 1.09375;
  entry.rounds = 11;
  entry.default_us = 1062.5;
  entry.tuned_us = 1000;
  entry.pct_peak = 61.5;
  record.entries.push_back(entry);

  entry.shape_class = ClassOf(MakeProblem(1, 32, 8, 1, 4096, 128, 128), 2);
  entry.problem = "b1_hq32_hkv8_q1_k4096_d128_f32";
  entry.tile = {16, 96, Pack::kTile, Pack::kTile, false};
  entry.adopted = false;
  record.entries.push_back(entry);
  return record;
}

}  // namespace heed::test
