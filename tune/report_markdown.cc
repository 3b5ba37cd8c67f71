// The tuning report as Markdown: the tables without the drawings.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tune/report.h"
#include "tune/report_data.h"

namespace heed {
namespace {

std::string Machine1(const Machine& m) {
  return fmt::format(
      "{} ({}, family {}, model {}, stepping {}), {} of {} cores used, L1d {}, "
      "L2 {}, L3 {} shared by {}, SIMD {}",
      m.brand, m.vendor, m.family, m.model, m.stepping, m.threads, m.cores,
      CacheText(m.l1d), CacheText(m.l2), CacheText(m.l3), m.l3.cores_sharing,
      m.targets.empty() ? "none" : m.targets.front());
}

std::string Runs(const Record& record) {
  std::string text =
      "| run | command | noise of equal candidates (p95) | demanded | rounds "
      "(discarded) | quiet | steal | build |\n|---|---|---|---|---|---|---|---|"
      "\n";
  for (const RecordRun& run : record.runs) {
    std::string command = "heed tune";
    for (const std::string& argument : run.argv) command += " " + argument;
    text += fmt::format(
        "| {} | `{}` | {:.1f} % | {:+.1f} % | {} ({}) | {:.0f} % | {:.1f} % | "
        "{} {}, {}, {} |\n",
        run.id, command, run.aa_p95_pct, run.demand_pct, run.rounds,
        run.rounds_discarded, 100 * run.quiet, run.steal_pct,
        run.library_version, run.git, run.compiler, run.build_type);
  }
  return text;
}

std::string Decided(const RecordEntry& entry) {
  switch (entry.decision) {
    case Decision::kAdopted:
      return "**adopted**";
    case Decision::kKeptDefault:
      return "default kept: " + entry.reason;
    case Decision::kQuarantined:
      return "quarantined: " + entry.reason;
  }
  return "";
}

}  // namespace

std::string ReportMarkdown(const ReportData& data) {
  const Record& record = data.record;
  std::string text = fmt::format(
      "# Tuning of {}\n\n{}\n\n{} classes of shapes: {} adopted, {} kept the "
      "default, {} quarantined; geometric mean gain {:+.1f} %.\n\n",
      record.machine_key, Machine1(record.machine), record.entries.size(),
      CountOf(record, Decision::kAdopted),
      CountOf(record, Decision::kKeptDefault),
      CountOf(record, Decision::kQuarantined), 100 * (MeanGain(record) - 1));
  text +=
      "| shape | class | default us | tuned us | gain [95 % interval] | rounds "
      "| "
      "% of peak | configuration | decision |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const ReportClass& c : data.classes) {
    if (c.entry < 0) {
      text += fmt::format("| {} | `{}` | | | | | | | skipped: {} |\n", c.name,
                          c.key, c.skipped);
      continue;
    }
    const RecordEntry& entry = record.entries[static_cast<size_t>(c.entry)];
    const bool adopted = entry.decision == Decision::kAdopted;
    text += fmt::format(
        "| {} | `{}` | {:.1f} | {:.1f} | {} | {} | {:.0f} | `{}.{}` | {} |\n",
        c.name, c.key, entry.default_us, entry.tuned_us,
        adopted ? GainText(entry.gain) : "-", entry.rounds, entry.pct_peak,
        entry.target, ToString(entry.config), Decided(entry));
  }
  std::string guards;
  for (const RecordEntry& entry : record.entries) {
    for (const Guard& guard : entry.guards) {
      guards += fmt::format("| `{}` | `{}` | {} |\n", entry.problem,
                            guard.problem, GainText(guard.gain));
    }
  }
  if (!guards.empty()) {
    text +=
        "\nGuard shapes, which an adopted configuration must not slow down "
        "by 1 %:\n\n| shape | guard | gain [95 % interval] |\n|---|---|---|\n" +
        guards;
  }
  text += "\n" + Runs(record);
  const RecordRun run = NewestRun(record);
  text += fmt::format(
      "\nRoofs, measured in the newest run: {:.1f} GFLOP/s and {:.1f} GB/s on "
      "one thread, {:.1f} GFLOP/s and {:.1f} GB/s on all.\n",
      run.fma_gflops_1t, run.read_gbs_1t, run.fma_gflops_all, run.read_gbs_all);
  if (data.damaged_lines != 0) {
    text += fmt::format("\n{} damaged journal lines were left out.\n",
                        data.damaged_lines);
  }
  return text;
}

}  // namespace heed
