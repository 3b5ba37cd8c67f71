// The comparison's two faces: Markdown and JSON.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/compare.h"
#include "bench/pairs_text.h"

namespace heed {
namespace {

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNotSlower:
      return "not slower";
    case Verdict::kSlower:
      return "slower";
    case Verdict::kInconclusive:
      return "inconclusive";
  }
  return "";
}

}  // namespace

std::string CompareMarkdown(const Provenance& provenance,
                            const std::vector<ComparedShape>& shapes) {
  std::string text = ProvenanceText(provenance);
  text += fmt::format(
      "\nTime of HEAD over that of BASE, of rounds base, head, head, base in "
      "which the canary was within 10 % of its best: the median with its 95 % "
      "interval. HEAD is slower if BASE / HEAD is surely below {}, and is "
      "again in fresh rounds. A/A is the second base call over the first.\n\n"
      "| | threads | target | head / base | confirmation | A/A | base | head | "
      "kept / dropped | |\n|---|---|---|---|---|---|---|---|---|---|\n",
      kSlowerBelow);
  for (const ComparedShape& shape : shapes) {
    const PairSummary s = SummarizePair(shape.row);
    const PairSummary again = SummarizePair(shape.confirmation);
    text += fmt::format("| {} | {} | {} | ", shape.row.name, shape.row.threads,
                        shape.row.target);
    if (s.kept == 0) {
      text += "no quiet round | - | - | - | - | ";
    } else {
      text += fmt::format(
          "{} | {} | {} | {:.3f} ms | {:.3f} ms | ", IntervalText(s.ratio),
          again.kept == 0 ? "-" : IntervalText(again.ratio),
          IntervalText(s.noise), s.base_seconds * 1e3, s.with_seconds * 1e3);
    }
    text += fmt::format("{} / {} | {} |\n", s.kept, s.dropped,
                        NameOf(Judge(shape)));
  }
  return text;
}

std::string CompareJson(const Provenance& provenance,
                        const std::vector<ComparedShape>& shapes) {
  nlohmann::ordered_json json;
  json["schema"] = "heed-bench-compare";
  json["schema_version"] = 1;
  for (const auto& [name, value] : provenance) json[name] = value;
  json["slower_below"] = kSlowerBelow;
  std::vector<nlohmann::ordered_json> rows;
  for (const ComparedShape& shape : shapes) {
    nlohmann::ordered_json row = PairJson(shape.row);
    if (!shape.confirmation.rounds.empty()) {
      row["confirmation"] = PairJson(shape.confirmation);
    }
    row["verdict"] = NameOf(Judge(shape));
    rows.push_back(row);
  }
  return JsonWithRows(json, rows);
}

}  // namespace heed
