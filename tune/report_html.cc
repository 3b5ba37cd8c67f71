// The tuning report as one page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tune/budget.h"
#include "tune/merge_records.h"
#include "tune/report.h"
#include "tune/report_data.h"
#include "tune/report_plots.h"
#include "tune/statistics.h"
#include "tune/svg.h"

namespace heed {
namespace {

// Colours have names, and dark pages give the names other colours.
const char kStyle[] = R"css(
:root{color-scheme:light dark;--bg:#fbfaf7;--card:#fff;--ink:#22262b;--dim:#69707a;--line:#e4e1d9;
--blue:#2563ab;--warm:#c2571a;--good:#2b8a5f;--bad:#b8324f;--shade:#f3f1ea}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--card:#1c2026;--ink:#e7e9ec;--dim:#969ea9;
--line:#2e343c;--blue:#6fb1f5;--warm:#f0985a;--good:#5cc795;--bad:#f0718b;--shade:#232830}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",
"Helvetica Neue",Arial,sans-serif}
main{max-width:1080px;margin:0 auto;padding:40px 24px 64px}
h1{font-size:30px;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:20px;margin:44px 0 10px;letter-spacing:-.005em}
h3{font-size:16px;margin:0}
p{margin:6px 0;max-width:76ch}
.dim{color:var(--dim)}.mono,code{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,monospace;font-size:12.5px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:22px 0}
.card,.class{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px}
.card b{display:block;font-size:24px;font-weight:600;letter-spacing:-.01em}
.card span{color:var(--dim);font-size:13px}
.class{margin:14px 0;padding:16px 18px}
.head{display:flex;gap:10px;align-items:baseline;flex-wrap:wrap}
.chip{font-size:12px;border-radius:99px;padding:1px 10px;border:1px solid var(--line);color:var(--dim)}
.chip.yes{color:var(--good);border-color:var(--good)}.chip.no{color:var(--bad);border-color:var(--bad)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:14px;margin-top:10px}
.plot{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px;overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th{text-align:left;color:var(--dim);font-weight:500}
td.mono{overflow-wrap:anywhere;min-width:10em}
th,td{padding:5px 12px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--ink);font-size:12px}
svg .tick,svg .note{fill:var(--dim);font-size:11px}svg .small{fill:var(--dim);font-size:10.5px}
svg .label{font-size:13px}svg .value{font-size:12px;font-weight:600}svg .cell{font-size:11.5px}
svg line,svg path{fill:none;stroke:var(--line);stroke-width:1}
svg .zero{stroke:var(--dim)}svg .demand{stroke:var(--warm);stroke-dasharray:4 3}
svg .split{stroke:var(--dim);stroke-dasharray:2 3}
svg .whisker{stroke:var(--ink);stroke-width:1.5}
svg .gain{fill:var(--good)}svg .hot{fill:var(--good)}svg .cold{fill:var(--warm)}
svg .none{fill:var(--dim)}svg .quiet{fill:var(--good)}
svg .kept{fill:var(--dim)}svg .point{fill:var(--blue)}
svg .roof{stroke:var(--ink);stroke-width:2}svg .roof1{stroke:var(--dim);stroke-width:1.5;stroke-dasharray:5 4}
svg .runner{stroke:var(--dim);stroke-opacity:.45}svg .finalist{stroke:var(--blue);stroke-width:2}
svg .out{fill:var(--dim)}svg .dot{fill:var(--blue);fill-opacity:.55}
svg .aa{fill:var(--good);fill-opacity:.6}svg .drop{fill:var(--bad);fill-opacity:.8}
.key{display:flex;gap:18px;flex-wrap:wrap;font-size:12.5px;color:var(--dim);margin:4px 0 0}
.key i{display:inline-block;width:10px;height:10px;border-radius:99px;margin-right:6px}
)css";

std::string Card(const std::string& value, const std::string& what) {
  return "<div class=\"card\"><b>" + Escaped(value) + "</b><span>" +
         Escaped(what) + "</span></div>\n";
}

std::string Plot(const std::string& svg) {
  return svg.empty() ? "" : "<div class=\"plot\">" + svg + "</div>\n";
}

std::string Head(const ReportData& data) {
  const Record& record = data.record;
  const Machine& m = record.machine;
  const RecordRun run = NewestRun(record);
  const size_t adopted = CountOf(record, Decision::kAdopted);
  const int64_t seconds = ParseUtc(run.ended) - ParseUtc(run.started);
  std::string text = fmt::format(
      "<h1>{}</h1>\n<p class=\"dim\">{} threads of {} cores &middot; {} "
      "&middot; "
      "L1d {}, L2 {}, L3 {} shared by {} &middot; <span "
      "class=\"mono\">{}</span>"
      "</p>\n",
      Escaped(m.brand.empty() ? m.vendor : m.brand), m.threads, m.cores,
      Escaped(m.targets.empty() ? "no SIMD" : m.targets.front()),
      CacheText(m.l1d), CacheText(m.l2), CacheText(m.l3), m.l3.cores_sharing,
      Escaped(record.machine_key));
  text += fmt::format(
      "<p>Of {} classes of shapes, {} run faster in a configuration that was "
      "measured here than in the model's choice{}; the others keep it, because "
      "nothing was surely better. No configuration changes a result.</p>\n",
      record.entries.size(), adopted,
      adopted == 0 ? std::string()
                   : fmt::format(", by {:.1f} % over all classes",
                                 100 * (MeanGain(record) - 1)));
  text += "<div class=\"cards\">\n";
  text += Card(fmt::format("{} of {}", adopted, record.entries.size()),
               "classes with a faster configuration");
  double best = 1;
  for (const RecordEntry& entry : record.entries) {
    if (entry.decision == Decision::kAdopted) {
      best = std::max(best, entry.gain.median);
    }
  }
  text += Card(fmt::format("{:+.1f} %", 100 * (best - 1)), "largest gain");
  text += Card(fmt::format("{:.1f} %", run.aa_p95_pct),
               "noise: what equal candidates differ by in one round of twenty");
  text += Card(fmt::format("{:+.1f} %", run.demand_pct),
               "demanded of a gain's lower bound");
  text += Card(fmt::format("{:.0f} %", 100 * run.quiet),
               "of samples found the machine quiet");
  if (seconds >= 0) {
    // "2026-01-02T03:04:05Z" to the day.
    text += Card(DurationText(static_cast<double>(seconds)),
                 "of measuring, on " + run.ended.substr(0, 10));
  }
  return text + "</div>\n";
}

std::string ClassCard(const ReportData& data, const ReportClass& c) {
  const RecordEntry* entry =
      c.entry < 0 ? nullptr
                  : &data.record.entries[static_cast<size_t>(c.entry)];
  const bool adopted =
      entry != nullptr && entry->decision == Decision::kAdopted;
  std::string text = "<div class=\"class\"><div class=\"head\"><h3>" +
                     Escaped(c.name) + "</h3>";
  if (entry == nullptr) {
    return text + "<span class=\"chip\">skipped</span></div><p class=\"dim\">" +
           Escaped(c.skipped) + "</p></div>\n";
  }
  text +=
      fmt::format("<span class=\"chip{}\">{}</span>",
                  adopted                                     ? " yes"
                  : entry->decision == Decision::kQuarantined ? " no"
                                                              : "",
                  adopted ? Escaped(GainText(entry->gain))
                  : entry->decision == Decision::kQuarantined ? "quarantined"
                                                              : "default kept");
  text += "<span class=\"mono dim\">" + Escaped(c.key) + "</span></div>\n";
  text += fmt::format("<p>{:.1f} &micro;s with the default <code>{}.{}</code>",
                      entry->default_us, Escaped(entry->default_target),
                      ToString(entry->default_config));
  if (adopted) {
    text += fmt::format(", {:.1f} &micro;s with <code>{}.{}</code>",
                        entry->tuned_us, Escaped(entry->target),
                        ToString(entry->config));
  }
  text += fmt::format(
      "; {:.0f} % of the FMA peak; {} candidates, {} fresh "
      "rounds.",
      entry->pct_peak, entry->candidates, entry->rounds);
  if (!adopted && !entry->reason.empty()) {
    text += " Kept because " + Escaped(entry->reason) + ".";
  }
  text += "</p>\n";
  for (const Guard& guard : entry->guards) {
    text += "<p class=\"dim\">Guard <code>" + Escaped(guard.problem) +
            "</code>: " + Escaped(GainText(guard.gain)) + "</p>\n";
  }
  const std::string map = HeatMap(c), race = RacePlot(c, entry);
  if (!map.empty() || !race.empty()) {
    text += "<div class=\"pair\"><div>" + race + "</div><div>" + map +
            "</div></div>\n";
  }
  return text + "</div>\n";
}

std::string Meanwhile(const ReportData& data) {
  const std::string plot = NoisePlot(data);
  if (plot.empty()) return "";
  size_t dropped = 0;
  for (const ReportRound& round : data.timeline) {
    dropped += !round.discarded.empty();
  }
  std::string text = fmt::format(
      "<h2>The machine meanwhile</h2>\n<p>A canary of loads, stores and "
      "arithmetic runs before each sample: a neighbour on the core slows it as "
      "it slows attention. {} of {} rounds were discarded and run again.",
      dropped, data.timeline.size());
  if (!data.aa_ratios.empty()) {
    const Interval aa = MedianInterval(data.aa_ratios, 0.05);
    text += fmt::format(
        " Before the race the default ran against itself: "
        "{:+.2f} % [{:+.2f}, {:+.2f}] in {} rounds.",
        100 * (aa.median - 1), 100 * (aa.low - 1), 100 * (aa.high - 1),
        data.aa_ratios.size());
  }
  return text + "</p>\n" + Plot(plot) +
         "<div class=\"key\"><span><i style=\"background:var(--good)\"></i>the "
         "default against itself</span><span><i style=\"background:var(--blue)"
         "\"></i>races</span><span><i style=\"background:var(--bad)\"></i>"
         "discarded</span></div>\n";
}

std::string Provenance(const Record& record) {
  std::string text =
      "<h2>Where this comes from</h2>\n<div class=\"plot\"><table><tr><th>run"
      "</th><th>command</th><th class=\"n\">rounds</th><th class=\"n\">"
      "discarded</th><th class=\"n\">steal</th><th class=\"n\">pressure</th>"
      "<th>build</th></tr>\n";
  for (const RecordRun& run : record.runs) {
    std::string command = "heed tune";
    for (const std::string& argument : run.argv) command += " " + argument;
    text += fmt::format(
        "<tr><td class=\"mono\">{}</td><td class=\"mono\">{}</td><td "
        "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1f} "
        "%</td>"
        "<td class=\"n\">{:.0f} %</td><td>{} {}, {}, {}, Highway {}, oneTBB "
        "{}, "
        "{}</td></tr>\n",
        Escaped(run.id), Escaped(command), run.rounds, run.rounds_discarded,
        run.steal_pct, run.psi_cpu_some_pct, Escaped(run.library_version),
        Escaped(run.git), Escaped(run.compiler), Escaped(run.build_type),
        Escaped(run.highway), Escaped(run.tbb), Escaped(run.os));
  }
  return text + "</table></div>\n";
}

}  // namespace

std::string ReportHtml(const ReportData& data) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<title>heed: tuning of " +
      Escaped(data.record.machine_key) + "</title>\n<style>" + kStyle +
      "</style></head><body><main>\n" + Head(data);
  text +=
      "<h2>Gains</h2>\n<p>How much longer the default takes than what was "
      "adopted: the median of paired rounds, and the interval that holds it "
      "with 95 % confidence. Grey: the default is kept.</p>\n" +
      Plot(GainPlot(data));
  const std::string roofline = RooflinePlot(data);
  if (!roofline.empty()) {
    text +=
        "<h2>Against the machine's limits</h2>\n<p>The roofs were measured "
        "in the same run. Blue: as tuned; grey: the default.</p>\n" +
        Plot(roofline);
  }
  text +=
      "<h2>Class by class</h2>\n<p>Left, the race: a line is a candidate, "
      "blue ones came to the final, whose rounds are fresh. Right, the best "
      "gain in per cent that the search saw for a row block and a key tile; "
      "green is faster than the default.</p>\n";
  for (const ReportClass& c : data.classes) text += ClassCard(data, c);
  text += Meanwhile(data) + Provenance(data.record);
  if (data.damaged_lines != 0) {
    text += fmt::format(
        "<p class=\"dim\">{} damaged journal lines were left "
        "out.</p>\n",
        data.damaged_lines);
  }
  return text + "</main></body></html>\n";
}

}  // namespace heed
