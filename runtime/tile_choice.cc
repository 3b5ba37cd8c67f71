// ChooseTile(): a measured tile where there is one, else the model's.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/record_files.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

struct Match {
  const RecordEntry* entry = nullptr;
  const FoundRecord* found = nullptr;
  bool same_threads = false;
};

// The entry of the nearest thread count; the wanted one first.
const RecordEntry* FindForAnyThreads(const Record& record,
                                     const ShapeClass& wanted,
                                     const std::string& target) {
  const RecordEntry* best = nullptr;
  for (const RecordEntry& entry : record.entries) {
    const int threads = entry.shape_class.threads;
    if (best != nullptr &&
        std::abs(threads - wanted.threads) >=
            std::abs(best->shape_class.threads - wanted.threads)) {
      continue;
    }
    ShapeClass other = wanted;
    other.threads = threads;
    if (const RecordEntry* match = Find(record, other, target)) best = match;
  }
  return best;
}

// Records stand best first. An entry for our number of threads in any of them
// comes before one for another number: the row block depends on it.
Match FindEntry(const RecordSet& records, const ShapeClass& wanted,
                const std::string& target) {
  for (const FoundRecord& found : records.records) {
    if (const RecordEntry* entry = Find(found.record, wanted, target)) {
      return {entry, &found, true};
    }
  }
  for (const FoundRecord& found : records.records) {
    if (const RecordEntry* entry =
            FindForAnyThreads(found.record, wanted, target)) {
      return {entry, &found, false};
    }
  }
  return {};
}

TileChoice FromModel(const RecordSet& records, const heed_problem& problem,
                     const Kernels& kernels, const Machine& machine,
                     int threads) {
  TileChoice choice;
  choice.tile = ModelTile(problem, kernels, machine, threads);
  choice.tier = Tier::kModel;
  choice.reason = "no entry for " + ToString(ClassOf(problem, threads)) +
                  " on " + kernels.target;
  if (!records.misses.empty()) choice.reason += "; " + records.misses;
  return choice;
}

TileChoice FromEntry(const Match& match, const heed_problem& problem,
                     const Kernels& kernels, int threads) {
  TileChoice choice;
  choice.tile = RoundTile(match.entry->tile, problem, kernels);
  const bool exact = match.found->same_machine && match.same_threads;
  choice.tier = exact ? Tier::kExact : Tier::kUarch;
  if (!match.same_threads) {
    choice.tile = ShareAmongThreads(choice.tile, problem, kernels, threads);
  }
  choice.reason =
      ToString(match.entry->shape_class) + " of " + match.found->path;
  return choice;
}

void Report(const heed_problem& problem, const TileChoice& choice) {
  const char* verbose = std::getenv("HEED_TUNE_VERBOSE");
  if (verbose == nullptr || std::strcmp(verbose, "1") != 0) return;
  char text[256];
  heed_problem_print(&problem, text, sizeof text);
  std::fprintf(stderr, "heed: %s tile=%s tier=%s (%s)\n", text,
               ToString(choice.tile).c_str(), TierName(choice.tier),
               choice.reason.c_str());
}

}  // namespace

const char* TierName(Tier tier) {
  switch (tier) {
    case Tier::kPinned:
      return "pinned";
    case Tier::kExact:
      return "exact";
    case Tier::kUarch:
      return "uarch";
    case Tier::kModel:
      return "model";
  }
  return "unknown";
}

TileChoice ChooseTile(const RecordSet& records, const heed_problem& problem,
                      const Kernels& kernels, const Machine& machine,
                      int threads) {
  const Match match =
      FindEntry(records, ClassOf(problem, threads), kernels.target);
  const TileChoice choice =
      match.entry == nullptr
          ? FromModel(records, problem, kernels, machine, threads)
          : FromEntry(match, problem, kernels, threads);
  Report(problem, choice);
  return choice;
}

}  // namespace heed
