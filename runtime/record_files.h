// Where tuning records lie, and reading and writing them whole.
//
// Never looks in the current directory, never prints unless HEED_TUNE_VERBOSE=1
// and never fails: a record that cannot be used is a miss with a reason.
#ifndef HEED_RUNTIME_RECORD_FILES_H_
#define HEED_RUNTIME_RECORD_FILES_H_

#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/include/heed.h"
#include "runtime/machine.h"
#include "runtime/record.h"

namespace heed {

// Where to look. A folder of `dirs` holds <machine key>/record.json.
struct RecordSources {
  bool off = false;               // HEED_TUNE=off: nowhere
  std::string file;               // HEED_TUNE_FILE: only this file
  std::vector<std::string> dirs;  // first one wins
};

// HEED_TUNE_PATH (folders separated by colons), else the user's configuration
// folder, /etc/heed/tuning and the folder installed with the library.
RecordSources SourcesFromEnvironment();

struct FoundRecord {
  std::string path;
  bool same_machine = false;  // else only the same microarchitecture
  Record record;
};

struct RecordSet {
  std::vector<FoundRecord> records;  // best first
  std::string misses;  // one line: what was ignored or not found, and why
};

// Reads the records of this machine and of machines whose core is the same:
// vendor, family, model, best target, L1 and L2.
RecordSet LoadRecords(const RecordSources& sources, const Machine& machine);

// LoadRecords() of the environment for ThisMachine(), once per process.
const RecordSet& ProcessRecords();

// How a plan's tile came about.
enum class Tier { kPinned, kExact, kUarch, kModel };
const char* TierName(Tier tier);

struct TileChoice {
  Tile tile;
  Tier tier = Tier::kModel;
  std::string reason;  // one line
};

// The tile for a valid problem: an entry measured on this machine with this
// many threads, else one measured on the same microarchitecture or with
// another number of threads, else the model's.
TileChoice ChooseTile(const RecordSet& records, const heed_problem& problem,
                      const Kernels& kernels, const Machine& machine,
                      int threads);

// Merges `record` into <dir>/<record.machine_key>/record.json: an entry
// replaces the one of its class and target, others stay. Atomic for readers and
// safe against other writers; the previous file is kept as record.json.bak. On
// success *path names the file; else *why says what failed, in one line.
bool WriteRecordFile(const std::string& dir, const Record& record,
                     std::string* path, std::string* why);

// Reads and parses one file. Refuses anything but a regular file of at most
// 4 MiB; does not block on a FIFO.
bool ReadRecordFile(const std::string& path, Record* record, std::string* why);

}  // namespace heed

#endif  // HEED_RUNTIME_RECORD_FILES_H_
