// What the tuner picks: the kernels' tile, and how the runtime cuts work into
// tasks. No field changes a bit of a result.
#ifndef HEED_RUNTIME_CONFIG_H_
#define HEED_RUNTIME_CONFIG_H_

#include <cstddef>
#include <string>

#include "kernels/kernels.h"
#include "runtime/include/heed.h"

namespace heed {

// Query rows per kv head up to which a sequence is decoded unless a record says
// otherwise: its keys are read once, where they lie. Up to four rows a decode
// is bound by memory, and beyond 16 the prefill's panels are full.
constexpr size_t kDecodeRows = 16;

// Tasks per worker that keep the wait for the last task short.
constexpr size_t kTasksPerWorker = 4;

// The largest values that are accepted.
constexpr size_t kMaxDecodeRows = 64;
constexpr size_t kMaxTasksPerWorker = 64;

struct Cut {
  // Where the keys of a decode are cut, and the long decodes of a ragged batch:
  // tasks that each worker should get. (A prefill's tasks are its row blocks.)
  size_t tasks_per_worker = kTasksPerWorker;
  // Query rows per kv head up to which a sequence is decoded; 0: never.
  size_t decode_rows = kDecodeRows;

  friend bool operator==(const Cut& a, const Cut& b) {
    return a.tasks_per_worker == b.tasks_per_worker &&
           a.decode_rows == b.decode_rows;
  }
};

struct Config {
  Tile tile;
  Cut cut;

  friend bool operator==(const Config& a, const Config& b) {
    return a.tile == b.tile && a.cut == b.cut;
  }
};

// e.g. "rb96.kt192.pk0.pv1.pf0", then ".tw8" and ".dr0" where the cut is not
// the usual one.
std::string ToString(const Config& config);

// As an option of the public interface, every field named.
heed_tile PublicTile(const Config& config);

// `base` with the fields that `pinned` names; presumes that each is in range.
Config WithPinned(const Config& base, const heed_tile& pinned);

}  // namespace heed

#endif  // HEED_RUNTIME_CONFIG_H_
