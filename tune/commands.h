// The subcommands of `heed`. Each adds its options to the command line and
// leaves in `action` what to do once that has been parsed; the action returns
// the exit code.
#ifndef HEED_TUNE_COMMANDS_H_
#define HEED_TUNE_COMMANDS_H_

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace heed {

// Exit codes.
constexpr int kDone = 0, kFailed = 1, kUsage = 2, kInterrupted = 130;

using Action = std::function<int()>;

void AddDemoCommand(CLI::App* app, Action* action);
void AddHeadCommand(CLI::App* app, Action* action);
void AddInfoCommand(CLI::App* app, Action* action);
void AddInspectCommand(CLI::App* app, Action* action);
void AddRunCommand(CLI::App* app, Action* action);
void AddTuneCommand(CLI::App* app, const std::string& command_line,
                    Action* action);

// Prints "heed <command>: <why>" on stderr as one line; returns kFailed.
int FailCommand(const std::string& command, const std::string& why);

}  // namespace heed

#endif  // HEED_TUNE_COMMANDS_H_
