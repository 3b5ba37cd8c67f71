#include "tune/schedule.h"

#include <algorithm>
#include <cstddef>

#include "tune/budget.h"

namespace heed {
namespace {

// Who had too little is given up to so many times what it was thought to want:
// the guess was too low, or it would have a result.
constexpr double kAnewFactor = 2;

class Turns {
 public:
  Turns(const std::vector<ScheduledClass>& classes, const Schedule& schedule)
      : classes_(classes),
        schedule_(schedule),
        outcomes_(classes.size(), Outcome::kNoTime) {}

  bool Run() {
    std::vector<double> wants;
    for (const ScheduledClass& one : classes_) wants.push_back(one.wants);
    for (size_t i = 0; i < classes_.size(); ++i) {
      if (Stopped() || !Turn(i, Part(wants, i))) return false;
    }
    for (const size_t i : Those(Outcome::kNoTime)) {
      if (Left() < schedule_.least) break;
      const double seconds = std::min(Left(), kAnewFactor * classes_[i].wants);
      if (Stopped() || !Turn(i, seconds)) return false;
    }
    const std::vector<size_t> undecided = Those(Outcome::kUndecided);
    wants.clear();
    for (const size_t i : undecided) wants.push_back(classes_[i].more_wants());
    size_t given = 0;
    bool cut = false;
    for (; given < undecided.size() && Left() >= schedule_.least; ++given) {
      if (Stopped()) return false;
      const ScheduledClass& one = classes_[undecided[given]];
      const Outcome outcome = one.more(Part(wants, given));
      if (outcome == Outcome::kFailed) return false;
      cut = cut || outcome == Outcome::kUndecided;
    }
    return !cut && given == undecided.size() && Those(Outcome::kNoTime).empty();
  }

 private:
  double Left() const { return schedule_.end - schedule_.now(); }
  bool Stopped() const { return schedule_.stop && schedule_.stop(); }

  bool Turn(size_t i, double seconds) {
    outcomes_[i] = classes_[i].turn(seconds);
    return outcomes_[i] != Outcome::kFailed;
  }
  // Of what is left, the part of number i beside those after it.
  double Part(const std::vector<double>& wants, size_t i) const {
    return Share(Left(),
                 {wants.begin() + static_cast<std::ptrdiff_t>(i), wants.end()});
  }
  std::vector<size_t> Those(Outcome outcome) const {
    std::vector<size_t> which;
    for (size_t i = 0; i < outcomes_.size(); ++i) {
      if (outcomes_[i] == outcome) which.push_back(i);
    }
    return which;
  }

  const std::vector<ScheduledClass>& classes_;
  const Schedule& schedule_;
  std::vector<Outcome> outcomes_;
};

}  // namespace

bool RunSchedule(const std::vector<ScheduledClass>& classes,
                 const Schedule& schedule) {
  return Turns(classes, schedule).Run();
}

}  // namespace heed
