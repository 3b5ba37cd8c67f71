// Where tuning records lie, and reading them whole.
//
// Never looks in the current directory, never prints unless HEED_TUNE_VERBOSE=1
// and never fails: a record that cannot be used is a miss with a reason.
#ifndef HEED_RUNTIME_RECORD_FILES_H_
#define HEED_RUNTIME_RECORD_FILES_H_

#include <string>
#include <vector>

#include "runtime/machine.h"
#include "runtime/record.h"
#include "runtime/record_index.h"

namespace heed {

// Where to look. A folder of `dirs` holds <machine key>/record.json.
struct RecordSources {
  bool off = false;               // HEED_TUNE=off: nowhere
  std::string pin;                // HEED_TUNE=pin:<this>: one tile for all
  std::string file;               // HEED_TUNE_FILE: only this file
  std::vector<std::string> dirs;  // first one wins
};

// HEED_TUNE_PATH (folders separated by colons), else the user's configuration
// folder, /etc/heed/tuning and the folder installed with the library.
RecordSources SourcesFromEnvironment();

// The user's configuration folder, where `heed tune install` copies to; empty
// if neither XDG_CONFIG_HOME nor HOME is an absolute path.
std::string UserRecordsDir();

// A record that was looked at, whether of use or not: for people.
struct SeenRecord {
  std::string path, machine_key;  // no key if it could not be read
};

// What was read. Moves, and does not copy: the index points into the records.
struct RecordSet {
  RecordSet() = default;
  RecordSet(RecordSet&&) = default;
  RecordSet& operator=(RecordSet&&) = default;

  std::vector<FoundRecord> records;  // best tier first
  RecordIndex index;                 // of their entries
  // One line each: what was ignored, used in part or not found, why, and what
  // to do about it.
  std::vector<std::string> notes;
  std::vector<SeenRecord> seen;
  bool off = false;
  bool pinned = false;
  heed_tile pin = {};     // if pinned
  std::string pin_error;  // HEED_TUNE=pin: is wrong, and how
};

// Reads the records of this machine, of machines whose core is the same
// (vendor, family, model, best target, L1 and L2), and of those that have the
// same best target.
RecordSet LoadRecords(const RecordSources& sources, const Machine& machine);

// LoadRecords() of the environment for ThisMachine(), once per process.
const RecordSet& ProcessRecords();

// Which part of a record of machine `a` holds on machine `b`: kExact, kUarch,
// kIsa, or kAnalytical for none.
Tier TierBetween(const Record& a, const Machine& b);

// Reads and parses one file. Refuses anything but a regular file of at most
// 4 MiB; does not block on a FIFO.
bool ReadRecordFile(const std::string& path, Record* record, std::string* why);

}  // namespace heed

#endif  // HEED_RUNTIME_RECORD_FILES_H_
