// A tile as text, on a command line or in HEED_TUNE=pin:
// "row_block=96,key_tile=192,pack_v=1".
#ifndef HEED_RUNTIME_TILE_TEXT_H_
#define HEED_RUNTIME_TILE_TEXT_H_

#include <string>

#include "runtime/include/heed.h"

namespace heed {

// Fields that are not named stay 0, the model's choice. pack_k and pack_v are 0
// (in place), 1 (a copy per task and tile) or 2 (one copy per call), prefetch
// is 0 or 1, tasks_per_thread at least 1; decode_rows counts query rows, 0
// means that none are decoded. On failure returns false and one line of reason.
bool ParseTileOption(const std::string& text, heed_tile* tile,
                     std::string* why);

}  // namespace heed

#endif  // HEED_RUNTIME_TILE_TEXT_H_
