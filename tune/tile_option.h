// A tile on the command line: "row_block=96,key_tile=192,pack_v=1".
#ifndef HEED_TUNE_TILE_OPTION_H_
#define HEED_TUNE_TILE_OPTION_H_

#include <string>

#include "runtime/include/heed.h"

namespace heed {

// Fields that are not named stay 0, the model's choice. pack_k and pack_v are 0
// (in place), 1 (a copy per task and tile) or 2 (one copy per call), prefetch
// is 0 or 1. On failure returns false and one line of reason.
bool ParseTileOption(const std::string& text, heed_tile* tile,
                     std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_TILE_OPTION_H_
