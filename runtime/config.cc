#include "runtime/config.h"

#include "runtime/tile_model.h"

namespace heed {

std::string ToString(const Config& config) {
  std::string text = ToString(config.tile);
  if (config.cut.tasks_per_worker != kTasksPerWorker) {
    text += ".tw" + std::to_string(config.cut.tasks_per_worker);
  }
  if (config.cut.decode_rows != kDecodeRows) {
    text += ".dr" + std::to_string(config.cut.decode_rows);
  }
  return text;
}

heed_tile PublicTile(const Config& config) {
  heed_tile result = {};
  result.row_block = static_cast<int32_t>(config.tile.row_block);
  result.key_tile = static_cast<int32_t>(config.tile.key_tile);
  result.pack_k = static_cast<int32_t>(config.tile.pack_k) + 1;
  result.pack_v = static_cast<int32_t>(config.tile.pack_v) + 1;
  result.prefetch = config.tile.prefetch ? 2 : 1;
  result.tasks_per_thread = static_cast<int32_t>(config.cut.tasks_per_worker);
  result.decode_below = static_cast<int32_t>(config.cut.decode_rows) + 1;
  return result;
}

Config WithPinned(const Config& base, const heed_tile& pinned) {
  Config config = base;
  Tile& tile = config.tile;
  if (pinned.row_block != 0) {
    tile.row_block = static_cast<size_t>(pinned.row_block);
  }
  if (pinned.key_tile != 0) {
    tile.key_tile = static_cast<size_t>(pinned.key_tile);
  }
  if (pinned.pack_k != 0) tile.pack_k = static_cast<Pack>(pinned.pack_k - 1);
  if (pinned.pack_v != 0) tile.pack_v = static_cast<Pack>(pinned.pack_v - 1);
  if (pinned.prefetch != 0) tile.prefetch = pinned.prefetch == 2;
  if (pinned.tasks_per_thread != 0) {
    config.cut.tasks_per_worker = static_cast<size_t>(pinned.tasks_per_thread);
  }
  if (pinned.decode_below != 0) {
    config.cut.decode_rows = static_cast<size_t>(pinned.decode_below) - 1;
  }
  return config;
}

}  // namespace heed
