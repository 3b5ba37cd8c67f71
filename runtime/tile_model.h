// The tile heed takes where nothing was measured: arithmetic on cache sizes,
// and the rules every tile has to obey.
#ifndef HEED_RUNTIME_TILE_MODEL_H_
#define HEED_RUNTIME_TILE_MODEL_H_

#include <cstddef>
#include <string>

#include "kernels/kernels.h"
#include "runtime/include/heed.h"
#include "runtime/machine.h"

namespace heed {

// The largest tile that is accepted: beyond these a task's scratch leaves every
// cache. A key tile never reaches past its chunk.
constexpr size_t kMaxRowBlock = 4096;
constexpr size_t kMaxKeyTile = kChunk;

// The model's choice for `threads` threads (0 = machine.threads). Presumes a
// valid problem; always feasible.
Tile ModelTile(const heed_problem& problem, const Kernels& kernels,
               const Machine& machine, int threads = 0);

// Cuts the row block so that whole ones make up a block of the mask's queries,
// if any do: rows of a task then skip the same keys.
void AlignToMaskBlocks(const heed_problem& problem, const Kernels& kernels,
                       Tile* tile);

// The kernels can run this tile as it is.
bool FeasibleTile(const Tile& tile, const heed_problem& problem,
                  const Kernels& kernels);

// A task's scratch fits the L2 and this thread's share of the L3: beyond that
// no tile pays.
bool FitsCaches(const Tile& tile, const heed_problem& problem,
                const Kernels& kernels, const Machine& machine);

// The nearest feasible tile: sizes rounded up to their multiples, cut to the
// limits and to the rows and keys there are; packing switched on where needed.
Tile RoundTile(const Tile& tile, const heed_problem& problem,
               const Kernels& kernels);

// Halves the row block until every thread has several tasks, so that none of
// them waits long for the last one. Never below the kernels' row multiple.
Tile ShareAmongThreads(const Tile& tile, const heed_problem& problem,
                       const Kernels& kernels, int threads);

// Query rows of one kv head, and the row blocks of all kv heads of the batch.
size_t RowsPerKvHead(const heed_problem& problem);
size_t TaskCount(const Tile& tile, const heed_problem& problem);

// e.g. "rb96.kt192.pk0.pv1.pf0"
std::string ToString(const Tile& tile);

}  // namespace heed

#endif  // HEED_RUNTIME_TILE_MODEL_H_
