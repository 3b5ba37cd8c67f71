// Who gets how much of a budget of time: each class its turn, then what is left
// over to those who can use more. Pure: the clock and the work are injected.
#ifndef HEED_TUNE_SCHEDULE_H_
#define HEED_TUNE_SCHEDULE_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace heed {

// What came of a turn.
enum class Outcome {
  kDecided,    // more time would change nothing
  kUndecided,  // more rounds may decide it
  kNoTime,     // it has no result for want of time
  kFailed      // the run is over
};

// A class of shapes, to the schedule. Both do what they can in so many seconds.
struct ScheduledClass {
  double wants = 1;  // seconds, a guess
  std::function<Outcome(double seconds)> turn;
  // More rounds, once, after a turn that ended undecided. How many is decided
  // before any of them, so they can be judged at an alpha of their own. Still
  // undecided: there would have been more.
  std::function<Outcome(double seconds)> more;
  // Seconds that all of them would take, which is known after its turn.
  std::function<double()> more_wants;
};

struct Schedule {
  std::function<double()> now;
  std::function<bool()> stop;  // asked before each turn; may be empty
  double end = 0;
  double least = 1;  // seconds that are worth a further turn
};

// Every class's turn in order, each with its part of the time that is left by
// wants: who is done early leaves the rest to those that follow. Then, of what
// is still left, first those without a result begin anew, then the undecided
// get more rounds. True if no class could have used more time; false also if
// the run was stopped or failed.
bool RunSchedule(const std::vector<ScheduledClass>& classes,
                 const Schedule& schedule);

}  // namespace heed

#endif  // HEED_TUNE_SCHEDULE_H_
