#include "tune/commands.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "tune/interrupt.h"

namespace heed {

int FailCommand(const std::string& command, const std::string& why, int code) {
  fmt::print(stderr, "heed {}: {}\n", command, why);
  return code;
}

int TakeLock(const std::string& command, bool wait, MeasureLock* lock) {
  const auto waiting = [&command](const std::string& holder) {
    fmt::print(stderr, "heed {}: {}; waiting... (--no-wait exits {})\n",
               command, holder, kBusy);
  };
  std::string holder;
  switch (lock->Take("", wait, waiting, Interrupted, &holder)) {
    case MeasureLock::Result::kBusy:
      return FailCommand(command, holder, kBusy);
    case MeasureLock::Result::kGivenUp:
      return kInterrupted;
    case MeasureLock::Result::kTaken:
      break;
  }
  if (!lock->has_locks()) {
    fmt::print(stderr,
               "heed {}: no file locks in the temporary folder; another tuner "
               "at work would not be noticed\n",
               command);
  }
  return kDone;
}

PublishOptions TellNoLocks(const std::string& command) {
  PublishOptions options;
  const auto told = std::make_shared<bool>(false);
  options.no_locks = [command, told] {
    if (*told) return;
    *told = true;
    fmt::print(stderr,
               "heed {}: no file locks where the record is; do not write it "
               "from elsewhere at the same time\n",
               command);
  };
  return options;
}

}  // namespace heed
