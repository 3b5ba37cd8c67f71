// The subcommands of `heed`. Each adds its options to the command line and
// leaves in `action` what to do once that has been parsed; the action returns
// the exit code.
#ifndef HEED_TUNE_COMMANDS_H_
#define HEED_TUNE_COMMANDS_H_

#include <functional>
#include <string>

#include "tune/measure_lock.h"
#include "tune/publish.h"

namespace CLI {
class App;
}

namespace heed {

// Exit codes.
constexpr int kDone = 0, kFailed = 1, kUsage = 2, kBadData = 65,
              kCannotWrite = 73, kBusy = 75, kInterrupted = 130;

using Action = std::function<int()>;

void AddDemoCommand(CLI::App* app, Action* action);
void AddHeadCommand(CLI::App* app, Action* action);
void AddInfoCommand(CLI::App* app, Action* action);
void AddInspectCommand(CLI::App* app, Action* action);
void AddRunCommand(CLI::App* app, Action* action);
// `heed tune` and its own subcommands.
void AddTuneCommand(CLI::App* app, Action* action);
void AddTuneFilesCommands(CLI::App* tune, Action* action);
void AddTuneInstallCommands(CLI::App* tune, Action* action);
void AddTuneReportCommand(CLI::App* tune, Action* action);
void AddTuneStudyCommand(CLI::App* tune, Action* action);
void AddTuneTryCommand(CLI::App* tune, Action* action);
void AddTuneVerifyCommand(CLI::App* tune, Action* action);

// Prints "heed <command>: <why>" on stderr as one line; returns kFailed.
// or the code given.
int FailCommand(const std::string& command, const std::string& why,
                int code = kFailed);

// Takes the lock for measuring; waits for it with `wait`. kDone, or the exit
// code after saying why.
int TakeLock(const std::string& command, bool wait, MeasureLock* lock);

// Options that tell on stderr, once, if the records' folder has no file locks.
PublishOptions TellNoLocks(const std::string& command);

}  // namespace heed

#endif  // HEED_TUNE_COMMANDS_H_
