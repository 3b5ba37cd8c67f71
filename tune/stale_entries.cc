#include "tune/stale_entries.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "runtime/problem.h"
#include "runtime/record_files.h"
#include "runtime/tile_model.h"
#include "tune/candidates.h"
#include "tune/publish.h"

namespace heed {
namespace {

using Classes = std::unordered_set<ShapeClass, ShapeClassHash>;

// The class that the problem is of today: what is measured again lands there.
ShapeClass ClassNow(const std::string& problem_text,
                    const ShapeClass& written) {
  heed_problem problem;
  const bool known = ParseProblem(problem_text, &problem) == HEED_OK &&
                     ValidateProblem(problem) == HEED_OK;
  return known ? ClassOf(problem, written.threads) : written;
}

// An entry that is stale, unless its class has been seen.
template <class Entry>
void AddOne(const Entry& entry, const std::string& reason, Classes* seen,
            std::vector<StaleEntry>* stale) {
  const ShapeClass c = ClassNow(entry.problem, entry.shape_class);
  if (seen->insert(c).second) stale->push_back({c, entry.problem, reason});
}

// Why an entry of our kernels cannot be used; empty if it can.
std::string WhyUnusable(const RecordEntry& entry, const Machine& machine) {
  if (entry.decision == Decision::kQuarantined) return "quarantined";
  heed_problem problem;
  if (ParseProblem(entry.problem, &problem) != HEED_OK ||
      ValidateProblem(problem) != HEED_OK) {
    return "";  // the library does not read it either
  }
  for (const Kernels& kernels : EqualTargets(KernelDType(problem.dtype))) {
    if (entry.target != kernels.target) continue;
    const Tile tile = RoundTile(entry.config.tile, problem, kernels);
    return FitsCaches(tile, problem, kernels, machine)
               ? ""
               : "its tile leaves the caches";
  }
  return "its SIMD target " + entry.target + " does not run here";
}

// Everything in a record of other kernels.
void AddAll(const Record& record, Classes* seen,
            std::vector<StaleEntry>* stale) {
  const std::string reason = fmt::format("kernel_abi {}, library has {}",
                                         record.kernel_abi, kKernelAbi);
  for (const RecordEntry& entry : record.entries) {
    AddOne(entry, reason, seen, stale);
  }
  for (const SkippedEntry& entry : record.skipped) {
    AddOne(entry, reason, seen, stale);
  }
}

void AddOwn(const Record& record, const Machine& machine, Classes* seen,
            std::vector<StaleEntry>* stale) {
  for (const RecordEntry& entry : record.entries) {
    const std::string why = WhyUnusable(entry, machine);
    if (why.empty()) {
      seen->insert(ClassNow(entry.problem, entry.shape_class));
    } else {
      AddOne(entry, why, seen, stale);
    }
  }
  for (const SkippedEntry& entry : record.skipped) {
    AddOne(entry, entry.reason, seen, stale);
  }
}

// Adds the stale ones of a record to `stale`, and all of its classes to `seen`,
// whose classes are passed over.
void Add(const Record& record, const Machine& machine, Classes* seen,
         std::vector<StaleEntry>* stale) {
  if (record.kernel_abi == kKernelAbi) {
    AddOwn(record, machine, seen, stale);
  } else {
    AddAll(record, seen, stale);
  }
  Record retired;
  std::string ignored;
  if (!record.retired.empty() && FromJson(record.retired, &retired, &ignored)) {
    AddAll(retired, seen, stale);
  }
}

std::vector<std::string> PathsToRead(const std::string& output,
                                     const std::string& key) {
  std::vector<std::string> paths = {RecordPath(output, key)};
  const RecordSources sources = SourcesFromEnvironment();
  if (!sources.file.empty()) paths.push_back(sources.file);
  for (const std::string& dir : sources.dirs) {
    paths.push_back(RecordPath(dir, key));
  }
  return paths;
}

std::string Counted(size_t count) {
  return std::to_string(count) + (count == 1 ? " entry" : " entries");
}

}  // namespace

std::vector<StaleEntry> StaleEntries(const Record& record,
                                     const Machine& machine) {
  Classes seen;
  std::vector<StaleEntry> stale;
  Add(record, machine, &seen, &stale);
  return stale;
}

bool FindStaleShapes(const std::string& output, const Machine& machine,
                     int threads, StaleShapes* stale, std::string* why) {
  const std::string key = MachineKey(machine);
  Classes seen;
  std::vector<StaleEntry> entries;
  bool own = true;  // the first path, which is going to be written
  for (const std::string& path : PathsToRead(output, key)) {
    Record record;
    struct stat info;
    if (ReadRecordFile(path, &record, why)) {
      if (record.machine_key == key) Add(record, machine, &seen, &entries);
    } else if (own && lstat(path.c_str(), &info) == 0) {
      *why = path + ": " + *why + "; see `heed tune doctor`";
      return false;
    }
    own = false;
  }
  std::set<int> others;
  size_t for_others = 0, unknown = 0;
  for (const StaleEntry& entry : entries) {
    std::vector<NamedProblem> named;
    std::string ignored;
    if (entry.shape_class.threads != threads) {
      others.insert(entry.shape_class.threads);
      ++for_others;
    } else if (!ParseShapeList(entry.problem, &named, &ignored) ||
               named.size() != 1) {
      ++unknown;
    } else {
      stale->shapes.push_back(named[0]);
      stale->lines.push_back(
          fmt::format("stale: {} ({})", named[0].text, entry.reason));
    }
  }
  std::string rest;
  if (unknown != 0) {
    rest += fmt::format(
        "; {} cannot be measured again, for their problems are "
        "not understood",
        Counted(unknown));
  }
  if (for_others != 0) {
    rest += fmt::format("; {} for another number of threads: --threads {}",
                        Counted(for_others), *others.begin());
  }
  if (stale->shapes.empty()) {
    stale->lines.push_back(
        fmt::format("nothing is stale for {} thread{} in the records for {}{}",
                    threads, threads == 1 ? "" : "s", key, rest));
  } else if (!rest.empty()) {
    stale->lines.push_back("beside that" + rest.substr(1));
  }
  return true;
}

}  // namespace heed
