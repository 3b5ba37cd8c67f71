// A tuning run before it measures anything: what was asked for, whether it can
// be written down, what it would do.
#ifndef HEED_TUNE_TUNE_PLAN_H_
#define HEED_TUNE_TUNE_PLAN_H_

#include <string>
#include <vector>

#include "tune/tune_session.h"
#include "tune/tuner.h"

namespace heed {

// Parses what the command line holds; presumes that CLI11's checks have passed
// it all.
TuneOptions OptionsOf(const TuneCommand& command, const Machine& machine);

// "1%", "1.5" and "1 %" are percentages.
bool ParsePercent(const std::string& text, double* fraction);

// The command line as a record keeps it: without paths.
std::vector<std::string> ArgumentsOf(const TuneCommand& command,
                                     const TuneOptions& options);

// Fails now rather than after minutes: the folder can be written, and a record
// that lies there can be read, since it is going to be merged with. kDone, or
// the exit code and one line.
int CheckOutput(const std::string& output, const std::string& machine_key,
                std::string* why);

// The candidates shape by shape, and if peaks were measured, the time they
// would take. Nothing is written.
void PrintPlan(const TuneOptions& options, const TuneCommand& command,
               const TuneMachine& machine, bool measured);

}  // namespace heed

#endif  // HEED_TUNE_TUNE_PLAN_H_
