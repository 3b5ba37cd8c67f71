// `heed info`: what heed knows of this machine, and what it would run on it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/machine.h"
#include "runtime/plan.h"
#include "runtime/record_files.h"
#include "runtime/targets.h"
#include "runtime/tile_choice.h"
#include "tune/commands.h"
#include "tune/shapes.h"

namespace heed {
namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
  bool json = false;
  int threads = 0;
};

struct InfoRow {
  NamedProblem shape;
  TileChoice choice;
};

std::string SizeText(size_t bytes) {
  if (bytes == 0) return "unknown";
  if (bytes % (1 << 20) == 0) return fmt::format("{} MB", bytes >> 20);
  return fmt::format("{} KB", bytes >> 10);
}

std::string CacheText(const Cache& cache) {
  std::string text = SizeText(cache.bytes);
  if (cache.ways != 0) text += fmt::format(", {} ways", cache.ways);
  if (cache.cores_sharing > 1) {
    text += fmt::format(", shared by {}", cache.cores_sharing);
  }
  return text;
}

Json CacheJson(const Cache& cache) {
  return {{"bytes", cache.bytes},
          {"ways", cache.ways},
          {"cores_sharing", cache.cores_sharing}};
}

Json ConfigJson(const Config& config) {
  return {{"row_block", config.tile.row_block},
          {"key_tile", config.tile.key_tile},
          {"pack_k", static_cast<int>(config.tile.pack_k)},
          {"pack_v", static_cast<int>(config.tile.pack_v)},
          {"prefetch", config.tile.prefetch},
          {"tasks_per_thread", config.cut.tasks_per_worker},
          {"decode_rows", config.cut.decode_rows}};
}

void PrintInfoJson(const Machine& machine, int threads,
                   const RecordSet& records, const std::vector<InfoRow>& rows) {
  Json json = {{"version", heed_version()},
               {"machine_key", MachineKey(machine)},
               {"cpu",
                {{"vendor", machine.vendor},
                 {"family", machine.family},
                 {"model", machine.model},
                 {"stepping", machine.stepping},
                 {"brand", machine.brand}}},
               {"caches",
                {{"source", machine.cache_source},
                 {"l1d", CacheJson(machine.l1d)},
                 {"l2", CacheJson(machine.l2)},
                 {"l3", CacheJson(machine.l3)}}},
               {"targets", machine.targets},
               {"cores", machine.cores},
               {"threads", threads}};
  json["records"] = Json::array();
  for (const FoundRecord& found : records.records) {
    json["records"].push_back({{"path", found.path},
                               {"tier", TierName(found.tier)},
                               {"same_machine", found.tier == Tier::kExact},
                               {"entries", found.record.entries.size()}});
  }
  json["record_notes"] = records.notes;
  json["shapes"] = Json::array();
  for (const InfoRow& row : rows) {
    json["shapes"].push_back({{"name", row.shape.name},
                              {"problem", row.shape.text},
                              {"tier", TierName(row.choice.tier)},
                              {"tile", ConfigJson(row.choice.config())},
                              {"entry", EntryOf(row.choice)},
                              {"reason", ReasonOf(row.choice)}});
  }
  // A brand string may hold bytes that are no UTF-8.
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void PrintInfoText(const Machine& machine, int threads,
                   const RecordSet& records, const std::vector<InfoRow>& rows) {
  fmt::print("heed {}\n\n", heed_version());
  fmt::print("CPU         {} ({}, family {}, model {}, stepping {})\n",
             machine.brand, machine.vendor, machine.family, machine.model,
             machine.stepping);
  fmt::print("L1d         {}\n", CacheText(machine.l1d));
  fmt::print("L2          {}\n", CacheText(machine.l2));
  fmt::print("L3          {}\n", CacheText(machine.l3));
  fmt::print("caches from {}\n", machine.cache_source);
  fmt::print("targets     {} (the first is used)\n", RunnableTargetNames());
  fmt::print("threads     {} of {} cores\n", threads, machine.cores);
  fmt::print("machine key {}\n", MachineKey(machine));
  for (const FoundRecord& found : records.records) {
    fmt::print("record      {} ({})\n", found.path,
               found.tier == Tier::kExact   ? "this machine"
               : found.tier == Tier::kUarch ? "the same core elsewhere"
                                            : "another core, same SIMD");
  }
  if (records.records.empty()) fmt::print("record      none\n");
  for (const std::string& note : records.notes) {
    fmt::print("note        {}\n", note);
  }
  fmt::print("\n{:<22} {:<10} {:<28} {:<44} {}\n", "shape", "tier", "tile",
             "entry", "problem");
  for (const InfoRow& row : rows) {
    const Hit* hit = row.choice.hit;
    fmt::print("{:<22} {:<10} {:<28} {:<44} {}\n", row.shape.name,
               TierName(row.choice.tier), ToString(row.choice.config()),
               hit == nullptr ? "-" : ToString(hit->entry->shape_class),
               row.shape.text);
  }
}

int RunInfo(const InfoOptions& options) {
  const Machine& machine = ThisMachine();
  const RecordSet& records = ProcessRecords();
  const int threads = options.threads > 0 ? options.threads : machine.threads;
  std::vector<NamedProblem> shapes;
  std::string why;
  if (!ParseShapeList("all", &shapes, &why)) return FailCommand("info", why);
  std::vector<InfoRow> rows;
  for (const NamedProblem& shape : shapes) {
    // A plan, so that what is shown is what would run.
    heed_options heed;
    heed_options_init(&heed);
    heed.threads = threads;
    heed_plan* plan = nullptr;
    if (heed_plan_create(&shape.problem, &heed, &plan) != HEED_OK) {
      return FailCommand("info", heed_last_error());
    }
    rows.push_back({shape, plan->choice});
    heed_plan_destroy(plan);
  }
  (options.json ? PrintInfoJson : PrintInfoText)(machine, threads, records,
                                                 rows);
  return kDone;
}

}  // namespace

void AddInfoCommand(CLI::App* app, Action* action) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App* info = app->add_subcommand(
      "info",
      "Print the CPU, its caches and SIMD targets, the threads heed would use, "
      "and for each standard shape the tile and which entry of which record it "
      "comes from: exact (tuned on this machine), uarch (on the same core "
      "elsewhere), isa (on "
      "another core, for its SIMD target only), analytical (the model's)");
  info->add_flag("--json", options->json, "Print JSON");
  info->add_option("--threads", options->threads,
                   "Show the tiles for this many threads (default: what "
                   "affinity and quota allow)")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  info->callback(
      [options, action] { *action = [options] { return RunInfo(*options); }; });
}

}  // namespace heed
