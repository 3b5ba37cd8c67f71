// Tunes one shape: search, confirmation, guard shapes, entry.
#ifndef HEED_TUNE_SHAPE_TUNER_H_
#define HEED_TUNE_SHAPE_TUNER_H_

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tune/attention_work.h"
#include "tune/tuner.h"

namespace heed {

// A sample is at least this long, so that timer and thread start-up vanish in
// it, and the search prefers slices of a shape whose samples are not longer.
constexpr double kMinSampleSeconds = 1e-3;
constexpr double kSliceSeconds = 20e-3;
// A guard may be a slice of its shape, with samples up to this long.
constexpr double kGuardSliceSeconds = 60e-3;
// Of a class, 0.05 in all: what the looks of its confirmation share, and what
// more rounds have if the budget leaves time for them. Those are fresh and of
// one rival, and looked at once, so whether and how many there are may depend
// on all that was seen before.
constexpr double kConfirmAlpha = 0.04, kMoreAlpha = 0.01;
constexpr int kMostMoreRounds = 2000;
constexpr size_t kMaxFinalists = 2;
// Parts of a shape's time: search, confirmation up to here, guard shapes with
// what is left.
constexpr double kSearchPart = 0.55;
constexpr double kConfirmPart = 0.85;

// Operations per second that a guess of a call's time presumes.
double AttainableFlops(const Peaks& peaks);

// Rows that keep every thread busy with the largest candidate's row blocks.
size_t EnoughRows(const Candidate& candidate, int threads);

// Share of alpha of one finalist at one look.
double AlphaOfOne(const Effort& effort);

// How many times the rounds that an effort plans the noise demands.
int RoundsFactor(const Effort& effort, const Noise& noise);

// The planned confirmation of a class: the effort's looks, times that factor.
ConfirmOptions PlannedConfirm(const Effort& effort, const Noise& noise);

// What fails for want of time or memory is a skipped shape. A candidate with
// wrong results is rejected and told of.
class ShapeTuner {
 public:
  // `index` is the class's number in the journal, which may be null.
  ShapeTuner(const TuneOptions& options, TuneMachine* machine,
             const TuneEvents& events, const NamedProblem& shape, size_t index,
             Journal* journal, std::mt19937_64* random, Canary* canary);

  TunedShape Tune(double seconds);
  // What came of it.
  bool ShortOfTime() const { return short_of_time_; }
  bool Undecided() const;
  // If that is undecided: more rounds of the rival, once, and what then holds.
  TunedShape More(double seconds);
  // Seconds that all of them take.
  double MoreWants() const;

 private:
  bool Skip(const std::string& reason);
  bool SkipForTime(const std::string& reason);
  bool Run(double start, double end);
  bool SearchOnSlice(double search_end, std::vector<size_t>* finalists);
  bool ConfirmOnWhole(std::vector<size_t> finalists, double confirm_end);
  void Reconfirm(double start, double end);
  int GuardRounds() const;
  void CheckGuards(double end);
  bool CheckOneGuard(const heed_problem& problem, double end);
  void KeepDefault(const std::string& reason);
  void FillEntry();
  void Count(const RaceCounts& counts);
  void Phase(const std::string& what);
  // Tries candidates of a problem in processes of their own, if that is wanted.
  // *wrong says of each, of [0] the default, what is wrong with it: nothing if
  // empty; *wrong ends with those for which there was time. False if the shape
  // has to be skipped.
  bool TryApart(const heed_problem& problem,
                const std::vector<Candidate>& candidates, double deadline,
                std::vector<std::string>* wrong);
  void LeaveOut(const Candidate& candidate, const std::string& why);
  // Rounds go to the journal under this name, with candidates by the numbers
  // that the class has for them.
  RaceContext ContextOf(const char* phase, std::vector<size_t> numbers);
  WorkOptions Work() const;

  const TuneOptions& options_;
  TuneMachine* machine_;
  const TuneEvents& events_;
  const heed_problem problem_;
  const size_t index_;
  Journal* journal_;
  std::mt19937_64* random_;
  Canary* canary_;
  std::vector<Candidate> candidates_;  // 0 is the default
  std::unique_ptr<AttentionTensors> tensors_;
  size_t winner_number_ = 0;  // of the rival among the candidates
  bool short_of_time_ = false, guard_lost_ = false;
  TunedShape tuned_;
};

}  // namespace heed

#endif  // HEED_TUNE_SHAPE_TUNER_H_
