#include "tune/candidates.h"

#include <algorithm>
#include <cmath>

#include "runtime/targets.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

// Most fields that a neighbour may differ in. Three would make the set larger
// than a race can afford.
constexpr int kMaxChangedFields = 2;

struct Ranked {
  Candidate candidate;
  double distance;
};

double Octaves(size_t x, size_t y) {
  return std::fabs(std::log2(static_cast<double>(std::max<size_t>(x, 1)) /
                             static_cast<double>(std::max<size_t>(y, 1))));
}

// Octaves between the sizes plus one per other field that differs, plus a
// penalty of two per field: single changes come before pairs.
double DistanceTo(const Candidate& a, const Candidate& b, int* changed_fields) {
  const Tile &x = a.config.tile, &y = b.config.tile;
  const Cut &v = a.config.cut, &w = b.config.cut;
  *changed_fields = (x.row_block != y.row_block) + (x.key_tile != y.key_tile) +
                    (x.pack_k != y.pack_k) + (x.pack_v != y.pack_v) +
                    (x.prefetch != y.prefetch) + (a.target != b.target) +
                    (v.tasks_per_worker != w.tasks_per_worker) +
                    (v.decode_rows != w.decode_rows);
  return Octaves(x.row_block, y.row_block) + Octaves(x.key_tile, y.key_tile) +
         (x.pack_k != y.pack_k) + (x.pack_v != y.pack_v) +
         (x.prefetch != y.prefetch) + (a.target != b.target) +
         Octaves(v.tasks_per_worker, w.tasks_per_worker) +
         (v.decode_rows != w.decode_rows) + 2.0 * *changed_fields;
}

// Collects what may run.
class Neighbours {
 public:
  Neighbours(const heed_problem& problem, const Machine& machine,
             const Candidate& origin)
      : problem_(problem), machine_(machine), origin_(origin) {}

  void Add(Candidate candidate, const Kernels& kernels) {
    Tile& tile = candidate.config.tile;
    tile = RoundTile(tile, problem_, kernels);
    int changed_fields = 0;
    const double distance = DistanceTo(candidate, origin_, &changed_fields);
    if (changed_fields == 0 || changed_fields > kMaxChangedFields) return;
    if (!FeasibleTile(tile, problem_, kernels)) return;
    if (!FitsCaches(tile, problem_, kernels, machine_)) return;
    const auto same = [&candidate](const Ranked& r) {
      return r.candidate == candidate;
    };
    if (std::none_of(ranked_.begin(), ranked_.end(), same)) {
      ranked_.push_back({candidate, distance});
    }
  }

  std::vector<Candidate> Nearest(size_t max) {
    std::stable_sort(ranked_.begin(), ranked_.end(),
                     [](const Ranked& a, const Ranked& b) {
                       return a.distance < b.distance;
                     });
    std::vector<Candidate> nearest = {origin_};
    for (const Ranked& ranked : ranked_) {
      if (nearest.size() >= max) break;
      nearest.push_back(ranked.candidate);
    }
    return nearest;
  }

 private:
  const heed_problem& problem_;
  const Machine& machine_;
  const Candidate& origin_;
  std::vector<Ranked> ranked_;
};

void AddTiles(const Candidate& origin, const Kernels& kernels,
              Neighbours* neighbours) {
  const size_t block = origin.config.tile.row_block;
  for (const size_t row_block : {block, block / 2, block * 2, block * 4}) {
    for (const size_t key_tile :
         {origin.config.tile.key_tile, size_t{48}, size_t{96}, size_t{144},
          size_t{192}, size_t{288}, size_t{384}, size_t{768}}) {
      for (int flags = 0; flags < 18; ++flags) {
        Candidate candidate = origin;
        Tile& tile = candidate.config.tile;
        tile.row_block = row_block;
        tile.key_tile = key_tile;
        tile.pack_k = static_cast<Pack>(flags % 3);
        tile.pack_v = static_cast<Pack>(flags / 3 % 3);
        tile.prefetch = flags >= 9;
        neighbours->Add(candidate, kernels);
      }
    }
  }
}

// Few rows: how many tasks a thread gets, where there are threads to share, and
// the rows as one block. Of a tile that is taken only where nothing is decoded,
// a pair of fields would be two changes too many.
void AddCuts(const Candidate& origin, const Kernels& kernels, int threads,
             Neighbours* neighbours) {
  if (threads > 1) {
    for (const size_t tasks : {1, 2, 8, 16}) {
      Candidate candidate = origin;
      candidate.config.cut.tasks_per_worker = tasks;
      neighbours->Add(candidate, kernels);
    }
  }
  Candidate block = origin;
  block.config.cut.decode_rows = 0;
  neighbours->Add(block, kernels);
  for (const size_t key_tile : {48, 192, 384, 768}) {
    Candidate candidate = block;
    candidate.config.tile.key_tile = key_tile;
    neighbours->Add(candidate, kernels);
  }
}

}  // namespace

std::string ToString(const Candidate& candidate) {
  return candidate.target + "." + ToString(candidate.config);
}

Candidate DefaultCandidate(const heed_problem& problem,
                           const std::vector<Kernels>& targets,
                           const Machine& machine, int threads) {
  return {targets[0].target,
          {ModelTile(problem, targets[0], machine, threads), Cut{}}};
}

std::vector<Candidate> Candidates(const heed_problem& problem,
                                  const std::vector<Kernels>& targets,
                                  const Machine& machine, int threads,
                                  size_t max) {
  const Candidate origin = DefaultCandidate(problem, targets, machine, threads);
  Neighbours neighbours(problem, machine, origin);
  const size_t rows = RowsPerKvHead(problem);
  if (rows <= kDecodeRows) {
    AddCuts(origin, targets[0], threads, &neighbours);
  } else {
    AddTiles(origin, targets[0], &neighbours);
    if (rows <= kMaxDecodeRows) {
      Candidate decode = origin;
      decode.config.cut.decode_rows = kMaxDecodeRows;
      neighbours.Add(decode, targets[0]);
    }
  }
  for (size_t i = 1; i < targets.size(); ++i) {
    Candidate other = origin;
    other.target = targets[i].target;
    neighbours.Add(other, targets[i]);
  }
  return neighbours.Nearest(max);
}

std::vector<Kernels> WithEqualBits(const std::vector<Kernels>& all) {
  std::vector<Kernels> equal;
  for (const Kernels& kernels : all) {
    if (equal.empty() || (equal[0].fused && kernels.fused)) {
      equal.push_back(kernels);
    }
  }
  return equal;
}

std::vector<Kernels> EqualTargets(DType dtype) {
  std::vector<Kernels> all;
  for (const int64_t target : RunnableTargets()) {
    all.push_back(GetKernels(target, dtype));
  }
  return WithEqualBits(all);
}

}  // namespace heed
