#include "tune/race.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace heed {
namespace {

constexpr size_t kHalvingFactor = 3;
constexpr double kRoundGrowth = 1.6;
// After its first round a candidate this much slower than the best is out.
constexpr double kHopeless = 1.25;
constexpr int kWarmUpSamples = 3;

// The default and its rivals, each sampled once per round in random order.
class Heat {
 public:
  Heat(Sampler* sampler, size_t iterations, double deadline,
       std::mt19937_64* random)
      : sampler_(sampler),
        iterations_(iterations),
        deadline_(deadline),
        random_(random) {}

  // One round; false, without having run it, if it would end too late. A sample
  // is predicted to last as long as the candidate's mean so far, which for the
  // first round is nothing: that one always runs, if the deadline is not past.
  bool Round(const std::vector<size_t>& rivals) {
    std::vector<size_t> order = rivals;
    order.push_back(0);
    double predicted = 0;
    for (const size_t candidate : order) predicted += MeanSample(candidate);
    if (sampler_->Now() + predicted > deadline_) return false;
    std::shuffle(order.begin(), order.end(), *random_);
    std::map<size_t, double> seconds;
    for (const size_t candidate : order) {
      seconds[candidate] = sampler_->Sample(candidate, iterations_);
      total_[candidate] += seconds[candidate];
      seconds_[candidate].push_back(seconds[candidate] /
                                    static_cast<double>(iterations_));
    }
    for (const size_t rival : rivals) {
      log_gains_[rival].push_back(std::log(seconds[0] / seconds[rival]));
    }
    return true;
  }

  const std::vector<double>& LogGains(size_t rival) {
    return log_gains_[rival];
  }
  double MedianSeconds(size_t candidate) { return Median(seconds_[candidate]); }

 private:
  double MeanSample(size_t candidate) {
    const size_t samples = seconds_[candidate].size();
    return samples == 0 ? 0 : total_[candidate] / static_cast<double>(samples);
  }

  Sampler* sampler_;
  size_t iterations_;
  double deadline_;
  std::mt19937_64* random_;
  std::map<size_t, double> total_;
  std::map<size_t, std::vector<double>> seconds_, log_gains_;
};

}  // namespace

Pace FindPace(Sampler* sampler, double min_seconds) {
  Pace pace;
  for (int i = 0; i < kWarmUpSamples; ++i) {
    const double once = sampler->Sample(0, pace.iterations) /
                        static_cast<double>(pace.iterations);
    // A clock that stands still must not ask for endless repetition.
    const double wanted = std::ceil(min_seconds / std::max(once, 1e-9));
    pace.iterations = static_cast<size_t>(std::clamp(wanted, 1.0, 1e6));
    pace.seconds = once * static_cast<double>(pace.iterations);
    if (once > min_seconds) break;
  }
  return pace;
}

SearchResult Search(Sampler* sampler, size_t count,
                    const SearchOptions& options, std::mt19937_64* random) {
  SearchResult result;
  std::vector<size_t> live;
  for (size_t candidate = 1; candidate < count; ++candidate) {
    live.push_back(candidate);
  }
  Heat heat(sampler, options.iterations, options.deadline, random);
  std::map<size_t, double> gain;
  // Ties fall to the lower number: candidates come nearest to the default
  // first.
  const auto rank = [&heat, &gain, &live]() {
    for (const size_t rival : live) gain[rival] = Median(heat.LogGains(rival));
    std::stable_sort(live.begin(), live.end(),
                     [&gain](size_t a, size_t b) { return gain[a] > gain[b]; });
  };
  double heat_rounds = options.rounds;
  bool in_time = true;
  while (in_time && !live.empty()) {
    for (int round = 0; round < static_cast<int>(heat_rounds); ++round) {
      in_time = heat.Round(live);
      if (!in_time) break;
      ++result.rounds;
      if (result.rounds != 1) continue;
      rank();
      const double best = gain[live[0]];
      while (gain[live.back()] < best - std::log(kHopeless)) live.pop_back();
    }
    if (result.rounds == 0) return result;
    rank();
    if (live.size() <= options.finalists) break;
    live.resize(std::max(options.finalists,
                         (live.size() + kHalvingFactor - 1) / kHalvingFactor));
    heat_rounds *= kRoundGrowth;
  }
  live.resize(std::min(live.size(), options.finalists));
  for (const size_t rival : live) {
    if (gain[rival] > 0) result.finalists.push_back(rival);
  }
  return result;
}

Confirmation Confirm(Sampler* sampler, const std::vector<size_t>& finalists,
                     const ConfirmOptions& options, std::mt19937_64* random) {
  Confirmation result;
  Heat heat(sampler, options.iterations, options.deadline, random);
  while (result.rounds < options.rounds && heat.Round(finalists)) {
    ++result.rounds;
  }
  if (result.rounds == 0) return result;
  result.default_seconds = heat.MedianSeconds(0);
  result.winner_seconds = result.default_seconds;
  // Bonferroni: each finalist's interval takes its share of alpha.
  const double alpha = options.alpha / static_cast<double>(std::max<size_t>(
                                           finalists.size(), 1));
  for (const size_t finalist : finalists) {
    const Interval interval = MedianInterval(heat.LogGains(finalist), alpha);
    if (result.winner != 0 && interval.low <= result.log_gain.low) continue;
    result.winner = finalist;
    result.log_gain = interval;
    result.winner_seconds = heat.MedianSeconds(finalist);
  }
  result.adopted =
      result.winner != 0 && result.log_gain.low > std::log1p(options.min_gain);
  return result;
}

}  // namespace heed
