#include "tune/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tune/statistics.h"

namespace heed {
namespace {

// Below this share of undisturbed samples the table says so.
constexpr double kQuietEnough = 0.8;

Gain GainOf(const Interval& log_gain) {
  return {std::exp(log_gain.median), std::exp(log_gain.low),
          std::exp(log_gain.high)};
}

double Ms(double us) { return us * 1e-3; }

}  // namespace

std::string GainText(const Gain& gain) {
  return fmt::format("{:+.1f} % [{:+.1f}, {:+.1f}]", 100 * (gain.median - 1),
                     100 * (gain.low - 1), 100 * (gain.high - 1));
}

Record MakeRecord(const TuneMachine& machine, const RecordRun& run,
                  const std::vector<TunedShape>& results) {
  Record record;
  record.machine = machine.machine;
  record.machine_key = MachineKey(machine.machine);
  record.runs.push_back(run);
  for (const TunedShape& tuned : results) {
    if (tuned.skipped.empty()) record.entries.push_back(tuned.entry);
  }
  return record;
}

std::string ShapeLine(const TunedShape& tuned) {
  if (!tuned.skipped.empty()) return "skipped: " + tuned.skipped;
  const Confirmation& c = tuned.confirmation;
  const std::string what = fmt::format(
      "{} candidates, {} rounds, {} discarded, {:.0f} s", tuned.candidates,
      tuned.counts.rounds, tuned.counts.discarded, tuned.seconds);
  if (c.winner == 0) {
    return fmt::format("default kept, nothing seemed faster ({})", what);
  }
  if (!c.adopted) return fmt::format("default kept: {} ({})", c.reason, what);
  return fmt::format("adopted {} {} ({})", ToString(tuned.rival),
                     GainText(GainOf(c.log_gain)), what);
}

std::string ReportTable(const TuneMachine& machine,
                        const std::vector<TunedShape>& results) {
  std::string text = fmt::format("{:<22} {:>11} {:>11}  {:<24} {:>6}  {}\n",
                                 "shape", "default ms", "tuned ms",
                                 "gain [95 % interval]", "% peak", "tile");
  size_t adopted = 0, kept = 0, skipped = 0;
  double log_gain = 0;
  const double quiet = machine.gauge.QuietShare();
  for (const TunedShape& tuned : results) {
    if (!tuned.skipped.empty()) {
      ++skipped;
      text +=
          fmt::format("{:<22} skipped: {}\n", tuned.shape.name, tuned.skipped);
      continue;
    }
    const RecordEntry& entry = tuned.entry;
    const bool wins = entry.decision == Decision::kAdopted;
    (wins ? adopted : kept) += 1;
    log_gain += std::log(entry.gain.median);
    text +=
        fmt::format("{:<22} {:>11.3f} {:>11.3f}  {:<24} {:>6.1f}  {}\n",
                    tuned.shape.name, Ms(entry.default_us), Ms(entry.tuned_us),
                    wins ? GainText(entry.gain) : "default kept",
                    entry.pct_peak, ToString(entry.config));
  }
  text +=
      fmt::format("{} adopted, {} kept, {} skipped", adopted, kept, skipped);
  if (adopted + kept != 0) {
    const auto measured = static_cast<double>(adopted + kept);
    text += fmt::format(
        "; geometric mean gain {:+.1f} %; quiet {:.0f} % of "
        "the time",
        PercentMore(log_gain / measured), 100 * quiet);
  }
  if (adopted + kept != 0 && quiet < kQuietEnough) {
    text +=
        "\nThis machine was busy with something else: small gains were "
        "missed. Tune again when it is idle.";
  }
  text += fmt::format(
      "\nFMA peak measured in this run: {:.1f} GFLOP/s; memory read: {:.1f} "
      "GB/s\n",
      machine.peaks.fma_gflops_all, machine.peaks.read_gbs_all);
  return text;
}

std::string ReportJson(const Record& record, const std::string& path,
                       const std::vector<TunedShape>& results,
                       bool interrupted) {
  nlohmann::ordered_json json = {{"path", path}, {"interrupted", interrupted}};
  json["record"] = nlohmann::ordered_json::parse(ToJson(record));
  json["shapes"] = nlohmann::ordered_json::array();
  for (const TunedShape& tuned : results) {
    nlohmann::ordered_json shape = {{"name", tuned.shape.name},
                                    {"problem", tuned.shape.text},
                                    {"seconds", tuned.seconds}};
    if (!tuned.skipped.empty()) {
      shape["skipped"] = tuned.skipped;
    } else {
      const Confirmation& c = tuned.confirmation;
      shape["adopted"] = c.adopted;
      shape["candidates"] = tuned.candidates;
      shape["reason"] = c.reason;
      shape["rounds"] = c.rounds;
      shape["rounds_discarded"] = tuned.counts.discarded;
      shape["rejected"] = tuned.rejected;
      shape["rival"] = ToString(tuned.rival);
      shape["rival_gain"] = std::exp(c.log_gain.median);
      shape["rival_gain_low"] = std::exp(c.log_gain.low);
      shape["rival_gain_high"] = std::exp(c.log_gain.high);
      shape["default_us"] = tuned.entry.default_us;
      shape["tuned_us"] = tuned.entry.tuned_us;
      shape["pct_peak"] = tuned.entry.pct_peak;
    }
    json["shapes"].push_back(shape);
  }
  return json.dump(2);
}

}  // namespace heed
