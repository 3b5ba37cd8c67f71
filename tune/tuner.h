// Tunes a list of shapes on this machine within a budget of time.
#ifndef HEED_TUNE_TUNER_H_
#define HEED_TUNE_TUNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/probe.h"
#include "runtime/machine.h"
#include "runtime/record.h"
#include "tune/budget.h"
#include "tune/candidates.h"
#include "tune/journal.h"
#include "tune/noise.h"
#include "tune/peaks.h"
#include "tune/race.h"
#include "tune/shapes.h"
#include "tune/trial_process.h"

namespace heed {

struct TuneOptions {
  std::vector<NamedProblem> shapes;
  int threads = 1;
  Effort effort{};
  double budget_seconds = 120;
  double min_gain = 0.01;
  uint64_t seed = 1;
  std::string run_id;
  size_t first_class = 0;  // number of the first class in the journal
  // Starts a process in which candidates are tried before they are run in this
  // one; empty: they are not.
  std::function<StartTrials(const TrialWork&)> isolate;
};

// The machine as the tuner uses it. Measured peaks grow when a later probe of
// the same run shows more.
struct TuneMachine {
  Machine machine;
  int64_t target = 0;  // one of SupportedTargets()
  Probes probes;
  Peaks peaks;
  Noise noise;
  CanaryGauge gauge;
};

// The target's kernels for the problem's dtype.
Kernels KernelsFor(const TuneMachine& machine, const heed_problem& problem);

// Reads the clock, so to speak: this machine as it is, nothing measured yet.
TuneMachine OpenMachine();

struct TunedShape {
  NamedProblem shape;
  // Why there is no entry, in one line; empty if there is one.
  std::string skipped;
  RecordEntry entry;
  // The best rival, adopted or not; confirmation.winner 0 = there was none.
  Confirmation confirmation;
  Candidate rival;
  size_t candidates = 0;
  RaceCounts counts;                  // of search, confirmation and guards
  std::vector<std::string> rejected;  // candidates left out, and why
  double seconds = 0;
};

// What the tuner tells while it works. Every function may be empty.
struct TuneEvents {
  // Before a shape, with the time it and everything after it are expected to
  // take.
  std::function<void(size_t index, const NamedProblem& shape,
                     double seconds_left)>
      begin;
  // What is being done, e.g. "racing 24".
  std::function<void(const std::string& what)> phase;
  // After a shape. Publishes; false and a line of reason ends the run.
  std::function<bool(size_t index, const TunedShape& tuned, std::string* why)>
      end;
  // Asked before each shape.
  std::function<bool()> stop;
  // At the end, if no shape could have used more time.
  std::function<void()> all_done;
  // Now and then while a shape is tuned, between samples.
  std::function<void()> tick;
};

// What a shape would take at full effort, from the peaks and the two products:
// a guess that only shares out the budget.
double WantedSeconds(const heed_problem& problem, const Effort& effort,
                     const Peaks& peaks);

// Races the default of the cheapest shape against itself for about `seconds`,
// and keeps what that says of the machine.
bool MeasureMachineNoise(const TuneOptions& options, double seconds,
                         Journal* journal, TuneMachine* machine,
                         std::string* why);

// Tunes shape after shape, the cheapest first, as far as the budget goes, which
// counts from `start` (MonotonicSeconds()); what is left of it goes to shapes
// that had too little or are undecided, which then begin and end anew. Each
// result has its percentage of the highest peak that the run has seen so far.
// `journal` may be null. False and one line if publishing failed.
bool TuneShapes(const TuneOptions& options, double start, Journal* journal,
                TuneMachine* machine, const TuneEvents& events,
                std::vector<TunedShape>* results, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_TUNER_H_
