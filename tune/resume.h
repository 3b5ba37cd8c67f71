// What a run that was killed had finished, from its journal.
#ifndef HEED_TUNE_RESUME_H_
#define HEED_TUNE_RESUME_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/record.h"
#include "tune/journal.h"
#include "tune/tuner.h"

namespace heed {

struct Resumed {
  std::string path;    // of the journal to go on with; empty: there is none
  std::string run_id;  // its run
  std::vector<RecordEntry> entries;  // classes that are done
  size_t classes = 0;                // numbers that the journal has given out
  size_t damaged = 0;                // lines that were left out
};

// kind "run": the head of a journal, with what must agree for a run to go on.
JournalLine RunLine(const TuneOptions& options, const std::string& machine_key,
                    const RecordRun& run);
JournalLine EndLine(bool interrupted);

// The newest journal in `folder` whose head agrees with these options (machine,
// kernels, threads, effort, least gain, seed) and that has no end. A class in
// which it was killed begins anew: no old round meets a new one.
Resumed FindUnfinished(const std::string& folder, const TuneOptions& options,
                       const std::string& machine_key);

// `shapes` without those whose class is among the entries.
std::vector<NamedProblem> NotYetDone(const std::vector<NamedProblem>& shapes,
                                     const std::vector<RecordEntry>& entries,
                                     int threads);

}  // namespace heed

#endif  // HEED_TUNE_RESUME_H_
