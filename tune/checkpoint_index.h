// model.safetensors.index.json: which file of a checkpoint has which tensor.
// Text in, a map or a reason out. No I/O.
#ifndef HEED_TUNE_CHECKPOINT_INDEX_H_
#define HEED_TUNE_CHECKPOINT_INDEX_H_

#include <map>
#include <string>

namespace heed {

// Tensor to file. A file's name is plain: one that would leave the index's
// folder is refused.
using CheckpointIndex = std::map<std::string, std::string>;

// On failure returns false and says why in one line.
bool ParseCheckpointIndex(const std::string& text, CheckpointIndex* index,
                          std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_CHECKPOINT_INDEX_H_
