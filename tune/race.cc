#include "tune/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

constexpr size_t kHalvingFactor = 3;
constexpr double kRoundGrowth = 1.6;
// After three rounds a candidate is out that was this much slower than the best
// in all of them: one spike must not cost the fastest its place.
constexpr double kHopeless = 1.25;
constexpr int kHopelessRounds = 3;

RaceCounts CountsOf(const Rounds& rounds) {
  return {rounds.attempts() - rounds.discarded(), rounds.discarded(),
          rounds.suspicious(), rounds.samples()};
}

RoundsOptions Limits(size_t iterations, double deadline) {
  RoundsOptions options;
  options.iterations = iterations;
  options.deadline = deadline;
  return options;
}

void DropHopeless(const Rounds& rounds, std::vector<size_t>* live) {
  const auto best_of = [&rounds](size_t rival) {
    const std::vector<double>& gains = rounds.LogGains(rival);
    return *std::max_element(gains.begin(), gains.end());
  };
  double best = Median(rounds.LogGains(live->front()));
  for (const size_t rival : *live) {
    best = std::max(best, Median(rounds.LogGains(rival)));
  }
  // The default is not to be beaten by a spike of its own either.
  best = std::min(best, std::log(kHopeless));
  live->erase(std::remove_if(live->begin(), live->end(),
                             [&](size_t rival) {
                               return best_of(rival) <
                                      best - std::log(kHopeless);
                             }),
              live->end());
}

// The finalist whose interval begins highest.
void PickWinner(const Rounds& rounds, const std::vector<size_t>& finalists,
                double alpha, Confirmation* result) {
  result->winner = 0;
  for (const size_t finalist : finalists) {
    const Interval interval = MedianInterval(rounds.LogGains(finalist), alpha);
    if (result->winner != 0 && interval.low <= result->log_gain.low) continue;
    result->winner = finalist;
    result->log_gain = interval;
  }
}

std::string WhyKept(const Confirmation& c) {
  if (c.winner == 0) return "nothing seemed faster";
  return fmt::format(
      "the best rival's {:+.1f} % [{:+.1f}, {:+.1f}] does not "
      "surely exceed {:+.1f} %",
      PercentMore(c.log_gain.median), PercentMore(c.log_gain.low),
      PercentMore(c.log_gain.high), PercentMore(c.demand));
}

}  // namespace

std::vector<size_t> LatinOrder(size_t count, size_t k) {
  // 0, 1, n-1, 2, n-2, ...: each order is this one with k added; the second
  // half of an odd count's orders are the first ones backwards.
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t zigzag = i % 2 == 1 ? (i + 1) / 2 : (count - i / 2) % count;
    order[i] = (zigzag + k) % count;
  }
  if (k / count % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

SearchResult Search(Sampler* sampler, size_t count,
                    const SearchOptions& options, const RaceContext& context,
                    std::mt19937_64* random) {
  SearchResult result;
  std::vector<size_t> live;
  for (size_t candidate = 1; candidate < count; ++candidate) {
    live.push_back(candidate);
  }
  Rounds rounds(sampler, Limits(options.iterations, options.deadline),
                context.gauge, context.observe);
  std::vector<double> gain(count);
  // Ties fall to the lower number: candidates come nearest to the default
  // first.
  const auto rank = [&rounds, &gain, &live] {
    for (const size_t rival : live) {
      gain[rival] = Median(rounds.LogGains(rival));
    }
    std::stable_sort(live.begin(), live.end(),
                     [&gain](size_t a, size_t b) { return gain[a] > gain[b]; });
  };
  double heat_rounds = options.rounds;
  bool in_time = true;
  int done = 0;
  while (in_time && !live.empty()) {
    for (int round = 0; round < static_cast<int>(heat_rounds); ++round) {
      std::vector<size_t> order = live;
      order.push_back(0);
      std::shuffle(order.begin(), order.end(), *random);
      in_time = rounds.Run(order);
      if (!in_time) break;
      if (++done == kHopelessRounds) DropHopeless(rounds, &live);
    }
    result.counts = CountsOf(rounds);
    if (done == 0 || live.empty()) return result;
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
                     const ConfirmOptions& options,
                     const RaceContext& context) {
  Confirmation result;
  Rounds rounds(sampler, Limits(options.iterations, options.deadline),
                context.gauge, context.observe);
  std::vector<size_t> runners = finalists;
  runners.insert(runners.begin(), 0);
  // Bonferroni.
  const double alpha =
      options.alpha / static_cast<double>(std::max<size_t>(
                          finalists.size() * options.looks.size(), 1));
  bool in_time = true;
  for (size_t look = 0; look < options.looks.size() && in_time; ++look) {
    while (in_time && result.rounds < options.looks[look]) {
      std::vector<size_t> order;
      for (const size_t place :
           LatinOrder(runners.size(), static_cast<size_t>(result.rounds))) {
        order.push_back(runners[place]);
      }
      in_time = rounds.Run(order);
      if (in_time) ++result.rounds;
    }
    PickWinner(rounds, finalists, alpha, &result);
    result.demand = std::log1p(options.min_gain) +
                    options.noise.HalfWidth(result.rounds, alpha);
    result.adopted = result.winner != 0 && result.log_gain.low > result.demand;
    // Stopping because nothing can win any more adopts nothing wrongly.
    const bool hopeless =
        result.winner != 0 &&
        std::all_of(finalists.begin(), finalists.end(), [&](size_t finalist) {
          return MedianInterval(rounds.LogGains(finalist), alpha).high <
                 std::log1p(options.min_gain);
        });
    if (result.adopted || hopeless) break;
  }
  result.counts = CountsOf(rounds);
  if (result.rounds == 0) return result;
  result.default_seconds = rounds.MedianSeconds(0);
  result.winner_seconds = rounds.MedianSeconds(result.winner);
  if (!result.adopted) result.reason = WhyKept(result);
  return result;
}

bool Undecided(const Confirmation& c, double min_gain) {
  return !c.adopted && c.winner != 0 && c.log_gain.high >= std::log1p(min_gain);
}

GuardResult CheckGuard(Sampler* sampler, const GuardOptions& options,
                       const RaceContext& context) {
  GuardResult result;
  Rounds rounds(sampler, Limits(options.iterations, options.deadline),
                context.gauge, context.observe);
  while (result.rounds < options.rounds &&
         rounds.Run(LatinOrder(2, static_cast<size_t>(result.rounds)))) {
    ++result.rounds;
  }
  result.log_gain = MedianInterval(rounds.LogGains(1), options.alpha);
  result.holds = result.log_gain.low > std::log1p(-options.max_loss);
  result.counts = CountsOf(rounds);
  return result;
}

}  // namespace heed
