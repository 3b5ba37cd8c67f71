#include "runtime/tile_model.h"

#include <algorithm>

#include "runtime/config.h"
#include "runtime/problem.h"
#include "runtime/sticky_size.h"

namespace heed {
namespace {

constexpr size_t kFewKeys = 256;

// Bytes one task keeps touching while it walks the keys: q transposed, one
// score tile, the outputs and, if copied, the v tile.
size_t WorkingBytes(const Tile& tile, size_t dim_qk, size_t dim_v) {
  size_t floats = tile.row_block * (dim_qk + tile.key_tile + dim_v);
  if (tile.pack_k == Pack::kTile) floats += tile.key_tile * dim_qk;
  if (tile.pack_v == Pack::kTile) floats += tile.key_tile * dim_v;
  return floats * sizeof(float);
}

// 16-bit elements widen where they are copied, and nowhere else; and in place
// the kernels read keys as one run.
bool MustPackK(const heed_problem& problem) {
  return problem.dtype != HEED_F32 || problem.page_size > 0;
}

// In place the kernels read whole vectors of v.
bool MustPackV(const heed_problem& problem, const Kernels& kernels) {
  return MustPackK(problem) ||
         static_cast<size_t>(problem.dim_v) % kernels.lanes != 0;
}

// Keys that a row sees, in the mean and without windows.
size_t MeanKeys(const heed_problem& problem) {
  const int64_t hidden = problem.causal == HEED_CAUSAL_NONE
                             ? 0
                             : std::min(problem.len_q, problem.len_k) / 2;
  return static_cast<size_t>(problem.len_k - hidden);
}

// q, k, v and out.
double TensorBytes(const heed_problem& problem) {
  const double query_elements =
      static_cast<double>(problem.heads_q) * static_cast<double>(problem.len_q);
  const double key_elements = static_cast<double>(problem.heads_kv) *
                              static_cast<double>(problem.len_k);
  return static_cast<double>(problem.batch) * (query_elements + key_elements) *
         static_cast<double>(problem.dim_qk + problem.dim_v) *
         static_cast<double>(ElementBytes(problem.dtype));
}

}  // namespace

size_t RowsPerKvHead(const heed_problem& problem) {
  if (HasNoRows(problem)) return 0;
  return static_cast<size_t>(problem.len_q * Group(problem));
}

size_t TaskCount(const Tile& tile, const heed_problem& problem) {
  if (HasNoRows(problem)) return 0;
  const size_t rows = RowsPerKvHead(problem);
  const size_t blocks = rows / tile.row_block + (rows % tile.row_block != 0);
  return static_cast<size_t>(problem.batch * problem.heads_kv) * blocks;
}

Tile RoundTile(const Tile& tile, const heed_problem& problem,
               const Kernels& kernels) {
  Tile rounded = tile;
  const size_t rows = std::max<size_t>(RowsPerKvHead(problem), 1);
  const size_t max_rows =
      std::max(kernels.row_multiple,
               kMaxRowBlock / kernels.row_multiple * kernels.row_multiple);
  rounded.row_block = std::clamp<size_t>(tile.row_block, 1, max_rows);
  rounded.row_block =
      RoundUp(std::min(rounded.row_block, rows), kernels.row_multiple);
  const size_t keys = std::max<size_t>(static_cast<size_t>(problem.len_k), 1);
  rounded.key_tile = std::clamp<size_t>(tile.key_tile, 1, kMaxKeyTile);
  rounded.key_tile = RoundUp(std::min(rounded.key_tile, keys), kStep);
  if (tile.pack_k == Pack::kNone && MustPackK(problem)) {
    rounded.pack_k = Pack::kTile;
  }
  if (tile.pack_v == Pack::kNone && MustPackV(problem, kernels)) {
    rounded.pack_v = Pack::kTile;
  }
  return rounded;
}

void AlignToMaskBlocks(const heed_problem& problem, const Kernels& kernels,
                       Tile* tile) {
  if (problem.mask_block_q <= 1) return;
  const size_t block = static_cast<size_t>(problem.mask_block_q) *
                       static_cast<size_t>(Group(problem));
  for (size_t rows = tile->row_block; rows >= kernels.row_multiple;
       rows -= kernels.row_multiple) {
    if (block % rows == 0) {
      tile->row_block = rows;
      return;
    }
  }
}

bool FeasibleTile(const Tile& tile, const heed_problem& problem,
                  const Kernels& kernels) {
  return tile.row_block != 0 && tile.row_block <= kMaxRowBlock &&
         tile.row_block % kernels.row_multiple == 0 && tile.key_tile != 0 &&
         tile.key_tile <= kMaxKeyTile && tile.key_tile % kStep == 0 &&
         !(tile.pack_k == Pack::kNone && MustPackK(problem)) &&
         !(tile.pack_v == Pack::kNone && MustPackV(problem, kernels));
}

bool FitsCaches(const Tile& tile, const heed_problem& problem,
                const Kernels& kernels, const Machine& machine) {
  const auto sharing =
      static_cast<size_t>(std::max(machine.l3.cores_sharing, 1));
  return kernels.scratch_bytes(tile, static_cast<size_t>(problem.dim_qk),
                               static_cast<size_t>(problem.dim_v)) <=
         machine.l2.bytes + machine.l3.bytes / sharing;
}

Tile ShareAmongThreads(const Tile& tile, const heed_problem& problem,
                       const Kernels& kernels, int threads) {
  Tile shared = tile;
  if (threads <= 1 || HasNoRows(problem)) return shared;
  const size_t enough = kTasksPerWorker * static_cast<size_t>(threads);
  while (shared.row_block > kernels.row_multiple &&
         TaskCount(shared, problem) < enough) {
    // 3 multiples become 2, and 2 become 1: it always shrinks.
    shared.row_block = RoundUp(shared.row_block / 2, kernels.row_multiple);
  }
  return shared;
}

Tile ModelTile(const heed_problem& problem, const Kernels& kernels,
               const Machine& machine, int threads) {
  const auto dim_qk = static_cast<size_t>(problem.dim_qk);
  const auto dim_v = static_cast<size_t>(problem.dim_v);
  const size_t dim = std::max(dim_qk, dim_v);
  Tile tile;

  // Each k and v tile is read once per row block, so more rows mean less
  // traffic, while the block's q, scores and outputs have to stay near:
  //   dim  64: 96 rows * ( 64 + 768 +  64) * 4 = 344 KB
  //   dim 128: 96 rows * (128 + 768 + 128) * 4 = 393 KB
  //   dim 256: 96 rows * (256 + 384 + 256) * 4 = 344 KB
  //   dim 512: 48 rows * (512 + 384 + 512) * 4 = 270 KB
  // most of a 512 KB L2, but scores are read in streams, which it is near
  // enough for.
  tile.row_block = dim <= 256 ? 96 : 48;
  const size_t rows = RowsPerKvHead(problem);
  if (rows < 8 * tile.row_block) {
    // Few blocks: of like size, not whole ones and a remnant. (T 128 by 64:
    // 72.6 % of the peak, at once: 70.9.)
    const size_t most = tile.row_block + tile.row_block / 6;
    const size_t blocks = std::max<size_t>(1, (rows + most - 1) / most);
    tile.row_block = (rows + blocks - 1) / blocks;
  }

  // One copy of v in column tiles, shared by all row blocks of a kv head, pays
  // from two blocks on: rows of v lie 4 * dim_v bytes apart, so a column of a
  // key tile falls into few of the L1's sets (dim 64: 16 of 64, dim 128: 8),
  // and copying one tile at a time costs every block again (2 to 4 points). Not
  // where a row's keys are few: the copy is a larger part, and v is near (dim
  // 64, T 197: 82.4 to 83.2 %).
  const bool few_keys = MeanKeys(problem) <= kFewKeys;
  if (few_keys && !MustPackV(problem, kernels)) {
    tile.pack_v = Pack::kNone;
  } else if (rows > tile.row_block) {
    tile.pack_v = Pack::kCall;
    if (MustPackK(problem)) tile.pack_k = Pack::kCall;
  } else if (dim_v >= 128 && rows >= 32) {
    tile.pack_v = Pack::kTile;
  }

  // Long key tiles load and store each output less often. Zen 3, of the peak,
  // 192, 384 and 768 keys: dim 64, T 8192 83.9, 85.0, 86.4; dim 128, T 2048
  // 88.0, 88.4, 89.3; dim 256, T 1024 90.7, 91.3, 91.1. A copied tile of v
  // takes room of its own (dim 128, 64 rows: 87.1, 86.2, 85.8).
  const bool whole_chunk = dim <= 160 && tile.pack_v != Pack::kTile;
  tile.key_tile = whole_chunk ? kMaxKeyTile : kMaxKeyTile / 2;

  // Early touches pay where a kv head's keys come from the L3 (Zen 3, 8 times
  // its L2: dim 128, 8192 keys 79 to 87 % of the peak, 6144 79 to 86, 4096 88.9
  // to 88.9; dim 64, 16384 81.6 to 82.9; dim 256, 4096 72 to 78, 2048 86.9 to
  // 84.8), and where little is done with what comes from memory (dim 64, T 197,
  // 96 heads: 73 to 76; dim 40, 4096 queries and 77 keys, 16 heads: 63 to 67).
  // Elsewhere they cost one or two.
  const bool keys_far = static_cast<double>(problem.len_k) *
                            static_cast<double>(dim_qk + dim_v) *
                            sizeof(float) >
                        8 * static_cast<double>(machine.l2.bytes);
  // What a hypervisor calls L3 may be the whole socket's (Zen 5: 508 MB of one
  // core), so never more than 16 times the L2.
  const double near = std::min(static_cast<double>(machine.l3.bytes) / 4,
                               16 * static_cast<double>(machine.l2.bytes));
  const bool all_far = few_keys && TensorBytes(problem) > near;
  tile.prefetch = keys_far || all_far;

  tile = RoundTile(tile, problem, kernels);
  const size_t room = machine.l2.bytes / 4 * 3;
  while (tile.key_tile > kStep && WorkingBytes(tile, dim_qk, dim_v) > room) {
    tile.key_tile = RoundUp(tile.key_tile / 2, kStep);
  }
  while (tile.row_block > kernels.row_multiple &&
         WorkingBytes(tile, dim_qk, dim_v) > room) {
    tile.row_block = RoundUp(tile.row_block / 2, kernels.row_multiple);
  }
  return ShareAmongThreads(tile, problem, kernels,
                           threads > 0 ? threads : machine.threads);
}

std::string ToString(const Tile& tile) {
  return "rb" + std::to_string(tile.row_block) + ".kt" +
         std::to_string(tile.key_tile) + ".pk" +
         std::to_string(static_cast<int>(tile.pack_k)) + ".pv" +
         std::to_string(static_cast<int>(tile.pack_v)) +
         (tile.prefetch ? ".pf1" : ".pf0");
}

}  // namespace heed
