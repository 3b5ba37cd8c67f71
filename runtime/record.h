// Tuning records: which tile was measured to beat the model's, for which class
// of shapes, on which machine. Pure values, text in and out; finding files is
// record_files.h, using them is plan.cc.
#ifndef HEED_RUNTIME_RECORD_H_
#define HEED_RUNTIME_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/include/heed.h"
#include "runtime/machine.h"

namespace heed {

// Bumped when a tile's meaning or a kernel's speed profile changes: older
// entries are then ignored.
constexpr int kKernelAbi = 1;
constexpr int kRecordSchema = 1;

// Shapes that share a tile. dim, dtype, mask and group exactly; lengths by
// power-of-two bucket.
struct ShapeClass {
  int32_t dtype = 0;
  int64_t dim_qk = 0, dim_v = 0;
  bool causal = false;
  int64_t group = 1;
  int64_t len_q = 0;  // bucket's upper end: 1, 4, 16, 32, 64, ... (a power of
                      // two, at most 2^40)
  int64_t len_k = 0;  // bucket's upper end: 128, 256, ... (a power of two)
  int threads = 1;
  friend bool operator==(const ShapeClass&, const ShapeClass&);
};
ShapeClass ClassOf(const heed_problem& problem, int threads);
// e.g. "f32_d64_dv64_causal_g1_q1024_k1024_t2"
std::string ToString(const ShapeClass& shape_class);

struct RecordEntry {
  ShapeClass shape_class;
  std::string problem;  // the problem string that was measured
  std::string target;   // SIMD target that was measured
  Tile tile;            // adopted, or the default when nothing beat it
  Tile default_tile;
  bool adopted = false;
  double gain = 1;  // default time / tile time, median of paired ratios
  double gain_low = 1, gain_high = 1;  // exact 95 % interval of it
  int rounds = 0;  // confirmation rounds behind the interval
  double default_us = 0, tuned_us = 0;  // medians, for people
  double pct_peak = 0;  // of the FMA peak measured in the same run
};

struct Record {
  std::string machine_key;
  Machine machine;
  // Provenance, for people: library version, compiler, Highway, UTC time,
  // command, peaks.
  std::string library_version, compiler, highway, created, command;
  double fma_gflops_1t = 0, fma_gflops_all = 0, read_gbs_1t = 0,
         read_gbs_all = 0;
  int kernel_abi = kKernelAbi;
  std::vector<RecordEntry> entries;
};

std::string ToJson(const Record& record);

// Parses and range-checks. On failure returns false and says why in one line;
// `record` is then unspecified. Accepts nothing that PlanTile could not run:
// unknown enum strings, tiles out of range and a newer schema are failures.
bool FromJson(const std::string& text, Record* record, std::string* why);

// The entry for `wanted`: its class, else the nearest lengths of the same class
// within a factor two in all; null if none. Entries measured on another target
// do not count.
const RecordEntry* Find(const Record& record, const ShapeClass& wanted,
                        const std::string& target);

}  // namespace heed

#endif  // HEED_RUNTIME_RECORD_H_
