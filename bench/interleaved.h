// The honest figure: many short rounds in which the FMA peak, the canary and
// the thing measured take turns, and a rule for which rounds count.
//
// A shared machine changes speed from second to second. What is measured
// minutes apart cannot be divided; what is measured within milliseconds can,
// and the canary tells the rounds in which a neighbour had the core.
#ifndef HEED_BENCH_INTERLEAVED_H_
#define HEED_BENCH_INTERLEAVED_H_

#include <functional>
#include <vector>

#include "bench/roof.h"

namespace heed {

// A round is quiet if the canary takes at most this much longer than its best.
constexpr double kCanarySlack = 1.10;

// One sample of what is measured: many of the clock's ticks, and short beside
// the seconds for which a neighbour comes and goes.
constexpr double kSampleSeconds = 2e-3;

// Seconds by a clock that does not go back.
double Now();

// Seconds of one of `calls` calls made one after another.
double TimeCalls(const std::function<void()>& call, int calls);

// How many calls take `seconds` together.
int CallsFor(const std::function<void()>& call, double seconds);

struct Round {
  double fma = 0;            // floating-point operations per second
  double read = 0;           // bytes per second; 0 = not measured
  double canary_before = 0;  // elements per second, slowest thread
  double canary_after = 0;
  double seconds = 0;  // of one call
};

struct RoundsWanted {
  int quiet = 40;       // stop when that many rounds were quiet
  double seconds = 10;  // stop when that much time has passed
  bool read = false;    // also measure the read bandwidth in each round
};

// Measures `call`, which runs once per invocation. A round holds as many calls
// as fill two milliseconds. Makes at least three rounds.
std::vector<Round> Interleave(const RoundsWanted& wanted, Roof* roof,
                              const std::function<void()>& call);

// Whether the canary was within kCanarySlack of `best_canary` both before and
// after: for calls of half a second one of them alone would say little.
bool IsQuiet(const Round& round, double best_canary);

struct Summary {
  int kept = 0, dropped = 0;
  double median_seconds = 0;  // of the kept rounds; 0 if none were
  // Of all rounds: a neighbour makes a call longer and never shorter, and calls
  // of half a second may have no round that is quiet from end to end.
  double min_seconds = 0;
  // The largest of all rounds, dropped ones too: dividing by more never
  // flatters.
  double fma = 0, read = 0;
};

// Pure. `best_canary` is the best of the whole process, so that rounds taken
// before the machine fell quiet do not set their own standard.
Summary Summarize(const std::vector<Round>& rounds, double best_canary);

}  // namespace heed

#endif  // HEED_BENCH_INTERLEAVED_H_
