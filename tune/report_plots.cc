#include "tune/report_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/problem.h"
#include "tune/report.h"
#include "tune/shapes.h"
#include "tune/statistics.h"
#include "tune/svg.h"

namespace heed {
namespace {

using Points = std::vector<std::pair<double, double>>;

std::string GainPercent(double ratio) {
  return fmt::format("{:+.1f} %", 100 * (ratio - 1));
}

std::string ClassTitle(const ReportClass& c) {
  return c.name == c.problem ? c.key : c.name;
}

struct RoofPoint {
  std::string name;
  double intensity, gflops, usual;
};

std::vector<RoofPoint> RoofPoints(const ReportData& data) {
  std::vector<RoofPoint> points;
  for (const ReportClass& c : data.classes) {
    if (c.entry < 0) continue;
    const RecordEntry& entry =
        data.record.entries[static_cast<size_t>(c.entry)];
    heed_problem problem;
    if (ParseProblem(entry.problem, &problem) != HEED_OK ||
        ValidateProblem(problem) != HEED_OK || !(entry.tuned_us > 0)) {
      continue;
    }
    const double flops = AttentionFlops(problem);
    points.push_back({ClassTitle(c), flops / CompulsoryBytes(problem),
                      flops / entry.tuned_us * 1e-3,
                      flops / std::max(entry.default_us, 1e-9) * 1e-3});
  }
  return points;
}

// The median of the ratios so far, for each candidate of one phase.
std::map<size_t, Points> RunningMedians(const ReportClass& c,
                                        const std::string& phase) {
  std::map<size_t, std::vector<double>> ratios;
  std::map<size_t, Points> lines;
  double number = 0;
  for (const ReportRound& round : c.rounds) {
    if (round.phase != phase || !round.discarded.empty()) continue;
    ++number;
    double of_default = 0;
    for (size_t i = 0; i < round.order.size(); ++i) {
      if (round.order[i] == 0) of_default = round.ns[i];
    }
    for (size_t i = 0; i < round.order.size(); ++i) {
      const size_t candidate = round.order[i];
      if (candidate == 0 || !(round.ns[i] > 0) || !(of_default > 0)) continue;
      ratios[candidate].push_back(of_default / round.ns[i]);
      lines[candidate].push_back({number, Median(ratios[candidate])});
    }
  }
  return lines;
}

}  // namespace

std::string GainPlot(const ReportData& data) {
  const double row = 30, left = 220, right = 950, top = 16;
  std::vector<const ReportClass*> shown;
  double low = 0.98, high = 1.04;
  for (const ReportClass& c : data.classes) {
    if (c.entry < 0) continue;
    shown.push_back(&c);
    const RecordEntry& entry =
        data.record.entries[static_cast<size_t>(c.entry)];
    low = std::min(low, entry.gain.low - 0.01);
    high = std::max(high, entry.gain.high + 0.01);
  }
  const double bottom = top + row * static_cast<double>(shown.size());
  Svg svg(1000, bottom + 40, "Gain of each class with its 95 % interval");
  const Scale x(low, high, left, right, false);
  for (const double tick : x.Ticks(8)) {
    svg.Line(x(tick), top, x(tick), bottom, tick == 1 ? "zero" : "grid");
    svg.Text(x(tick), bottom + 18, GainPercent(tick), "tick", "middle");
  }
  const double demand = 1 + NewestRun(data.record).demand_pct / 100;
  svg.Line(x(demand), top, x(demand), bottom, "demand");
  svg.Text(x(demand), bottom + 34, "demanded", "note", "middle");
  for (size_t i = 0; i < shown.size(); ++i) {
    const RecordEntry& entry =
        data.record.entries[static_cast<size_t>(shown[i]->entry)];
    const double y = top + row * (static_cast<double>(i) + 0.5);
    svg.Text(left - 14, y + 4, ClassTitle(*shown[i]), "label", "end");
    if (entry.decision != Decision::kAdopted) {
      svg.Circle(x(1), y, 4, "kept", "default kept: " + entry.reason);
      continue;
    }
    const std::string title = GainText(entry.gain);
    svg.Rect(x(1), y - 7, x(entry.gain.median) - x(1), 14, "gain", 0.85, title);
    svg.Line(x(entry.gain.low), y, x(entry.gain.high), y, "whisker");
    for (const double end : {entry.gain.low, entry.gain.high}) {
      svg.Line(x(end), y - 5, x(end), y + 5, "whisker");
    }
    svg.Text(x(entry.gain.high) + 8, y + 4, GainPercent(entry.gain.median),
             "value");
  }
  return svg.ToString();
}

std::string RooflinePlot(const ReportData& data) {
  const RecordRun run = NewestRun(data.record);
  const std::vector<RoofPoint> points = RoofPoints(data);
  if (points.empty() || !(run.fma_gflops_all > 0) || !(run.read_gbs_all > 0)) {
    return "";
  }
  double low = 1e9, high = 0, slow = run.fma_gflops_all;
  for (const RoofPoint& p : points) {
    low = std::min(low, p.intensity);
    high = std::max(high, p.intensity);
    slow = std::min({slow, p.gflops, p.usual});
  }
  Svg svg(1000, 440, "Roofline: performance against arithmetic intensity");
  const double left = 70, right = 960, top = 20, bottom = 380;
  const Scale x(low / 2, high * 2, left, right, true);
  const Scale y(slow / 2, run.fma_gflops_all * 1.6, bottom, top, true);
  for (const double tick : x.Ticks(8)) {
    svg.Line(x(tick), top, x(tick), bottom, "grid");
    svg.Text(x(tick), bottom + 18, ShortNumber(tick), "tick", "middle");
  }
  for (const double tick : y.Ticks(8)) {
    svg.Line(left, y(tick), right, y(tick), "grid");
    svg.Text(left - 8, y(tick) + 4, ShortNumber(tick), "tick", "end");
  }
  svg.Text((left + right) / 2, bottom + 40,
           "operations per byte of q, k, v and out", "note", "middle");
  svg.Text(left, top - 6, "GFLOP/s", "note", "middle");
  const auto roof = [&](double gflops, double gbs, const char* style,
                        const std::string& name) {
    Points line;
    for (int i = 0; i <= 200; ++i) {
      const double at = low / 2 * std::pow(4 * high / low, i / 200.0);
      line.push_back({x(at), y(std::min(gflops, at * gbs))});
    }
    svg.Path(line, style);
    svg.Text(right - 4, y(gflops) - 6, name, "note", "end");
  };
  roof(run.fma_gflops_all, run.read_gbs_all, "roof",
       fmt::format("all threads: {:.0f} GFLOP/s, {:.0f} GB/s",
                   run.fma_gflops_all, run.read_gbs_all));
  if (run.fma_gflops_1t < 0.9 * run.fma_gflops_all) {
    roof(run.fma_gflops_1t, run.read_gbs_1t, "roof1",
         fmt::format("one thread: {:.0f} GFLOP/s, {:.0f} GB/s",
                     run.fma_gflops_1t, run.read_gbs_1t));
  }
  // Names where there is room: below the points, each lower than the last one
  // that is near.
  std::vector<RoofPoint> sorted = points;
  std::sort(sorted.begin(), sorted.end(),
            [](const RoofPoint& a, const RoofPoint& b) {
              return a.intensity < b.intensity;
            });
  Points placed;
  for (const RoofPoint& p : sorted) {
    const double at = x(p.intensity);
    svg.Line(at, y(p.usual), at, y(p.gflops), "whisker");
    svg.Circle(at, y(p.usual), 3.5, "kept", p.name + ", default");
    svg.Circle(at, y(p.gflops), 5, "point",
               fmt::format("{}: {:.1f} GFLOP/s", p.name, p.gflops));
    double text_y = y(std::min(p.gflops, p.usual)) + 18;
    for (const auto& other : placed) {
      if (std::fabs(other.first - at) < 130 &&
          std::fabs(other.second - text_y) < 13) {
        text_y = other.second + 13;
      }
    }
    placed.push_back({at, text_y});
    svg.Text(at, text_y, p.name, "small", at > 880 ? "end" : "middle");
  }
  return svg.ToString();
}

std::string NoisePlot(const ReportData& data) {
  if (data.timeline.empty() || !(data.best_canary > 0)) return "";
  const double left = 60, right = 980, top = 14, bottom = 170;
  double last = 1;
  std::vector<double> ratios;
  for (const ReportRound& round : data.timeline) {
    last = std::max(last, round.time);
    ratios.push_back(round.canary / data.best_canary);
  }
  const double high = std::clamp(Quantile(ratios, 0.99) * 1.1, 1.4, 4.0);
  Svg svg(1000, 220, "The canary over the run");
  const Scale x(0, last, left, right, false);
  const Scale y(0.95, high, bottom, top, false);
  for (const double tick : y.Ticks(4)) {
    svg.Line(left, y(tick), right, y(tick), "grid");
    svg.Text(left - 8, y(tick) + 4, ShortNumber(tick) + "x", "tick", "end");
  }
  for (const double tick : x.Ticks(8)) {
    svg.Text(x(tick), bottom + 18, ShortNumber(tick) + " s", "tick", "middle");
  }
  svg.Rect(left, y(1.1), right - left, bottom - y(1.1), "quiet", 0.12,
           "within 10 % of the best: a quiet machine");
  // At most some thousand points: the worst of each stretch of time.
  const size_t step = std::max<size_t>(1, data.timeline.size() / 1500);
  for (size_t i = 0; i < data.timeline.size(); i += step) {
    size_t worst = i;
    for (size_t j = i; j < std::min(i + step, data.timeline.size()); ++j) {
      if (ratios[j] > ratios[worst]) worst = j;
    }
    const ReportRound& round = data.timeline[worst];
    const char* style = !round.discarded.empty() ? "drop"
                        : round.phase == "noise" ? "aa"
                                                 : "dot";
    svg.Circle(x(round.time), y(ratios[worst]), 1.8, style);
  }
  svg.Text(
      left, bottom + 42,
      "each dot a round, by the worst canary in it against the best of the "
      "run",
      "note");
  return svg.ToString();
}

std::string HeatMap(const ReportClass& c) {
  std::set<size_t> blocks, tiles;
  std::map<std::pair<size_t, size_t>, const ReportCandidate*> best;
  for (const ReportCandidate& candidate : c.candidates) {
    if (candidate.rounds == 0) continue;
    blocks.insert(candidate.row_block);
    tiles.insert(candidate.key_tile);
    const ReportCandidate*& at =
        best[{candidate.row_block, candidate.key_tile}];
    if (at == nullptr || candidate.gain > at->gain) at = &candidate;
  }
  if (best.size() < 3 || blocks.size() < 2) return "";
  const double left = 64, top = 26;
  const double cell =
      std::min(76.0, (470 - left) / static_cast<double>(tiles.size()));
  const double height = 40;
  const double bottom = top + height * static_cast<double>(blocks.size());
  Svg svg(480, bottom + 42, "Gain by row block and key tile");
  double most = 0.02;
  for (const auto& item : best) {
    most = std::max(most, std::fabs(std::log(item.second->gain)));
  }
  size_t column = 0;
  for (const size_t tile : tiles) {
    const double x = left + cell * static_cast<double>(column++);
    svg.Text(x + cell / 2, bottom + 16, std::to_string(tile), "tick", "middle");
  }
  svg.Text(left + cell * static_cast<double>(tiles.size()) / 2, bottom + 34,
           "key tile", "note", "middle");
  svg.Text(4, 14, "row block", "note");
  size_t line = 0;
  for (const size_t block : blocks) {
    const double y = top + height * static_cast<double>(line++);
    svg.Text(left - 8, y + height / 2 + 4, std::to_string(block), "tick",
             "end");
    column = 0;
    for (const size_t tile : tiles) {
      const double x = left + cell * static_cast<double>(column++);
      const auto found = best.find({block, tile});
      if (found == best.end()) {
        svg.Rect(x + 1, y + 1, cell - 2, height - 2, "none", 0.06);
        continue;
      }
      const ReportCandidate& candidate = *found->second;
      const double log_gain = std::log(candidate.gain);
      svg.Rect(x + 1, y + 1, cell - 2, height - 2,
               log_gain >= 0 ? "hot" : "cold",
               0.12 + 0.75 * std::fabs(log_gain) / most,
               candidate.name + ": " + GainPercent(candidate.gain));
      svg.Text(x + cell / 2, y + height / 2 + 4,
               fmt::format("{:+.1f}", 100 * (candidate.gain - 1)), "cell",
               "middle");
    }
  }
  return svg.ToString();
}

std::string RacePlot(const ReportClass& c, const RecordEntry* entry) {
  const std::map<size_t, Points> search = RunningMedians(c, "search");
  const std::map<size_t, Points> confirm = RunningMedians(c, "confirm");
  if (search.empty()) return "";
  double rounds = 1, fresh = 0, low = 0.97, high = 1.03;
  for (const auto& item : search) {
    rounds = std::max(rounds, item.second.back().first);
    low = std::min(low, item.second.back().second - 0.01);
    high = std::max(high, item.second.back().second + 0.01);
  }
  for (const auto& item : confirm) {
    fresh = std::max(fresh, item.second.back().first);
    high = std::max(high, item.second.back().second + 0.01);
  }
  low = std::max(low, 0.75);
  Svg svg(480, 250, "The race of the candidates, round by round");
  const double left = 54, middle = fresh > 0 ? 280 : 468, right = 468;
  const double top = 26, bottom = 206;
  const Scale x(1, std::max(rounds, 2.0), left, middle - 10, false);
  const Scale y(low, high, bottom, top, false);
  for (const double tick : y.Ticks(5)) {
    svg.Line(left, y(tick), right, y(tick), tick == 1 ? "zero" : "grid");
    svg.Text(left - 6, y(tick) + 4, GainPercent(tick), "tick", "end");
  }
  const auto draw = [&](const std::map<size_t, Points>& lines, const Scale& at,
                        double last) {
    for (const auto& [candidate, points] : lines) {
      Points line;
      for (const auto& p : points) line.push_back({at(p.first), y(p.second)});
      const bool finalist = confirm.count(candidate) != 0;
      svg.Path(line, finalist ? "finalist" : "runner");
      // Left before the end.
      if (points.back().first < last) {
        svg.Circle(line.back().first, line.back().second, 2, "out",
                   candidate < c.candidates.size()
                       ? c.candidates[candidate].name
                       : "");
      }
    }
  };
  draw(search, x, rounds);
  svg.Text((left + middle) / 2, bottom + 18,
           fmt::format("search, {:.0f} rounds", rounds), "tick", "middle");
  if (fresh > 0) {
    svg.Line(middle, top - 10, middle, bottom, "split");
    const Scale z(1, std::max(fresh, 2.0), middle + 10, right - 8, false);
    draw(confirm, z, fresh);
    svg.Text((middle + right) / 2, bottom + 18,
             fmt::format("fresh, {:.0f} rounds", fresh), "tick", "middle");
    if (entry != nullptr && entry->decision == Decision::kAdopted) {
      const double at = right - 3;
      svg.Line(at, y(entry->gain.low), at, y(entry->gain.high), "whisker");
    }
  }
  svg.Text(left, bottom + 38, "median gain over the default so far", "note");
  return svg.ToString();
}

}  // namespace heed
