#include "runtime/options.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <climits>
#include <cstdlib>
#include <sstream>
#include <string>

#include "runtime/config.h"
#include "runtime/error.h"
#include "runtime/machine.h"
#include "runtime/runner_tbb.h"
#include "runtime/targets.h"

namespace heed {
namespace {

constexpr int kMostThreads = 4096;

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

// A variable of the environment, read at the first plan; null where unset.
const std::string* Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? nullptr : new const std::string(value);
}

heed_status FillThreads(heed_options* options) {
  static const std::string* const value = Variable("HEED_NUM_THREADS");
  if (value == nullptr || options->threads > 0) return HEED_OK;
  static const int threads = [] {
    int number = 0;
    const char* const end = value->data() + value->size();
    const auto parsed = std::from_chars(value->data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end ? number : 0;
  }();
  if (threads < 1 || threads > kMostThreads) {
    return Fail(HEED_INVALID_ARGUMENT,
                "HEED_NUM_THREADS is \"%.40s\"; expected 1 to %d",
                value->c_str(), kMostThreads);
  }
  options->threads = threads;
  return HEED_OK;
}

heed_status FillTarget(heed_options* options) {
  static const std::string* const value = Variable("HEED_TARGET");
  if (value == nullptr || options->target != nullptr) return HEED_OK;
  static const bool is_known = [] {
    std::istringstream names(RunnableTargetNames());
    for (std::string name; names >> name;) {
      if (name == *value) return true;
    }
    return false;
  }();
  if (!is_known) {
    return Fail(HEED_UNSUPPORTED,
                "HEED_TARGET is \"%.40s\"; expected one of: %s", value->c_str(),
                RunnableTargetNames().c_str());
  }
  options->target = value->c_str();
  return HEED_OK;
}

}  // namespace

heed_status ResolveOptions(const heed_options* given, heed_options* options) {
  heed_options_init(options);
  if (given != nullptr) {
    const heed_status status = ValidateOptions(*given);
    if (status != HEED_OK) return status;
    *options = *given;
  }
  const heed_status status = FillThreads(options);
  return status == HEED_OK ? FillTarget(options) : status;
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
