// The .npy files that go into `heed run`, as a problem and a call.
#ifndef HEED_TUNE_RUN_INPUTS_H_
#define HEED_TUNE_RUN_INPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/include/heed.h"
#include "tune/npy.h"
#include "tune/run_options.h"

namespace heed {

struct RunInputs {
  heed_problem problem;
  // [batch, heads, tokens, width]; in one run of sequences (packed)
  // [tokens, heads, width]; k and v in pages [pages, heads, tokens, width].
  NpyTensor q, k, v;
  bool packed_q = false, packed_k = false;
  NpyTensor mask;
  heed_input mask_view{};  // of `mask`, with the strides that broadcast
  std::vector<float> alibi_slopes, sinks;
  std::vector<int32_t> seqused_k, cu_seqlens_q, cu_seqlens_k, block_table;
  std::vector<int64_t> causal_offsets;
};

// Reads what the options name and checks that the shapes go together. On
// failure returns false and says why in one line that begins with the path.
bool ReadRunInputs(const RunOptions& options, RunInputs* inputs,
                   std::string* why);

// The call on them, without outputs and workspace. Points into `inputs`.
heed_call CallOn(const RunOptions& options, const RunInputs& inputs);

// The bias of a head per key of distance: the sequence of Press, Smith and
// Lewis, "Train short, test long" (ALiBi), 2022, section 3, and for numbers of
// heads that are no power of two the interleaving of their code.
std::vector<float> AlibiSlopes(int64_t heads);

// "64x128": queries and keys that an element of a boolean mask stands for.
bool ParseMaskBlock(const std::string& text, int32_t* queries, int32_t* keys);

}  // namespace heed

#endif  // HEED_TUNE_RUN_INPUTS_H_
