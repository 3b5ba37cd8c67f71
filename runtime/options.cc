#include "runtime/options.h"

#include <algorithm>
#include <cinttypes>
#include <climits>

#include "runtime/config.h"
#include "runtime/error.h"
#include "runtime/machine.h"
#include "runtime/runner_tbb.h"

namespace heed {
namespace {

heed_status ValidateTile(const heed_tile& tile) {
  const struct {
    const char* name;
    int32_t value;
    int32_t limit;
  } fields[] = {{"row_block", tile.row_block, INT32_MAX},
                {"key_tile", tile.key_tile, INT32_MAX},
                {"pack_k", tile.pack_k, 3},
                {"pack_v", tile.pack_v, 3},
                {"prefetch", tile.prefetch, 2},
                {"tasks_per_thread", tile.tasks_per_thread,
                 static_cast<int32_t>(kMaxTasksPerWorker)},
                {"decode_below", tile.decode_below,
                 static_cast<int32_t>(kMaxDecodeRows) + 1},
                {"reserved[0]", tile.reserved[0], 0}};
  for (const auto& field : fields) {
    if (field.value < 0 || field.value > field.limit) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "options.tile.%s is %" PRId32 "; expected 0 to %" PRId32,
                  field.name, field.value, field.limit);
    }
  }
  return HEED_OK;
}

}  // namespace

heed_status ValidateOptions(const heed_options& options) {
  if (options.struct_size != sizeof(heed_options)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "options.struct_size is %zu; expected %zu, as "
                "heed_options_init() sets it",
                options.struct_size, sizeof(heed_options));
  }
  if (options.threads < 0) {
    return Fail(HEED_INVALID_ARGUMENT,
                "options.threads is %" PRId32
                "; expected 0 (as many as we may use) or more",
                options.threads);
  }
  if (options.tuning < HEED_TUNING_AUTO ||
      options.tuning > HEED_TUNING_PINNED) {
    return Fail(HEED_INVALID_ARGUMENT,
                "options.tuning is %" PRId32
                "; expected HEED_TUNING_AUTO (0), _OFF (1) or _PINNED (2)",
                options.tuning);
  }
  if (options.runner != nullptr && options.runner->run == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "options.runner->run is NULL; expected a function");
  }
  return options.tuning == HEED_TUNING_PINNED ? ValidateTile(options.tile)
                                              : HEED_OK;
}

int ThreadsFor(const heed_options& options) {
  if (options.threads > 0) return options.threads;
  const int threads = EffectiveThreads();
  // A runner of the caller's has nothing to do with the TBB arena.
  if (options.runner != nullptr) return threads;
  return std::max(1, std::min(threads, ArenaConcurrency()));
}

}  // namespace heed

extern "C" void heed_options_init(heed_options* options) {
  if (options == nullptr) return;
  *options = heed_options{};
  options->struct_size = sizeof(heed_options);
}
