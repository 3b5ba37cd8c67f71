// What stages say, and its two faces: Markdown and JSON.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/stages.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

// The largest of all rounds of the row: dividing by more never flatters.
double FmaPeak(const StageRow& row) {
  double peak = 0;
  for (const Stage& stage : row.stages) {
    for (const Round& round : stage.rounds) peak = std::max(peak, round.fma);
  }
  return peak;
}

// The cells of a row of the table.
std::string SharesText(const StageShares& shares) {
  std::vector<std::string> cells;
  const auto stages = {shares.scores, shares.softmax, shares.blend,
                       shares.pack_q, shares.pack_v};
  for (const double share : stages) {
    cells.push_back(share == 0 ? "-" : fmt::format("{:.1f}", share));
  }
  const bool whole = std::min(stages) > 0 && shares.full > 0;
  cells.push_back(whole ? fmt::format("{:.1f}", shares.rest()) : "-");
  for (const double share : {shares.full, shares.causal}) {
    cells.push_back(share == 0 ? "-"
                               : fmt::format("{:.1f} = {:.1f} % of peak", share,
                                             1e4 / share));
  }
  return fmt::format("{}", fmt::join(cells, " | "));
}

}  // namespace

StageTime TimeOf(const Stage& stage, double best_canary) {
  const Summary summary = Summarize(stage.rounds, best_canary);
  StageTime time;
  time.kept = summary.kept;
  time.dropped = summary.dropped;
  if (stage.scores > 0) {
    time.median = summary.median_seconds / stage.scores;
    time.least = summary.min_seconds / stage.scores;
  }
  return time;
}

StageShares SharesOf(const StageRow& row, bool medians) {
  StageShares shares;
  double* const places[] = {&shares.scores, &shares.softmax, &shares.blend,
                            &shares.pack_q, &shares.pack_v,  &shares.full,
                            &shares.causal};
  const double at_peak =
      4 * static_cast<double>(row.dim) / FmaPeak(row);  // seconds of a score
  for (size_t i = 0; i < std::size(places) && i < row.stages.size(); ++i) {
    const StageTime time = TimeOf(row.stages[i], row.best_canary);
    *places[i] = 100 * (medians ? time.median : time.least) / at_peak;
  }
  return shares;
}

std::string StagesMarkdown(const Provenance& provenance,
                           const std::vector<StageRow>& rows) {
  std::string text = ProvenanceText(provenance);
  text += fmt::format(
      "\nWhere the time of a prompt of {} tokens goes, one head, one thread: "
      "per score, in per cent of the time that its multiply-adds take at the "
      "FMA peak; the two products alone are 50 each at best. On a core that "
      "begins two multiply-adds of 8 lanes a cycle, D / 100 times that are "
      "cycles per 8 scores. rest is the full call less its stages; causal "
      "counts visible scores, so its diagonal is in it. Each by the shortest "
      "samples, and by the median of quiet rounds.\n\n"
      "| D | target | tile | by | scores | softmax | blend | pack q | pack v | "
      "rest | full | causal |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n",
      kStageLength);
  for (const StageRow& row : rows) {
    for (const bool medians : {false, true}) {
      text += fmt::format("| {} | {} | {} | {} | {} |\n", row.dim, row.target,
                          row.tile, medians ? "median" : "shortest",
                          SharesText(SharesOf(row, medians)));
    }
  }
  return text;
}

std::string StagesJson(const Provenance& provenance,
                       const std::vector<StageRow>& rows) {
  Json json;
  json["schema"] = "heed-bench-stages";
  json["schema_version"] = 1;
  for (const auto& [name, value] : provenance) json[name] = value;
  json["tokens"] = kStageLength;
  json["rows"] = Json::array();
  for (const StageRow& row : rows) {
    Json line;
    line["dim"] = row.dim;
    line["target"] = row.target;
    line["tile"] = row.tile;
    line["fma_peak_gflops"] = std::round(FmaPeak(row) * 1e-8) / 10;
    for (const Stage& stage : row.stages) {
      const StageTime time = TimeOf(stage, row.best_canary);
      Json of_stage;
      // Picoseconds per score, two digits behind the point.
      of_stage["ps_least"] = std::round(time.least * 1e14) / 100;
      of_stage["ps_median"] =
          time.kept == 0 ? Json() : Json(std::round(time.median * 1e14) / 100);
      of_stage["rounds_kept"] = time.kept;
      of_stage["rounds_dropped"] = time.dropped;
      line["stages"][stage.name] = of_stage;
    }
    json["rows"].push_back(line);
  }
  return json.dump(1) + "\n";
}

}  // namespace heed
