// `heed info`: what heed knows of this machine, and what it would run on it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/machine.h"
#include "runtime/problem.h"
#include "runtime/record_files.h"
#include "runtime/targets.h"
#include "runtime/tile_model.h"
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

Json TileJson(const Tile& tile) {
  return {{"row_block", tile.row_block},
          {"key_tile", tile.key_tile},
          {"pack_k", static_cast<int>(tile.pack_k)},
          {"pack_v", static_cast<int>(tile.pack_v)},
          {"prefetch", tile.prefetch}};
}

void PrintJson(const Machine& machine, int threads, const RecordSet& records,
               const std::vector<InfoRow>& rows) {
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
    json["records"].push_back(
        {{"path", found.path}, {"same_machine", found.same_machine}});
  }
  json["record_misses"] = records.misses;
  json["shapes"] = Json::array();
  for (const InfoRow& row : rows) {
    json["shapes"].push_back({{"name", row.shape.name},
                              {"problem", row.shape.text},
                              {"tier", TierName(row.choice.tier)},
                              {"tile", TileJson(row.choice.tile)},
                              {"reason", row.choice.reason}});
  }
  // A brand string may hold bytes that are no UTF-8.
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void PrintText(const Machine& machine, int threads, const RecordSet& records,
               const std::vector<InfoRow>& rows) {
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
               found.same_machine ? "this machine" : "a similar machine");
  }
  if (records.records.empty()) fmt::print("record      none\n");
  if (!records.misses.empty()) fmt::print("note        {}\n", records.misses);
  fmt::print("\n{:<22} {:<6} {:<26} {}\n", "shape", "tier", "tile", "problem");
  for (const InfoRow& row : rows) {
    fmt::print("{:<22} {:<6} {:<26} {}\n", row.shape.name,
               TierName(row.choice.tier), ToString(row.choice.tile),
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
    Kernels kernels;
    if (FindTarget(nullptr, KernelDType(shape.problem.dtype), &kernels) !=
        HEED_OK) {
      return FailCommand("info", heed_last_error());
    }
    rows.push_back(
        {shape, ChooseTile(records, shape.problem, kernels, machine, threads)});
  }
  (options.json ? PrintJson : PrintText)(machine, threads, records, rows);
  return kDone;
}

}  // namespace

void AddInfoCommand(CLI::App* app, Action* action) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App* info = app->add_subcommand(
      "info",
      "Print the CPU, its caches and SIMD targets, the threads heed would use, "
      "and for each standard shape the tile and where it comes from: exact "
      "(tuned on this machine), uarch (on a similar one), model (not tuned)");
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
