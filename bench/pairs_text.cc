// The pairs' two faces: Markdown and JSON.

#include <fmt/format.h>

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

Json IntervalJson(const Interval& interval) {
  return {{"median", Short(interval.median)},
          {"low", Short(interval.low)},
          {"high", Short(interval.high)}};
}

std::string IntervalText(const Interval& interval) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) {
    return fmt::format("{:.3f}", interval.median);
  }
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", interval.median, interval.low,
                     interval.high);
}

Json RowJson(const PairRow& row) {
  const PairSummary summary = SummarizePair(row);
  Json json;
  json["pair"] = row.pair.name;
  json["with"] = row.pair.with.text;
  json["base"] = row.pair.base.text;
  json["target"] = row.target;
  json["threads"] = row.threads;
  json["flop_ratio"] = Short(row.flop_ratio);
  json["rounds_kept"] = summary.kept;
  json["rounds_dropped"] = summary.dropped;
  if (summary.kept == 0) return json;
  json["ratio"] = IntervalJson(summary.ratio);
  json["min_ratio"] = Short(summary.min_ratio);
  json["noise"] = IntervalJson(summary.noise);
  json["base_us"] = Short(summary.base_seconds * 1e6);
  json["with_us"] = Short(summary.with_seconds * 1e6);
  return json;
}

}  // namespace

std::string PairsMarkdown(const Provenance& provenance,
                          const std::vector<PairRow>& rows) {
  std::string text;
  for (const auto& [name, value] : provenance) {
    text += fmt::format("- {}: `{}`\n", name, value);
  }
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
    text += fmt::format("| {} | {} | {} | ", row.pair.name, row.threads,
                        row.target);
    if (summary.kept == 0) {
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

std::string PairsJson(const Provenance& provenance,
                      const std::vector<PairRow>& rows) {
  Json json;
  json["schema"] = "heed-bench-pairs";
  json["schema_version"] = 1;
  for (const auto& [name, value] : provenance) json[name] = value;
  json["rows"] = Json::array();
  for (const PairRow& row : rows) json["rows"].push_back(RowJson(row));
  return json.dump(1) + "\n";
}

}  // namespace heed
