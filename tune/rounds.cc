#include "tune/rounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tune/statistics.h"

namespace heed {
namespace {

constexpr int kWarmUpSamples = 3;
// A clock that fails this often in a row has stopped.
constexpr int kMaxClockFailures = 20;
// Enough quiet rounds to take a median of them alone.
constexpr size_t kEnoughQuiet = 5;
const char kClock[] = "clock";

}  // namespace

Pace FindPace(Sampler* sampler, double min_seconds) {
  Pace pace;
  for (int i = 0; i < kWarmUpSamples; ++i) {
    const double once = sampler->Sample(0, pace.iterations).seconds /
                        static_cast<double>(pace.iterations);
    // A clock that stands still must not ask for endless repetition.
    const double wanted = std::ceil(min_seconds / std::max(once, 1e-9));
    pace.iterations = static_cast<size_t>(std::clamp(wanted, 1.0, 1e6));
    pace.seconds = std::max(once, 0.0) * static_cast<double>(pace.iterations);
    if (once > min_seconds) break;
  }
  return pace;
}

void CanaryGauge::Add(double canary) {
  if (!(canary > 0)) return;
  all_.push_back(canary);
  best_ = std::min(best_, canary);
}

double CanaryGauge::QuietShare() const {
  if (all_.empty()) return 1;
  const auto quiet = std::count_if(all_.begin(), all_.end(),
                                   [this](double c) { return Quiet(c); });
  return static_cast<double>(quiet) / static_cast<double>(all_.size());
}

Rounds::Rounds(Sampler* sampler, const RoundsOptions& options,
               CanaryGauge* gauge, Observer observe)
    : sampler_(sampler),
      options_(options),
      gauge_(gauge),
      observe_(std::move(observe)) {}

Rounds::History& Rounds::Of(size_t candidate) {
  if (candidate >= history_.size()) history_.resize(candidate + 1);
  return history_[candidate];
}

Round Rounds::Attempt(const std::vector<size_t>& order) {
  Round round;
  round.order = order;
  const Disturbance before = sampler_->Disturbed();
  round.start = sampler_->Now();
  for (const size_t candidate : order) {
    const Timed timed = sampler_->Sample(candidate, options_.iterations);
    History& history = Of(candidate);
    // A clock that has failed must not keep the next rounds from being run.
    if (timed.seconds > 0 && std::isfinite(timed.seconds)) {
      history.total += timed.seconds;
    }
    ++history.count;
    round.seconds.push_back(timed.seconds /
                            static_cast<double>(options_.iterations));
    round.canary.push_back(timed.canary);
    if (gauge_ != nullptr) gauge_->Add(timed.canary);
  }
  samples_ += order.size();
  round.took = sampler_->Now() - round.start;
  const Disturbance after = sampler_->Disturbed();
  if (round.took > 0) {
    round.steal = (after.steal - before.steal) / round.took;
    round.pressure = (after.pressure - before.pressure) / round.took;
  }
  return round;
}

bool Rounds::OneTooSlow(const Round& round) const {
  const double limit = options_.max_ratio * Median(round.seconds);
  for (size_t i = 0; i < round.order.size(); ++i) {
    if (round.seconds[i] <= limit) continue;
    // A candidate that always is that slow has not been disturbed.
    const std::vector<double>& own = history_[round.order[i]].seconds;
    if (own.empty() || round.seconds[i] > options_.max_ratio * Median(own)) {
      return true;
    }
  }
  return false;
}

const char* Rounds::Judge(const Round& round) const {
  for (const double seconds : round.seconds) {
    if (!(seconds > 0) || !std::isfinite(seconds)) return kClock;
  }
  if (!(round.took >= 0) || !std::isfinite(round.took)) return kClock;
  if (round.steal > options_.max_steal) return "steal";
  if (round.pressure > options_.max_pressure) return "pressure";
  if (OneTooSlow(round)) return "spike";
  if (gauge_ == nullptr) return "";
  for (const double canary : round.canary) {
    if (canary > 0 && !gauge_->Quiet(canary)) return "canary";
  }
  return "";
}

void Rounds::Keep(const Round& round, bool quiet) {
  double of_default = 0;
  for (size_t i = 0; i < round.order.size(); ++i) {
    if (round.order[i] == 0) of_default = round.seconds[i];
    History& history = Of(round.order[i]);
    history.seconds.push_back(round.seconds[i]);
    if (quiet) history.quiet_seconds.push_back(round.seconds[i]);
  }
  if (of_default == 0) return;
  for (size_t i = 0; i < round.order.size(); ++i) {
    Of(round.order[i])
        .log_gains.push_back(std::log(of_default / round.seconds[i]));
  }
}

bool Rounds::Run(const std::vector<size_t>& order) {
  int clock_failures = 0;
  for (;;) {
    double predicted = 0;
    for (const size_t candidate : order) {
      const History& history = Of(candidate);
      if (history.count != 0) {
        predicted += history.total / static_cast<double>(history.count);
      }
    }
    if (!(sampler_->Now() + predicted <= options_.deadline)) return false;
    Round round = Attempt(order);
    ++attempts_;
    round.discarded = Judge(round);
    const bool fault = round.discarded == kClock;
    const bool disturbed = round.discarded[0] != 0;
    const double most = options_.max_discarded * attempts_ + 1;
    if (disturbed && !fault && discarded_ + 1 > most) round.discarded = "";
    if (observe_) observe_(round);
    if (round.discarded[0] == 0) {
      suspicious_ += disturbed;
      Keep(round, !disturbed);
      return true;
    }
    ++discarded_;
    if (fault && ++clock_failures >= kMaxClockFailures) return false;
  }
}

const std::vector<double>& Rounds::LogGains(size_t rival) const {
  static const std::vector<double> none;
  return rival < history_.size() ? history_[rival].log_gains : none;
}

double Rounds::MedianSeconds(size_t candidate) const {
  if (candidate >= history_.size()) return 0;
  const History& history = history_[candidate];
  if (history.seconds.empty()) return 0;
  return Median(history.quiet_seconds.size() >= kEnoughQuiet
                    ? history.quiet_seconds
                    : history.seconds);
}

}  // namespace heed
