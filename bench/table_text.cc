// The table's two faces: Markdown and JSON.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/table.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

// A measurement has no more than four digits that mean anything; sixteen make
// files long and differences unreadable.
double Rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double digits = 4 - std::ceil(std::log10(std::fabs(value)));
  const double power = std::pow(10.0, std::fabs(digits));
  return digits >= 0 ? std::round(value * power) / power
                     : std::round(value / power) * power;
}

std::string Duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

// `work` per call as a percentage of `peak` per second; null if unknown.
Json Percent(double work, double seconds, double peak) {
  if (seconds == 0 || peak == 0) return nullptr;
  return Rounded(100 * work / seconds / peak);
}

Json Rate(double work, double seconds) {
  if (seconds == 0) return nullptr;
  return Rounded(work / seconds * 1e-9);
}

std::string Cell(const Json& number) {
  return number.is_null() ? "-" : fmt::format("{:.1f}", number.get<double>());
}

// By columns: a table has some ten thousand rounds, and their names would be
// most of the file.
Json RoundsJson(const TableRow& row) {
  Json rounds;
  for (const char* column :
       {"us", "fma_gflops", "canary_before", "canary_after", "kept"}) {
    rounds[column] = Json::array();
  }
  for (const Round& round : row.rounds) {
    rounds["us"].push_back(Rounded(round.seconds * 1e6));
    rounds["fma_gflops"].push_back(Rounded(round.fma * 1e-9));
    if (round.read != 0) {
      rounds["read_gbs"].push_back(Rounded(round.read * 1e-9));
    }
    rounds["canary_before"].push_back(
        Rounded(round.canary_before / row.best_canary));
    rounds["canary_after"].push_back(
        Rounded(round.canary_after / row.best_canary));
    rounds["kept"].push_back(IsQuiet(round, row.best_canary) ? 1 : 0);
  }
  return rounds;
}

Json RowJson(const TableRow& row) {
  const Summary summary = Summarize(row.rounds, row.best_canary);
  const double median = summary.median_seconds, least = summary.min_seconds;
  Json json;
  json["shape"] = row.shape;
  json["problem"] = row.problem;
  json["target"] = row.target;
  json["threads"] = row.threads;
  json["tile"] = row.tile;
  json["tier"] = row.tier;
  json["rounds_kept"] = summary.kept;
  json["rounds_dropped"] = summary.dropped;
  json["median_us"] = median == 0 ? Json() : Json(Rounded(median * 1e6));
  json["min_us"] = least == 0 ? Json() : Json(Rounded(least * 1e6));
  json["gflops"] = Rate(row.flops, median);
  json["fma_peak_gflops"] = Rounded(summary.fma * 1e-9);
  json["pct_peak"] = Percent(row.flops, median, summary.fma);
  json["pct_peak_min_time"] = Percent(row.flops, least, summary.fma);
  json["tasks_us"] =
      row.task_seconds == 0 ? Json() : Json(Rounded(row.task_seconds * 1e6));
  json["pct_peak_tasks"] = Percent(row.flops, row.task_seconds, summary.fma);
  json["gbs"] = Rate(row.bytes, median);
  json["read_peak_gbs"] =
      summary.read == 0 ? Json() : Json(Rounded(summary.read * 1e-9));
  json["pct_bw"] = Percent(row.bytes, median, summary.read);
  json["pct_bw_min_time"] = Percent(row.bytes, least, summary.read);
  json["rounds"] = RoundsJson(row);
  return json;
}

}  // namespace

std::string TableMarkdown(const Provenance& provenance,
                          const std::vector<TableRow>& rows) {
  std::string text = ProvenanceText(provenance);
  text +=
      "\nmedian is of the kept rounds, those in which the canary was within "
      "10 % of its best before and after the call; best is the shortest call "
      "and peaks are the largest of all rounds of the row; tasks is what a "
      "call would take by the shortest time of each of its tasks. GFLOP/s "
      "counts visible pairs * 2 * (D + Dv), GB/s counts q, k, v and out "
      "once.\n\n"
      "| shape | threads | target | median | best | GFLOP/s | FMA peak | % of "
      "peak | best % | tasks % | GB/s | % of read | best % | kept / dropped | "
      "tier |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const TableRow& row : rows) {
    const Summary summary = Summarize(row.rounds, row.best_canary);
    const double median = summary.median_seconds, least = summary.min_seconds;
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {:.1f} | {} | {} | {} | {} | {} | {} "
        "| {} "
        "/ {} | {} |\n",
        row.shape, row.threads, row.target,
        median == 0 ? "no quiet round" : Duration(median),
        least == 0 ? "-" : Duration(least), Cell(Rate(row.flops, median)),
        summary.fma * 1e-9, Cell(Percent(row.flops, median, summary.fma)),
        Cell(Percent(row.flops, least, summary.fma)),
        Cell(Percent(row.flops, row.task_seconds, summary.fma)),
        Cell(Rate(row.bytes, median)),
        Cell(Percent(row.bytes, median, summary.read)),
        Cell(Percent(row.bytes, least, summary.read)), summary.kept,
        summary.dropped, row.tier);
  }
  return text;
}

std::string TableJson(const Provenance& provenance,
                      const std::vector<TableRow>& rows) {
  Json json;
  json["schema"] = "heed-bench-table";
  json["schema_version"] = 1;
  for (const auto& [name, value] : provenance) json[name] = value;
  json["canary_slack"] = kCanarySlack;
  json["rows"] = Json::array();
  for (const TableRow& row : rows) json["rows"].push_back(RowJson(row));
  return json.dump() + "\n";
}

}  // namespace heed
