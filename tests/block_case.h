// An attention block with its weights and inputs, and heed's run of it.
//
// Knows no test framework, so that it can be cross-compiled without one.
#ifndef HEED_TESTS_BLOCK_CASE_H_
#define HEED_TESTS_BLOCK_CASE_H_

#include <heed_block.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/input_families.h"

namespace heed::test {

// A matrix as a checkpoint holds it, and its values.
struct StoredMatrix {
  int64_t inputs = 0, outputs = 0;
  int32_t dtype = HEED_F32, layout = HEED_LAYOUT_IN_OUT;
  int64_t stride = 0;         // 0: dense
  std::vector<char> bytes;    // empty: there is none
  std::vector<float> values;  // [inputs, outputs], widened
  int32_t bias_dtype = HEED_F32;
  std::vector<char> bias_bytes;    // empty: there is none
  std::vector<float> bias_values;  // [outputs], 0 without one
};

// Rounds the values (and bias values, where `has_bias`) to the types and fills
// the bytes.
void Store(StoredMatrix* matrix, bool has_bias);

// A block's description without its pointers, and what they point to.
struct BlockCase {
  heed_block_desc desc;  // no pointers: Desc() has them
  int64_t batch = 1, len = 0;
  std::vector<float> x;            // [batch, len, d_model]
  std::vector<int64_t> positions;  // [batch], or empty
  std::vector<float> gain, bias;   // of the norm; empty: none
  std::vector<float> slopes, sinks;
  bool is_packed = true;
  StoredMatrix qkv, q, k, v, out;

  // [d_model, all outputs of q, k and v] and their biases.
  std::vector<float> QkvValues() const;
  std::vector<float> QkvBiases() const;
  int64_t QkvOutputs() const {
    return (desc.heads_q + desc.heads_kv) * desc.dim_qk +
           desc.heads_kv * desc.dim_v;
  }
};

// With pointers into the case, which has to outlive it.
heed_block_desc Desc(const BlockCase& c);

std::string NameOf(const BlockCase& c);

// A block of plain numbers: N(0, 1) x, weights that keep the size of what they
// project. Fields of desc and the matrices' types may be set before.
void FillNormal(Random* random, BlockCase* c);

// A causal block of 2 sequences of 5 tokens, widths of 8, 6 and 3, two heads on
// each of two, with LayerNorm and RoPE.
BlockCase SmallBlock();

// Anything a block can be, small. The seed makes the same case everywhere.
BlockCase RandomBlock(uint64_t seed);

// y and the intermediates, dense as heed_block.h has their shapes; scores and
// pattern only where they were asked for.
struct BlockValues {
  heed_status status = HEED_OK;
  std::string error;
  std::vector<float> y, ln, q, k, v, scores, pattern, z, attn_out, resid;
};

// The name of the first member that differs and where; empty if none does.
std::string Difference(const BlockValues& got, const BlockValues& want);

// Tokens [0, tokens) of every sequence of values of a case of c.len tokens.
// Scores and pattern are left out.
BlockValues FirstTokens(const BlockCase& c, const BlockValues& values,
                        int64_t tokens);

// Runs the case without a cache, all tokens at once; with another description
// of it if one is given.
BlockValues RunBlock(const BlockCase& c, const Settings& settings = {},
                     bool with_scores = false,
                     const heed_block_desc* other = nullptr);

// Points every output of a call at values, which are sized (scores and pattern
// for `keys` keys; 0: not wanted) and filled with a sentinel.
void BindValues(const BlockCase& c, int64_t batch, int64_t len, int64_t keys,
                heed_block_call* call, BlockValues* values);

heed_options OptionsOf(const Settings& settings);

}  // namespace heed::test

#endif  // HEED_TESTS_BLOCK_CASE_H_
