// The pairs' two faces: Markdown and JSON.

#include "bench/pairs_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/pairs.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

// Four digits are more than a ratio here is known to.
Json Short(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::round(value * 1e4) / 1e4;
}

// Too few rounds bound nothing: from 0 to infinity, as ratios.
bool IsBounded(const Interval& interval) {
  return std::isfinite(interval.high);
}

Json IntervalJson(const Interval& interval) {
  if (!IsBounded(interval)) return {{"median", Short(interval.median)}};
  return {{"median", Short(interval.median)},
          {"low", Short(interval.low)},
          {"high", Short(interval.high)}};
}

}  // namespace

std::string IntervalText(const Interval& interval) {
  if (!IsBounded(interval)) return fmt::format("{:.3f}", interval.median);
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", interval.median, interval.low,
                     interval.high);
}

Json PairJson(const PairRow& row) {
  const PairSummary summary = SummarizePair(row);
  Json json;
  json["pair"] = row.name;
  json["with"] = row.with;
  json["base"] = row.base;
  json["target"] = row.target;
  json["threads"] = row.threads;
  json["flop_ratio"] = Short(row.flop_ratio);
  json["rounds_kept"] = summary.kept;
  json["rounds_dropped"] = summary.dropped;
  if (!row.refused.empty()) json["refused"] = row.refused;
  // Microseconds of a call in the round's order, and the worse canary as a
  // share of its best.
  Json& rounds = json["rounds"] = Json::array();
  for (const PairRound& round : row.rounds) {
    const double canary = std::min(round.canary_before, round.canary_after);
    rounds.push_back(
        {Short(round.base_seconds[0] * 1e6), Short(round.with_seconds[0] * 1e6),
         Short(round.with_seconds[1] * 1e6), Short(round.base_seconds[1] * 1e6),
         Short(canary / row.best_canary)});
  }
  if (summary.kept == 0) return json;
  json["ratio"] = IntervalJson(summary.ratio);
  json["min_ratio"] = Short(summary.min_ratio);
  json["noise"] = IntervalJson(summary.noise);
  json["base_us"] = Short(summary.base_seconds * 1e6);
  json["with_us"] = Short(summary.with_seconds * 1e6);
  return json;
}

std::string PairsMarkdown(const Provenance& provenance,
                          const std::vector<PairRow>& rows) {
  std::string text = ProvenanceText(provenance);
  text +=
      "\nTime of the first problem over that of the second, of rounds base, "
      "with, with, base in which the canary was within 10 % of its best: the "
      "median with its 95 % interval, and the ratio of the shortest calls. A/A "
      "is the second base call over the first. Work is the ratio of the "
      "visible pairs' arithmetic.\n\n"
      "| | threads | target | ratio | of the shortest | work | A/A | base | "
      "with | kept / dropped |\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const PairRow& row : rows) {
    const PairSummary summary = SummarizePair(row);
    text += fmt::format("| {} | {} | {} | ", row.name, row.threads, row.target);
    if (!row.refused.empty()) {
      text += row.refused + " | - | - | - | - | - | ";
    } else if (summary.kept == 0) {
      text += fmt::format("no quiet round | - | {:.3f} | - | - | - | ",
                          row.flop_ratio);
    } else {
      text +=
          fmt::format("{} | {:.3f} | {:.3f} | {} | {:.3f} ms | {:.3f} ms | ",
                      IntervalText(summary.ratio), summary.min_ratio,
                      row.flop_ratio, IntervalText(summary.noise),
                      summary.base_seconds * 1e3, summary.with_seconds * 1e3);
    }
    text += fmt::format("{} / {} |\n", summary.kept, summary.dropped);
  }
  return text;
}

std::string JsonWithRows(const Json& object, const std::vector<Json>& rows) {
  std::string text = object.dump(1);
  text.resize(text.size() - 2);  // without its end, "\n}"
  text += ",\n \"rows\": [";
  for (size_t i = 0; i < rows.size(); ++i) {
    text += (i == 0 ? "\n  " : ",\n  ") + rows[i].dump();
  }
  return text + "\n ]\n}\n";
}

std::string PairsJson(const Provenance& provenance,
                      const std::vector<PairRow>& rows) {
  Json json;
  json["schema"] = "heed-bench-pairs";
  json["schema_version"] = 2;
  for (const auto& [name, value] : provenance) json[name] = value;
  std::vector<Json> texts;
  for (const PairRow& row : rows) texts.push_back(PairJson(row));
  return JsonWithRows(json, texts);
}

}  // namespace heed
