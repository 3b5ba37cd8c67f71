// A tuning report: what record and journal know, and nothing else.
#ifndef HEED_TUNE_REPORT_DATA_H_
#define HEED_TUNE_REPORT_DATA_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/record.h"

namespace heed {

struct ReportRound {
  std::string phase;  // search, confirm, guard, noise
  double time = 0;    // seconds since the run's first round
  std::vector<size_t> order;
  std::vector<double> ns;
  double canary = 0;      // the round's worst, picoseconds per element; 0: none
  std::string discarded;  // why; empty: it counts
};

struct ReportCandidate {
  std::string name;
  size_t row_block = 0, key_tile = 0;
  // Of the rounds of the search that count.
  size_t rounds = 0;
  double gain = 1;  // median of default / candidate
};

struct ReportClass {
  std::string key, name, problem;
  std::vector<ReportCandidate> candidates;  // empty: no journal tells of it
  std::vector<ReportRound> rounds;          // of search, confirmation, guards
  int entry = -1;                           // in the record; -1: none
  std::string skipped;                      // why there is none
};

struct ReportData {
  std::string path;  // of the record
  Record record;
  std::vector<ReportClass> classes;   // in the record's order, then the skipped
  std::vector<ReportRound> timeline;  // all rounds, in time
  std::vector<double> aa_ratios;      // of the A/A run, default / default
  double best_canary = 0;
  size_t damaged_lines = 0;
};

// Reads a record and journals; those of runs that the record does not name are
// left out. False and one line of reason if the record cannot be read.
bool LoadReport(const std::string& record_path,
                const std::vector<std::string>& journals, ReportData* data,
                std::string* why);

// Weighted alike, of the classes that have an entry: 1.042 = 4.2 % faster.
double MeanGain(const Record& record);
size_t CountOf(const Record& record, Decision decision);
// The newest run, or a run of nothing.
RecordRun NewestRun(const Record& record);

// "512 KB", "32 MB".
std::string CacheText(const Cache& cache);

std::string ReportMarkdown(const ReportData& data);
// One page, complete in itself: no scripts, no links to load anything.
std::string ReportHtml(const ReportData& data);

}  // namespace heed

#endif  // HEED_TUNE_REPORT_DATA_H_
