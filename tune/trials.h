// Things tried in child processes before they are tried in this one: what
// crashes or hangs there harms nobody here. Knows nothing of what is tried.
#ifndef HEED_TUNE_TRIALS_H_
#define HEED_TUNE_TRIALS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace heed {

// A child that tries `first` and those after it, one by one, and the end of a
// pipe on which it says what came of each. pid below 0: errno says why there is
// none.
struct TrialChild {
  pid_t pid = -1;
  int lines = -1;
};
using StartTrials = std::function<TrialChild(size_t first)>;

struct TrialOptions {
  double seconds = 10;  // each, at the least; but kTrialFactor times what trial
                        // 0 took
  double deadline = 0;  // MonotonicSeconds() after which none is begun
  std::function<void()> tick;  // now and then; may be empty
};
constexpr double kTrialFactor = 20;

struct Trials {
  // Why trial 0, which all others are compared with, failed; empty if it did
  // not.
  std::string failed;
  // Of the trials that were made, in order: empty, or why it failed, e.g.
  // "crashed with signal 11", "took longer than 10 s". [0] is empty.
  std::vector<std::string> results;
};

// Trials 1 to `count` - 1, each once. A child that has died or been killed is
// followed by another one, for what is left. None outlives the call.
Trials RunTrials(size_t count, const TrialOptions& options,
                 const StartTrials& start);

// The child's side: trial 0, which prepares the others, then `first` and those
// after it. `gate` returns false and a line of reason for what fails.
void ServeTrials(size_t first, size_t count,
                 const std::function<bool(size_t, std::string*)>& gate,
                 std::FILE* lines);

}  // namespace heed

#endif  // HEED_TUNE_TRIALS_H_
