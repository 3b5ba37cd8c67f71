#include "tune/report.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "kernels/probe.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

// Below this share of undisturbed samples the table says so.
constexpr double kQuietEnough = 0.8;

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string CompilerText() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__,
                     __clang_patchlevel__);
#else
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__,
                     __GNUC_PATCHLEVEL__);
#endif
}

// ln(default time / tuned time) as a percentage: +10 means that the default
// takes 10 % longer.
double Percent(double log_gain) { return 100 * std::expm1(log_gain); }

std::string GainText(const Confirmation& c) {
  return fmt::format("{:+.1f} % [{:+.1f}, {:+.1f}]", Percent(c.log_gain.median),
                     Percent(c.log_gain.low), Percent(c.log_gain.high));
}

double Ms(double us) { return us * 1e-3; }

}  // namespace

Record MakeRecord(const TuneMachine& machine, const std::string& command_line,
                  const std::vector<TunedShape>& results) {
  Record record;
  record.machine = machine.machine;
  record.machine_key = MachineKey(machine.machine);
  record.library_version = heed_version();
  record.compiler = CompilerText();
  record.highway = HighwayVersion();
  record.created = UtcNow();
  record.command = command_line;
  record.fma_gflops_1t = machine.peaks.fma_gflops_1t;
  record.fma_gflops_all = machine.peaks.fma_gflops_all;
  record.read_gbs_1t = machine.peaks.read_gbs_1t;
  record.read_gbs_all = machine.peaks.read_gbs_all;
  for (const TunedShape& tuned : results) {
    if (tuned.skipped.empty()) record.entries.push_back(tuned.entry);
  }
  return record;
}

std::string ShapeLine(const TunedShape& tuned) {
  if (!tuned.skipped.empty()) return "skipped: " + tuned.skipped;
  const Confirmation& c = tuned.confirmation;
  const std::string what =
      fmt::format("{} tiles, {} rounds, {:.0f} s", tuned.candidates, c.rounds,
                  tuned.seconds);
  if (c.winner == 0) {
    return fmt::format("default kept, nothing seemed faster ({})", what);
  }
  return fmt::format("{} {} {} ({})", c.adopted ? "adopted" : "default kept,",
                     ToString(tuned.rival), GainText(c), what);
}

std::string ReportTable(const TuneMachine& machine,
                        const std::vector<TunedShape>& results) {
  std::string text = fmt::format("{:<22} {:>11} {:>11}  {:<24} {:>6}  {}\n",
                                 "shape", "default ms", "tuned ms",
                                 "gain [95 % interval]", "% peak", "tile");
  size_t adopted = 0, kept = 0, skipped = 0;
  double log_gain = 0, quiet = 0;
  for (const TunedShape& tuned : results) {
    if (!tuned.skipped.empty()) {
      ++skipped;
      text +=
          fmt::format("{:<22} skipped: {}\n", tuned.shape.name, tuned.skipped);
      continue;
    }
    const RecordEntry& entry = tuned.entry;
    (entry.adopted ? adopted : kept) += 1;
    log_gain += std::log(entry.gain);
    quiet += tuned.quiet;
    text += fmt::format(
        "{:<22} {:>11.3f} {:>11.3f}  {:<24} {:>6.1f}  {}\n", tuned.shape.name,
        Ms(entry.default_us), Ms(entry.tuned_us),
        entry.adopted ? GainText(tuned.confirmation) : "default kept",
        entry.pct_peak, ToString(entry.tile));
  }
  text +=
      fmt::format("{} adopted, {} kept, {} skipped", adopted, kept, skipped);
  if (adopted + kept != 0) {
    const auto measured = static_cast<double>(adopted + kept);
    text += fmt::format(
        "; geometric mean gain {:+.1f} %; quiet {:.0f} % of "
        "the time",
        Percent(log_gain / measured), 100 * quiet / measured);
  }
  if (adopted + kept != 0 &&
      quiet / static_cast<double>(adopted + kept) < kQuietEnough) {
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
      shape["rounds"] = c.rounds;
      shape["rival"] = ToString(tuned.rival);
      shape["rival_gain"] = std::exp(c.log_gain.median);
      shape["rival_gain_low"] = std::exp(c.log_gain.low);
      shape["rival_gain_high"] = std::exp(c.log_gain.high);
      shape["default_us"] = tuned.entry.default_us;
      shape["tuned_us"] = tuned.entry.tuned_us;
      shape["pct_peak"] = tuned.entry.pct_peak;
      shape["quiet"] = tuned.quiet;
    }
    json["shapes"].push_back(shape);
  }
  return json.dump(2);
}

}  // namespace heed
