// One run of an attention block with everything in between kept, to look at.
#ifndef HEED_TUNE_HEAD_RUN_H_
#define HEED_TUNE_HEAD_RUN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/include/heed_block.h"

namespace heed {

struct HeadTensors {
  int64_t len = 0;  // tokens
  int64_t heads_q = 0, heads_kv = 0;
  std::vector<float> ln, attn_out, resid;  // [len, d_model]
  std::vector<float> q, z;                 // [heads_q, len, dim]
  std::vector<float> k, v;                 // [heads_kv, len, dim]
  std::vector<float> scores, pattern;      // [heads_q, len, len]
  std::string plan;                        // as heed_block_plan_describe()
  double seconds = 0;                      // of the run, without the packing
};

// Runs the block on x [len, d_model]. On failure returns false and the
// library's reason.
bool RunHead(const heed_block_desc& desc, const float* x, int64_t len,
             int threads, HeadTensors* tensors, std::string* why);

// One of the tensors, as a table of them. `heads` is 0 if it has no such axis.
struct NamedTensor {
  const char* name;
  const std::vector<float>* values;
  int64_t heads;
};
std::vector<NamedTensor> AllTensors(const HeadTensors& tensors);

// Of query head `head` (-1: all), the part of a tensor and its shape. A head of
// k and v is the one that the query head reads.
struct TensorPart {
  std::vector<int64_t> shape;
  const float* data;
  size_t count;
};
TensorPart PartOf(const HeadTensors& tensors, const NamedTensor& tensor,
                  int64_t head);

// Writes all tensors, or their parts of one head, as <folder>/<name>.npy; all
// or none. Makes the folder if it is not there.
bool DumpHead(const HeadTensors& tensors, int64_t head,
              const std::string& folder, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_HEAD_RUN_H_
