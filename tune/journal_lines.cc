#include "tune/journal_lines.h"

#include <cmath>

#include "runtime/record_text.h"

namespace heed {
namespace {

// Enough digits for a time, and not seventeen of them.
double Rounded(double value, double unit) {
  return std::isfinite(value) ? std::round(value / unit) * unit : 0;
}

}  // namespace

JournalLine ClassLine(size_t index, const NamedProblem& shape, int threads,
                      const std::vector<Candidate>& candidates,
                      size_t iterations) {
  JournalLine line = {{"kind", "class"},
                      {"class", index},
                      {"name", shape.name},
                      {"problem", shape.text},
                      {"key", ToString(ClassOf(shape.problem, threads))},
                      {"iterations", iterations},
                      {"candidates", JournalLine::array()}};
  for (const Candidate& candidate : candidates) {
    const Config& c = candidate.config;
    line["candidates"].push_back({{"name", ToString(candidate)},
                                  {"row_block", c.tile.row_block},
                                  {"key_tile", c.tile.key_tile},
                                  {"pack_k", static_cast<int>(c.tile.pack_k)},
                                  {"pack_v", static_cast<int>(c.tile.pack_v)},
                                  {"prefetch", c.tile.prefetch}});
  }
  return line;
}

JournalLine RoundLine(size_t index, const std::string& phase,
                      const std::vector<size_t>& numbers, const Round& round) {
  JournalLine order = JournalLine::array();
  JournalLine ns = JournalLine::array();
  JournalLine canary = JournalLine::array();
  for (size_t i = 0; i < round.order.size(); ++i) {
    order.push_back(numbers[round.order[i]]);
    ns.push_back(std::llround(
        std::isfinite(round.seconds[i]) ? 1e9 * round.seconds[i] : -1));
    canary.push_back(Rounded(1e12 * round.canary[i], 0.1));
  }
  JournalLine line = {{"kind", "round"},    {"class", index},
                      {"phase", phase},     {"t", Rounded(round.start, 1e-3)},
                      {"order", order},     {"ns", ns},
                      {"canary_ps", canary}};
  if (round.steal > 0) line["steal"] = Rounded(round.steal, 1e-3);
  if (round.pressure > 0) line["psi"] = Rounded(round.pressure, 1e-3);
  if (round.discarded[0] != 0) line["discarded"] = round.discarded;
  return line;
}

JournalLine NoiseLine(const Noise& noise) {
  return {{"kind", "noise"},
          {"rounds", noise.rounds},
          {"p95", noise.p95},
          {"deviation", noise.deviation},
          {"bias", noise.bias}};
}

JournalLine LeftOutLine(size_t index, const Candidate& candidate,
                        const std::string& why) {
  return {{"kind", "left_out"},
          {"class", index},
          {"name", ToString(candidate)},
          {"why", why}};
}

JournalLine EntryLine(size_t index, const RecordEntry& entry) {
  return {{"kind", "entry"},
          {"class", index},
          {"key", ToString(entry.shape_class)},
          {"entry", EntryToJson(entry)}};
}

JournalLine SkippedLine(size_t index, const std::string& problem,
                        const std::string& why) {
  return {{"kind", "skipped"},
          {"class", index},
          {"problem", problem},
          {"why", why}};
}

}  // namespace heed
