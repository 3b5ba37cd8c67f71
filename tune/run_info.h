// Where a tuning run's numbers come from: build, system, settings.
#ifndef HEED_TUNE_RUN_INFO_H_
#define HEED_TUNE_RUN_INFO_H_

#include <string>
#include <vector>

#include "runtime/record.h"
#include "tune/tuner.h"

namespace heed {

// e.g. "20260102T030405Z-7f3a9c1d": sorts by time, and two at once differ.
std::string NewRunId();

// The run as it begins. `argv` without paths.
RecordRun BeginRun(const TuneOptions& options,
                   const std::vector<std::string>& argv);

// Peaks, noise and counts as they are by now, and the time. `before` is
// ReadDisturbance() of the beginning, `seconds` how long ago that was.
void UpdateRun(const TuneMachine& machine,
               const std::vector<TunedShape>& results, double demand,
               const Disturbance& before, double seconds, RecordRun* run);

}  // namespace heed

#endif  // HEED_TUNE_RUN_INFO_H_
