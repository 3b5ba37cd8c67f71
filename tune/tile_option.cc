#include "tune/tile_option.h"

#include <algorithm>
#include <cstdlib>

namespace heed {
namespace {

struct Field {
  const char* name;
  int32_t heed_tile::*member;
  int32_t choices;  // of a flag: 0 to this; 0 = a size
};

const Field kFields[] = {{"row_block", &heed_tile::row_block, 0},
                         {"key_tile", &heed_tile::key_tile, 0},
                         {"pack_k", &heed_tile::pack_k, 2},
                         {"pack_v", &heed_tile::pack_v, 2},
                         {"prefetch", &heed_tile::prefetch, 1}};

bool ParseItem(const std::string& item, heed_tile* tile, std::string* why) {
  const size_t equals = item.find('=');
  const std::string name = item.substr(0, equals);
  const std::string value =
      equals == std::string::npos ? "" : item.substr(equals + 1);
  for (const Field& field : kFields) {
    if (name != field.name) continue;
    const bool flag = field.choices != 0;
    const long limit = flag ? field.choices : 1 << 20;
    const bool digits =
        !value.empty() && value.size() <= 7 &&
        value.find_first_not_of("0123456789") == std::string::npos;
    const long number = digits ? std::strtol(value.c_str(), nullptr, 10) : -1;
    if (number < (flag ? 0 : 1) || number > limit) {
      *why = "tile field " + name + " is '" + value + "'; expected " +
             (flag ? "0 to " : "1 to ") + std::to_string(limit);
      return false;
    }
    // The interface counts from 1; its 0 is the model's choice.
    tile->*field.member = static_cast<int32_t>(flag ? number + 1 : number);
    return true;
  }
  *why = "unknown tile field '" + name +
         "'; expected row_block, key_tile, pack_k, pack_v or prefetch";
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
