// The drawings of a tuning report, each one SVG element.
#ifndef HEED_TUNE_REPORT_PLOTS_H_
#define HEED_TUNE_REPORT_PLOTS_H_

#include <string>

#include "tune/report_data.h"

namespace heed {

// Gain of each class with its interval, and what was demanded of it.
std::string GainPlot(const ReportData& data);

// Operations per second against operations per byte, under the measured roofs.
std::string RooflinePlot(const ReportData& data);

// The machine over the run: the canary against its best, discarded rounds.
std::string NoisePlot(const ReportData& data);

// Best gain of the search for each row block and key tile; empty if there is
// one row block only, as where few rows are decoded.
std::string HeatMap(const ReportClass& c);

// Gain of each candidate, round by round: who left when, and what the fresh
// rounds then said. Empty without rounds.
std::string RacePlot(const ReportClass& c, const RecordEntry* entry);

}  // namespace heed

#endif  // HEED_TUNE_REPORT_PLOTS_H_
