// One `heed tune run`: from options to a published record.
#ifndef HEED_TUNE_TUNE_SESSION_H_
#define HEED_TUNE_TUNE_SESSION_H_

#include <cstdint>
#include <string>

namespace heed {

struct TuneCommand {
  std::string budget;  // empty: the effort's
  std::string shapes = "core";
  std::string output = "results/tuning";
  std::string effort = "normal";
  std::string min_gain = "1%";
  int threads = 0;
  uint64_t seed = 1;
  bool dry_run = false, json = false, no_progress = false;
  bool resume = false, force = false, no_wait = false;
  bool stale = false;  // in place of shapes
  bool isolate = false;
};

// Runs it; returns the exit code.
int RunTune(const TuneCommand& command);

}  // namespace heed

#endif  // HEED_TUNE_TUNE_SESSION_H_
