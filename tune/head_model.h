// What `heed head` and `heed inspect` compute: a layer's attention block out of
// a checkpoint, and the rows that enter it.
#ifndef HEED_TUNE_HEAD_MODEL_H_
#define HEED_TUNE_HEAD_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/include/heed_block.h"
#include "tune/checkpoint.h"
#include "tune/checkpoint_layer.h"

namespace CLI {
class App;
}

namespace heed {

struct HeadOptions {
  std::string model;  // a folder or a file
  LayerOptions layer;
  bool no_causal = false;
  std::string x;                // a .npy file, or empty and
  std::vector<int64_t> tokens;  // the ids of tokens
  int64_t head = -1;            // -1: all
  std::string dump;             // a folder, or empty
  int threads = 0;              // 0: what affinity and quota allow
  bool json = false;
};

// The options that the two commands share.
void AddHeadOptions(CLI::App* command, HeadOptions* options);

// What is wrong with options that are taken one by one; empty: nothing.
std::string WrongTogether(const HeadOptions& options);

struct HeadModel {
  Checkpoint checkpoint;  // the weights that `desc` points to
  LayerNames names;
  heed_block_desc desc;
  int64_t len = 0;       // tokens
  std::vector<float> x;  // [len, d_model]
};

// Reads what the options name. On failure returns false and says why in one
// line.
bool LoadHead(const HeadOptions& options, HeadModel* model, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_HEAD_MODEL_H_
