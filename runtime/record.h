// Tuning records: which configuration was measured to beat the model's, for
// which class of shapes, on which machine. Pure values, text in and out;
// finding files is record_files.h, using them is tile_choice.h.
#ifndef HEED_RUNTIME_RECORD_H_
#define HEED_RUNTIME_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/config.h"
#include "runtime/machine.h"
#include "runtime/shape_class.h"

namespace heed {

// Bumped when a tile's meaning or a kernel's speed profile changes: older
// records are then ignored.
constexpr int kKernelAbi = 3;
// What is written, and the oldest reader that understands it. A record that
// asks for a newer reader is a miss; unknown members are ignored.
constexpr int kRecordSchema = 2;
constexpr int kRecordMinReader = 2;

constexpr size_t kMaxRecordBytes = size_t{4} << 20;
constexpr size_t kMaxRecordEntries = 10000;
constexpr size_t kMaxRecordRuns = 1000;
constexpr size_t kMaxRecordGuards = 8;

enum class Decision {
  kAdopted,      // config beats default_config
  kKeptDefault,  // nothing surely does; config is the default
  kQuarantined,  // adopted once, found worse by `heed tune verify`: not used
};
const char* DecisionName(Decision decision);

// Time of the default over that of the configuration, of paired rounds.
struct Gain {
  double median = 1;
  double low = 1, high = 1;  // 95 % confidence interval of the median
};

// A shape of the class that had to be no slower.
struct Guard {
  std::string problem;
  Gain gain;
};

struct RecordEntry {
  ShapeClass shape_class;
  std::string problem;  // the problem string that was measured
  std::string target;   // SIMD target of config
  Config config;        // adopted, or the default when nothing beat it
  std::string default_target;
  Config default_config;
  Decision decision = Decision::kKeptDefault;
  std::string reason;  // one line, for people: why the default was kept
  Gain gain;           // of what was adopted; 1 if nothing was
  int rounds = 0;      // confirmation rounds behind the interval
  std::vector<Guard> guards;
  double default_us = 0, tuned_us = 0;  // medians, for people
  double pct_peak = 0;  // of the FMA peak measured in the same run
  int candidates = 0, search_samples = 0;
  std::string run;        // id of the run in Record::runs
  std::string confirmed;  // UTC, e.g. "2026-01-02T03:04:05Z"
};

// An entry that is whole but that this library cannot use: reading leaves it
// out of the entries and writing puts it back, so that nobody's measurements
// are lost between two versions.
struct SkippedEntry {
  ShapeClass shape_class;
  std::string problem;
  std::string reason;
  std::string run;   // id of the run in Record::runs
  std::string json;  // as it was read; empty if of an older schema, and lost
};

// Where entries come from, for people.
struct RecordRun {
  std::string id;                 // e.g. "20260102T030405Z-7f3a9c1d"
  std::string tool;               // "heed tune 0.1.0"
  std::vector<std::string> argv;  // without paths
  uint64_t seed = 0;
  std::string started, ended;  // UTC
  // Of the build.
  std::string library_version, git, compiler, build_type, highway, tbb;
  // Of the machine meanwhile.
  std::string os;
  double load_1m = 0, steal_pct = 0, psi_cpu_some_pct = 0;
  int rounds = 0, rounds_discarded = 0;
  double quiet = 1;       // share of samples whose canary was near its best
  double aa_p95_pct = 0;  // noise of one paired round of equal candidates
  double min_gain_pct = 1,
         demand_pct = 1;  // asked for, and as widened by noise
  double fma_gflops_1t = 0, fma_gflops_all = 0, read_gbs_1t = 0,
         read_gbs_all = 0;
};

struct Record {
  int schema_version = kRecordSchema;  // as read
  int kernel_abi = kKernelAbi;
  std::string machine_key;
  Machine machine;
  std::vector<RecordRun> runs;
  std::vector<RecordEntry> entries;
  std::vector<SkippedEntry> skipped;  // of classes that no entry is of
  // What reading left out, one line each: "1 of 12 entries skipped: ...".
  std::vector<std::string> notes;
  // The record of an older kernel ABI that this one has replaced, as JSON text;
  // empty if there is none. Nobody reads it but people.
  std::string retired;
};

// The run of that id, or null.
const RecordRun* FindRun(const Record& record, const std::string& id);

// With an integrity hash over everything but itself.
std::string ToJson(const Record& record);

// Parses and range-checks; takes schema 1 too. On failure returns false and
// says why in one line; `record` is then unspecified. Accepts nothing that a
// plan could not run: unknown enum strings, tiles out of range, a class twice,
// a newer schema and a wrong hash are failures. Entries with tunables that we
// do not know are skipped, with a note.
bool FromJson(const std::string& text, Record* record, std::string* why);

}  // namespace heed

#endif  // HEED_RUNTIME_RECORD_H_
