#include "runtime/tile_choice.h"

#include <cstring>

#include "runtime/tile_model.h"

namespace heed {
namespace {

// The entry's configuration for this problem; false if it cannot be run here.
bool TakeEntry(const Hit& hit, const heed_problem& problem,
               const Kernels& kernels, const Machine& machine, int threads,
               TileChoice* choice) {
  const RecordEntry& entry = *hit.entry;
  const bool used = entry.decision != Decision::kQuarantined;
  if ((used ? entry.target : entry.default_target) != kernels.target) {
    choice->why = "the entry is for another SIMD target";
    return false;
  }
  choice->tier = hit.tier;
  if (hit.tier == Tier::kIsa) return true;  // the target was all
  const Config& config = used ? entry.config : entry.default_config;
  Tile tile = RoundTile(config.tile, problem, kernels);
  Cut cut = config.cut;
  if (entry.shape_class.threads != threads) {
    tile = ShareAmongThreads(tile, problem, kernels, threads);
    cut.tasks_per_worker = kTasksPerWorker;
  }
  if (!FitsCaches(tile, problem, kernels, machine)) {
    choice->why = "the entry's tile leaves the caches of this machine";
    choice->tier = Tier::kAnalytical;
    return false;
  }
  choice->tile = tile;
  choice->cut = cut;
  return true;
}

}  // namespace

const Hit* FindHit(const RecordSet& records, const heed_problem& problem,
                   int threads) {
  return records.index.Find(ClassOf(problem, threads));
}

TileChoice ChooseTile(const RecordSet& records, const Hit* hit,
                      const heed_problem& problem, const Kernels& kernels,
                      const Machine& machine, int threads) {
  TileChoice choice;
  choice.records = &records;
  choice.shape_class = ClassOf(problem, threads);
  choice.tile = ModelTile(problem, kernels, machine, threads);
  if (hit != nullptr &&
      TakeEntry(*hit, problem, kernels, machine, threads, &choice)) {
    choice.hit = hit;
  }
  return choice;
}

TileChoice ChooseTile(const RecordSet& records, const heed_problem& problem,
                      const Kernels& kernels, const Machine& machine,
                      int threads) {
  return ChooseTile(records, FindHit(records, problem, threads), problem,
                    kernels, machine, threads);
}

std::string EntryOf(const TileChoice& choice) {
  if (choice.hit == nullptr) return "";
  return ToString(choice.hit->entry->shape_class) + " of " +
         choice.hit->found->path;
}

std::string ReasonOf(const TileChoice& choice) {
  if (choice.hit != nullptr) {
    const RecordEntry& entry = *choice.hit->entry;
    std::string text =
        std::string(DecisionName(entry.decision)) + " " + EntryOf(choice);
    if (choice.tier == Tier::kUarch) {
      text += ", measured on " +
              (choice.hit->found->tier == Tier::kExact
                   ? std::to_string(entry.shape_class.threads) + " threads"
                   : choice.hit->found->record.machine_key);
    }
    if (choice.tier == Tier::kIsa) {
      text += ", of which only the SIMD target is used here";
    }
    return text;
  }
  if (choice.records == nullptr) return choice.why;
  if (choice.records->off) return "HEED_TUNE=off";
  std::string text = "no entry for " + ToString(choice.shape_class);
  if (choice.why[0] != 0) text = choice.why;
  for (const std::string& note : choice.records->notes) text += "; " + note;
  return text;
}

}  // namespace heed
