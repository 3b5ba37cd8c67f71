// The lines of a tuning run's journal, each an object with a "kind". What reads
// them (report, resume) uses these names too.
#ifndef HEED_TUNE_JOURNAL_LINES_H_
#define HEED_TUNE_JOURNAL_LINES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/record.h"
#include "tune/candidates.h"
#include "tune/journal.h"
#include "tune/noise.h"
#include "tune/rounds.h"
#include "tune/shapes.h"

namespace heed {

// kind "class": a shape and its candidates, whose numbers later lines use.
JournalLine ClassLine(size_t index, const NamedProblem& shape, int threads,
                      const std::vector<Candidate>& candidates,
                      size_t iterations);

// kind "round": `numbers[c]` is the class's number for the round's candidate c.
JournalLine RoundLine(size_t index, const std::string& phase,
                      const std::vector<size_t>& numbers, const Round& round);

// kind "noise": what the A/A run found; its rounds are of phase "noise".
JournalLine NoiseLine(const Noise& noise);

// kind "left_out": a candidate that must not be adopted, and why.
JournalLine LeftOutLine(size_t index, const Candidate& candidate,
                        const std::string& why);

// kind "entry": a class is done. kind "skipped": it is not, and why.
JournalLine EntryLine(size_t index, const RecordEntry& entry);
JournalLine SkippedLine(size_t index, const std::string& problem,
                        const std::string& why);

}  // namespace heed

#endif  // HEED_TUNE_JOURNAL_LINES_H_
