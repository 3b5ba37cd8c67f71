// `heed tune show`, `compare` and `merge`: records, looked at and put together.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/record_files.h"
#include "tune/commands.h"
#include "tune/merge_records.h"
#include "tune/publish.h"
#include "tune/record_option.h"
#include "tune/report.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

// Configurations this much apart in gain are equally good.
constexpr double kSameGain = 0.015;

struct FilesOptions {
  std::string record, other, output;
  bool json = false, force = false;
};

std::string GainOrDash(const RecordEntry& entry) {
  return entry.decision == Decision::kAdopted ? GainText(entry.gain) : "-";
}

int Show(const FilesOptions& options) {
  const std::string path = FindRecordPath(options.record);
  Record record;
  const int code = ReadRecordOrFail("tune show", path, &record);
  if (code != kDone) return code;
  if (options.json) {
    fmt::print("{}\n", ToJson(record));
    return kDone;
  }
  const Tier tier = TierBetween(record, ThisMachine());
  fmt::print("{}\nmachine {} ({})\nkernels {}, schema {}\n", path,
             record.machine_key,
             tier == Tier::kExact   ? "this machine"
             : tier == Tier::kUarch ? "the same core elsewhere"
             : tier == Tier::kIsa   ? "another core with the same SIMD"
                                    : "of no use on this machine",
             record.kernel_abi, record.schema_version);
  for (const RecordRun& run : record.runs) {
    fmt::print(
        "run     {} by {} ({}, {}), A/A p95 {:.1f} %, {} rounds, {} "
        "discarded\n",
        run.id, run.tool, run.git, run.compiler, run.aa_p95_pct, run.rounds,
        run.rounds_discarded);
  }
  for (const std::string& note : record.notes) fmt::print("note    {}\n", note);
  fmt::print("\n{:<48} {:<13} {:<24} {}\n", "class", "decision",
             "gain [95 % interval]", "configuration");
  for (const RecordEntry& entry : record.entries) {
    fmt::print("{:<48} {:<13} {:<24} {}.{}\n", ToString(entry.shape_class),
               DecisionName(entry.decision), GainOrDash(entry), entry.target,
               ToString(entry.config));
  }
  return kDone;
}

const RecordEntry* FindEntry(const Record& record, const ShapeClass& wanted) {
  for (const RecordEntry& entry : record.entries) {
    if (entry.shape_class == wanted) return &entry;
  }
  return nullptr;
}

// "same" picks, "equal" ones whose gains are within 1.5 %, else "differ".
const char* Agreement(const RecordEntry& a, const RecordEntry& b) {
  if (a.target == b.target && a.config == b.config) return "same";
  const double apart = std::fabs(std::log(a.gain.median / b.gain.median));
  return apart <= std::log1p(kSameGain) ? "equal" : "differ";
}

int Compare(const FilesOptions& options) {
  Record a, b;
  int code = ReadRecordOrFail("tune compare", options.record, &a);
  if (code == kDone) code = ReadRecordOrFail("tune compare", options.other, &b);
  if (code != kDone) return code;
  size_t common = 0, agreed = 0;
  Json rows = Json::array();
  if (!options.json) {
    fmt::print("{:<48} {:<7} {:<24} {:<24} {}\n", "class", "", "gain in A",
               "gain in B", "configurations");
  }
  for (const RecordEntry& entry : a.entries) {
    const RecordEntry* other = FindEntry(b, entry.shape_class);
    if (other == nullptr) continue;
    const char* agreement = Agreement(entry, *other);
    ++common;
    agreed += std::string(agreement) != "differ";
    rows.push_back({{"class", ToString(entry.shape_class)},
                    {"agreement", agreement},
                    {"gain_a", entry.gain.median},
                    {"gain_b", other->gain.median},
                    {"config_a", ToString(entry.config)},
                    {"config_b", ToString(other->config)}});
    if (options.json) continue;
    fmt::print("{:<48} {:<7} {:<24} {:<24} {} | {}\n",
               ToString(entry.shape_class), agreement, GainOrDash(entry),
               GainOrDash(*other), ToString(entry.config),
               ToString(other->config));
  }
  if (options.json) {
    fmt::print("{}\n", Json{{"same_machine", a.machine_key == b.machine_key},
                            {"common", common},
                            {"agreed", agreed},
                            {"only_a", a.entries.size() - common},
                            {"only_b", b.entries.size() - common},
                            {"classes", rows}}
                           .dump(2));
    return kDone;
  }
  fmt::print(
      "{} classes in both, {} of them with the same pick or gains within "
      "{:.1f} %; {} only in A, {} only in B{}\n",
      common, agreed, 100 * kSameGain, a.entries.size() - common,
      b.entries.size() - common,
      a.machine_key == b.machine_key ? "" : "; different machines");
  return kDone;
}

int Merge(const FilesOptions& options) {
  Record older, newer;
  int code = ReadRecordOrFail("tune merge", options.record, &older);
  if (code == kDone) {
    code = ReadRecordOrFail("tune merge", options.other, &newer);
  }
  if (code != kDone) return code;
  if (older.machine_key != newer.machine_key) {
    return FailCommand("tune merge",
                       fmt::format("{} is of {}, {} of {}; expected the same "
                                   "machine",
                                   options.record, older.machine_key,
                                   options.other, newer.machine_key),
                       kBadData);
  }
  const Record merged = MergeRecords(older, newer, options.force);
  std::string why, path;
  if (!WriteRecordFile(options.output, merged, &path, &why,
                       TellNoLocks("tune merge"))) {
    return FailCommand("tune merge", why, kCannotWrite);
  }
  fmt::print("{} and {} entries became {} in {}\n", older.entries.size(),
             newer.entries.size(), merged.entries.size(), path);
  return kDone;
}

}  // namespace

void AddTuneFilesCommands(CLI::App* tune, Action* action) {
  const auto options = std::make_shared<FilesOptions>();
  CLI::App* show = tune->add_subcommand("show", "Print a record");
  show->add_option("record", options->record,
                   "File or folder (default: results/tuning)");
  show->add_flag("--json", options->json, "Print JSON");
  show->callback(
      [options, action] { *action = [options] { return Show(*options); }; });

  CLI::App* compare = tune->add_subcommand(
      "compare", "Print what two records have in common, class by class");
  compare->add_option("a", options->record, "File")->required();
  compare->add_option("b", options->other, "File")->required();
  compare->add_flag("--json", options->json, "Print JSON");
  compare->callback(
      [options, action] { *action = [options] { return Compare(*options); }; });

  CLI::App* merge = tune->add_subcommand(
      "merge",
      "Write what two records of one machine know. Of a class both know, the "
      "newer entry, unless the older one's gain is surely larger and both are "
      "less than a day apart");
  merge->add_option("older", options->record, "File")->required();
  merge->add_option("newer", options->other, "File")->required();
  merge
      ->add_option("--output", options->output,
                   "Folder for <machine key>/record.json")
      ->required()
      ->type_name("DIR");
  merge->add_flag("--force", options->force, "The newer entry always");
  merge->callback(
      [options, action] { *action = [options] { return Merge(*options); }; });
}

}  // namespace heed
