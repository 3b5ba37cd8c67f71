// Which configuration a plan gets: a measured one where there is one, else the
// model's.
#ifndef HEED_RUNTIME_TILE_CHOICE_H_
#define HEED_RUNTIME_TILE_CHOICE_H_

#include <string>

#include "kernels/kernels.h"
#include "runtime/config.h"
#include "runtime/include/heed.h"
#include "runtime/machine.h"
#include "runtime/record_files.h"
#include "runtime/shape_class.h"

namespace heed {

struct TileChoice {
  Tile tile;
  Cut cut;
  Tier tier = Tier::kAnalytical;
  // What was looked for and where; null records: nothing was.
  ShapeClass shape_class;
  const RecordSet* records = nullptr;
  const Hit* hit = nullptr;  // the entry in use; null: none
  const char* why = "";      // where no record was asked

  Config config() const { return {tile, cut}; }
};

// The entry for a valid problem, or null.
const Hit* FindHit(const RecordSet& records, const heed_problem& problem,
                   int threads);

// The tile for a valid problem, of the entry in `hit` if it was measured on the
// kernels' target, else of the model. Nothing is built or read.
TileChoice ChooseTile(const RecordSet& records, const Hit* hit,
                      const heed_problem& problem, const Kernels& kernels,
                      const Machine& machine, int threads);

// The same with FindHit().
TileChoice ChooseTile(const RecordSet& records, const heed_problem& problem,
                      const Kernels& kernels, const Machine& machine,
                      int threads);

// The class and the path of the entry; empty if there is none.
std::string EntryOf(const TileChoice& choice);

// One line: where the tile comes from, and if from the model, why and what to
// do about it.
std::string ReasonOf(const TileChoice& choice);

}  // namespace heed

#endif  // HEED_RUNTIME_TILE_CHOICE_H_
