// What records hold for this machine that the library cannot use any more, and
// the shapes to measure again: `heed tune run --stale`.
#ifndef HEED_TUNE_STALE_ENTRIES_H_
#define HEED_TUNE_STALE_ENTRIES_H_

#include <string>
#include <vector>

#include "runtime/machine.h"
#include "runtime/record.h"
#include "tune/shapes.h"

namespace heed {

struct StaleEntry {
  ShapeClass shape_class;
  std::string problem;  // that was measured
  std::string reason;
};

// Of a record of this machine: entries for other kernels (all of them, or those
// it has retired), entries that reading skipped, quarantined ones, and those
// whose SIMD target or tile cannot be run here. No class twice.
std::vector<StaleEntry> StaleEntries(const Record& record,
                                     const Machine& machine);

struct StaleShapes {
  std::vector<NamedProblem> shapes;  // one of each class, for these threads
  // For people: one of each shape; what cannot be measured again; or that there
  // is nothing.
  std::vector<std::string> lines;
};

// Of the record in `output` and of those that the library looks at, if they are
// for this machine. Of a class in several of them the first one decides, so
// what was measured again is stale no longer. False and one line if the record
// in `output` cannot be read.
bool FindStaleShapes(const std::string& output, const Machine& machine,
                     int threads, StaleShapes* stale, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_STALE_ENTRIES_H_
