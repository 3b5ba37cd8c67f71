// Which tiles are worth a race. Pure: no clock, no files.
#ifndef HEED_TUNE_CANDIDATES_H_
#define HEED_TUNE_CANDIDATES_H_

#include <cstddef>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/include/heed.h"
#include "runtime/machine.h"

namespace heed {

// The default first, then its neighbours, nearest first, at most `max` in all,
// each feasible and none twice. A neighbour differs in row block (half, twice
// or four times), key tile (48 to a whole chunk), packing of k or v, prefetch,
// or in two of these. Tiles whose scratch would not fit the L2 and this
// thread's share of the L3 are left out.
std::vector<Tile> TileCandidates(const heed_problem& problem,
                                 const Kernels& kernels, const Machine& machine,
                                 const Tile& default_tile, size_t max);

}  // namespace heed

#endif  // HEED_TUNE_CANDIDATES_H_
