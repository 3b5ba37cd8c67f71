#include "runtime/tile_text.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/config.h"

namespace heed {
namespace {

struct Field {
  const char* name;
  int32_t heed_tile::*member;
  int32_t low, high;
  int32_t add;  // the interface's number for 0: it counts such fields from 1
};

constexpr int32_t kMaxSize = 1 << 20;

const Field kFields[] = {
    {"row_block", &heed_tile::row_block, 1, kMaxSize, 0},
    {"key_tile", &heed_tile::key_tile, 1, kMaxSize, 0},
    {"pack_k", &heed_tile::pack_k, 0, 2, 1},
    {"pack_v", &heed_tile::pack_v, 0, 2, 1},
    {"prefetch", &heed_tile::prefetch, 0, 1, 1},
    {"tasks_per_thread", &heed_tile::tasks_per_thread, 1, kMaxTasksPerWorker,
     0},
    {"decode_rows", &heed_tile::decode_below, 0, kMaxDecodeRows, 1}};

bool ParseItem(const std::string& item, heed_tile* tile, std::string* why) {
  const size_t equals = item.find('=');
  const std::string name = item.substr(0, equals);
  const std::string value =
      equals == std::string::npos ? "" : item.substr(equals + 1);
  std::string names;
  for (const Field& field : kFields) {
    names += std::string(names.empty() ? "" : ", ") + field.name;
    if (name != field.name) continue;
    const bool digits =
        !value.empty() && value.size() <= 7 &&
        value.find_first_not_of("0123456789") == std::string::npos;
    const long number = digits ? std::strtol(value.c_str(), nullptr, 10) : -1;
    if (number < field.low || number > field.high) {
      *why = "tile field " + name + " is '" + value + "'; expected " +
             std::to_string(field.low) + " to " + std::to_string(field.high);
      return false;
    }
    tile->*field.member = static_cast<int32_t>(number) + field.add;
    return true;
  }
  *why = "unknown tile field '" + name + "'; expected one of " + names;
  return false;
}

}  // namespace

bool ParseTileOption(const std::string& text, heed_tile* tile,
                     std::string* why) {
  *tile = heed_tile{};
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (!ParseItem(text.substr(begin, end - begin), tile, why)) return false;
    begin = end + 1;
  }
  return true;
}

}  // namespace heed
