// One attention problem with its data, and the two ways to compute it that the
// tests compare: heed through a plan, and the scalar row program.
//
// Knows no test framework, so that the bits test can be cross-compiled without
// one.
#ifndef HEED_TESTS_ATTENTION_CASE_H_
#define HEED_TESTS_ATTENTION_CASE_H_

#include <heed.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace heed::test {

// Default scale, f32.
heed_problem MakeProblem(int64_t batch, int64_t heads_q, int64_t heads_kv,
                         int64_t len_q, int64_t len_k, int64_t dim_qk,
                         int64_t dim_v, int32_t causal = HEED_CAUSAL_NONE);

// A mask that is dense but for the room that its rows may have.
struct CaseMask {
  int64_t batch = 1, heads = 1;  // each 1 or the problem's
  int64_t len_q = 1;  // 1 or the problem's; with blocks, as many as there are
  int64_t room = 0;   // elements of a row; at least one for each key, or block
  std::vector<uint8_t> bytes;  // HEED_MASK_BOOL
  std::vector<float> values;   // the other kinds
};

// A problem with its data. Of what the problem's options do not ask for there
// is nothing.
struct Case {
  heed_problem problem;
  int64_t causal_offset = 0;
  // Dense [batch, heads, len, dim], or [batch, len, heads, dim] if
  // tokens_first, which goes for out and lse too. The len of cu_seqlens is all
  // tokens, their batch 1; of pages it is the page_size, their batch num_pages.
  std::vector<float> q, k, v;
  bool tokens_first = false;

  CaseMask mask;
  std::vector<float> slopes, sinks;
  std::vector<int32_t> seqused_k, cu_seqlens_q, cu_seqlens_k;
  std::vector<int64_t> causal_offsets;
  std::vector<int32_t> block_table;  // [batch, max_pages]
  int64_t max_pages = 0, num_pages = 0;
};

// Inputs of the right sizes, all zero.
Case MakeCase(const heed_problem& problem, int64_t causal_offset = 0);

// Gives q, k and v the sizes that the rest of the case asks for; all zero.
void SizeInputs(Case* c);

// The problem string, and what the string may not say.
std::string NameOf(const Case& c);

// Runners that need no TBB: one thread, and one std::thread for each task.
const heed_runner* SerialRunner();
const heed_runner* ThreadRunner();

// Null, which means oneTBB. But ThreadRunner() under the thread sanitizer,
// which takes the distribution's oneTBB, not being instrumented, for full of
// races.
const heed_runner* DefaultRunner();

// How heed computes it. None of this may show in a result.
struct Settings {
  int threads = 1;
  std::string target;   // empty = best
  bool pinned = false;  // use `tile`
  heed_tile tile = {};
  const heed_runner* runner = DefaultRunner();
};
std::string NameOf(const Settings& settings);

struct Result {
  heed_status status = HEED_OK;
  std::string error;
  std::vector<float> out;  // dense [batch, heads_q, len_q, dim_v], as q is
  std::vector<float> lse;  // dense [batch, heads_q, len_q]
};

// A call on the case's inputs and on result->out and lse, which are sized and
// filled with a sentinel. Both must outlive the call.
heed_call DenseCall(const Case& c, Result* result);

// Creates a plan, runs the call once in a workspace of exactly the size asked
// for, and frees both.
heed_status RunCall(const heed_problem& problem, const heed_call& call,
                    const Settings& settings);

Result RunHeed(const Case& c, const Settings& settings = {});
Result RunRowProgram(const Case& c, size_t step = kStep);

// Equal bytes, but that any NaN equals any NaN.
bool SameBits(float a, float b);
bool SameBits(const std::vector<float>& a, const std::vector<float>& b);
bool SameBits(const Result& a, const Result& b);

// Where the results first differ, with both values in hexadecimal; empty if
// they do not.
std::string Difference(const Result& got, const Result& want);

// The names of the targets that run here, best first; only those with fused
// multiply-add, whose results are the row program's bits, if `fused_only`.
std::vector<std::string> TargetNames(bool fused_only);

// Tiles that differ in every field.
std::vector<heed_tile> VariedTiles();

}  // namespace heed::test

#endif  // HEED_TESTS_ATTENTION_CASE_H_
