#include "tune/candidates.h"

#include <algorithm>
#include <cmath>

#include "runtime/plan.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

// Most fields that a neighbour may differ in. Three would make the set larger
// than a race can afford.
constexpr int kMaxChangedFields = 2;

struct Ranked {
  Tile tile;
  double distance;
};

// Octaves between the sizes plus one per other field that differs, plus a
// penalty of one per field: single changes come before pairs.
double DistanceTo(const Tile& a, const Tile& b, int* changed_fields) {
  const auto octaves = [](size_t x, size_t y) {
    return std::fabs(
        std::log2(static_cast<double>(x) / static_cast<double>(y)));
  };
  *changed_fields = (a.row_block != b.row_block) + (a.key_tile != b.key_tile) +
                    (a.pack_k != b.pack_k) + (a.pack_v != b.pack_v) +
                    (a.prefetch != b.prefetch);
  return octaves(a.row_block, b.row_block) + octaves(a.key_tile, b.key_tile) +
         (a.pack_k != b.pack_k) + (a.pack_v != b.pack_v) +
         (a.prefetch != b.prefetch) + 2.0 * *changed_fields;
}

size_t MaxScratchBytes(const Machine& machine) {
  const auto sharing =
      static_cast<size_t>(std::max(machine.l3.cores_sharing, 1));
  return machine.l2.bytes + machine.l3.bytes / sharing;
}

}  // namespace

std::vector<Tile> TileCandidates(const heed_problem& problem,
                                 const Kernels& kernels, const Machine& machine,
                                 const Tile& default_tile, size_t max) {
  const size_t block = default_tile.row_block;
  const size_t max_scratch = MaxScratchBytes(machine);
  std::vector<Tile> tiles = {default_tile};
  // A decode uses no tile.
  if (RowsPerKvHead(problem) <= kDecodeRows) return tiles;
  std::vector<Ranked> neighbours;
  for (const size_t row_block : {block, block / 2, block * 2, block * 4}) {
    for (const size_t key_tile :
         {default_tile.key_tile, size_t{48}, size_t{96}, size_t{144},
          size_t{192}, size_t{288}, size_t{384}, size_t{768}}) {
      for (int flags = 0; flags < 18; ++flags) {
        Tile tile;
        tile.row_block = row_block;
        tile.key_tile = key_tile;
        tile.pack_k = static_cast<Pack>(flags % 3);
        tile.pack_v = static_cast<Pack>(flags / 3 % 3);
        tile.prefetch = flags >= 9;
        tile = RoundTile(tile, problem, kernels);
        int changed_fields = 0;
        const double distance = DistanceTo(tile, default_tile, &changed_fields);
        if (changed_fields == 0 || changed_fields > kMaxChangedFields) continue;
        if (!FeasibleTile(tile, problem, kernels)) continue;
        const size_t scratch =
            kernels.scratch_bytes(tile, static_cast<size_t>(problem.dim_qk),
                                  static_cast<size_t>(problem.dim_v));
        if (scratch > max_scratch) continue;
        const auto same = [&tile](const Ranked& r) { return r.tile == tile; };
        if (std::none_of(neighbours.begin(), neighbours.end(), same)) {
          neighbours.push_back({tile, distance});
        }
      }
    }
  }
  std::stable_sort(
      neighbours.begin(), neighbours.end(),
      [](const Ranked& a, const Ranked& b) { return a.distance < b.distance; });
  for (const Ranked& neighbour : neighbours) {
    if (tiles.size() >= max) break;
    tiles.push_back(neighbour.tile);
  }
  return tiles;
}

}  // namespace heed
