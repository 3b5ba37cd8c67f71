// The two objects behind heed_block.h.
#ifndef HEED_RUNTIME_BLOCK_H_
#define HEED_RUNTIME_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/token_kernels.h"
#include "runtime/include/heed_block.h"
#include "runtime/packed_matrix.h"
#include "runtime/projection.h"

namespace heed {

// Tokens of one task of the stages that go token by token: some ten
// microseconds.
constexpr size_t kTokensAtOnce = 8;

struct DestroyPlan {
  void operator()(heed_plan* plan) const { heed_plan_destroy(plan); }
};

// Where the parts of a workspace begin; each begins at a cache line. Rows are
// the call's tokens, sequence after sequence.
//   slices:    scratch, one for each worker
//   tokens:    [rows, tokens_stride] what is projected, and later what a
//              post-norm norms
//   qkv:       [rows, qkv_stride] q, k and v of a token side by side
//   z:         [rows, z_stride]
//   offsets:   int64_t [batch], and
//   seqused:   int32_t [batch], of a plan with a cache
//   attention: the attention plan's own
struct BlockLayout {
  size_t slice_bytes = 0;
  size_t tokens = 0, tokens_stride = 0;
  size_t qkv = 0, qkv_stride = 0;
  size_t z = 0, z_stride = 0;
  size_t offsets = 0, seqused = 0;
  size_t attention = 0;
  size_t bytes = 0;  // of the whole
};

// HEED_OK, or Fail() naming the field, its value and what was expected.
// Afterwards the bytes of every matrix fit an int64_t.
heed_status ValidateDesc(const heed_block_desc& desc);

// The attention of a block whose flags and modes are valid: `len` tokens of
// each sequence against themselves (len_cache 0) or a cache.
void AttentionProblem(const heed_block_desc& desc, int64_t batch, int64_t len,
                      int64_t len_cache, heed_problem* problem);

// Where a valid description has its norm.
inline bool NormsBefore(const heed_block_desc& desc) {
  return desc.norm != HEED_NORM_NONE && desc.norm_place == HEED_NORM_PRE;
}
inline bool NormsAfter(const heed_block_desc& desc) {
  return desc.norm != HEED_NORM_NONE && desc.norm_place == HEED_NORM_POST;
}

// Validation of the data of one run.
heed_status ValidateBlockCall(const heed_block_plan& plan,
                              const heed_block_call& call);

}  // namespace heed

// Immutable after heed_block_create().
struct heed_block {
  heed_block_desc desc;  // without matrices and vectors; slopes and sinks ours
  heed::TokenKernels kernels;
  heed::PackedMatrix qkv, out;
  std::vector<float> gain, bias;  // of the norm, [d_model]
  std::vector<double> turns;      // runtime/rope_angles.h; empty without RoPE
  std::vector<float> slopes, sinks;
};

// Immutable after heed_block_plan_create().
struct heed_block_plan {
  const heed_block* block;
  int64_t batch, len, len_cache;
  size_t rows;  // batch * len
  size_t workers;
  heed_runner runner;
  heed_problem problem;  // of attention
  heed_options options;  // for heed_scores(): the block's target
  std::unique_ptr<heed_plan, heed::DestroyPlan> attention;
  heed::ProjectionCut qkv_cut, out_cut;
  heed::BlockLayout workspace;
};

#endif  // HEED_RUNTIME_BLOCK_H_
