// What a tuning run has to say: lines, a table, JSON. Text out, no I/O.
#ifndef HEED_TUNE_REPORT_H_
#define HEED_TUNE_REPORT_H_

#include <string>
#include <vector>

#include "runtime/record.h"
#include "tune/tuner.h"

namespace heed {

// The record of what was tuned; skipped shapes have no entry.
Record MakeRecord(const TuneMachine& machine, const RecordRun& run,
                  const std::vector<TunedShape>& results);

// "+4.1 % [+2.9, +5.0]"
std::string GainText(const Gain& gain);

// One shape, e.g. "rb96.kt192.pk0.pv1.pf0  +4.1 % [2.9, 5.0]  0.812 ms".
std::string ShapeLine(const TunedShape& tuned);

// shape | default ms | tuned ms | gain [95 % interval] | % of FMA peak | tile,
// and below it what was adopted and how quiet the machine was.
std::string ReportTable(const TuneMachine& machine,
                        const std::vector<TunedShape>& results);

// Everything, for programs.
std::string ReportJson(const Record& record, const std::string& path,
                       const std::vector<TunedShape>& results,
                       bool interrupted);

}  // namespace heed

#endif  // HEED_TUNE_REPORT_H_
