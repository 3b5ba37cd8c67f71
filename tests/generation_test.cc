// A model's loop: append a token to the cache, attend with it alone. Row by row
// the bytes are those of one causal call over all tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <heed.hpp>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/append_case.h"
#include "tests/attention_case.h"

namespace heed::test {
namespace {

constexpr int64_t kHeadsKv = 2, kDim = 16;

// Two chunks of keys and a part. HEED_GENERATION_TOKENS=10000 is what a long
// answer takes, some minutes.
int64_t TokenCount() {
  const char* const tokens = std::getenv("HEED_GENERATION_TOKENS");
  return tokens == nullptr ? 1600 : std::atoll(tokens);
}

struct Loop {
  int32_t dtype;
  int64_t group;
  int64_t page_size;  // 0 = contiguous
  int threads;
  int64_t step;  // tokens appended and attended with at once
};

std::string NameOf(const Loop& loop) {
  return "dtype " + std::to_string(loop.dtype) + " group " +
         std::to_string(loop.group) + " page_size " +
         std::to_string(loop.page_size) + " threads " +
         std::to_string(loop.threads) + " step " + std::to_string(loop.step);
}

heed_problem ProblemOf(const Loop& loop, int64_t len_q, int64_t len_k,
                       int32_t causal) {
  heed_problem p = MakeProblem(1, loop.group * kHeadsKv, kHeadsKv, len_q, len_k,
                               kDim, kDim, causal);
  p.dtype = loop.dtype;
  return p;
}

// All tokens of q [token, head, dim], and k and v [token, kv head, dim].
struct Model {
  Model(const Loop& loop, int64_t tokens)
      : q(loop.dtype,
          static_cast<size_t>(tokens * loop.group * kHeadsKv * kDim), 0),
        k(loop.dtype, static_cast<size_t>(tokens * kHeadsKv * kDim), 0),
        v(k) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (Buffer* x : {&q, &k, &v}) {
      const size_t count = x->bytes.size() / (x->dtype == HEED_F32 ? 4 : 2);
      for (size_t i = 0; i < count; ++i) {
        x->Set(static_cast<int64_t>(i), normal(random));
      }
    }
  }
  Buffer q, k, v;
};

// [1, heads, tokens, dim] that lies token first, from `token` on.
heed_input TokensFrom(const Buffer& x, int64_t heads, int64_t token) {
  const int64_t element = x.dtype == HEED_F32 ? 4 : 2;
  return {x.bytes.data() + token * heads * kDim * element, 0, kDim,
          heads * kDim, 1};
}

heed_output TokensFrom(Buffer* x, int64_t heads, int64_t token) {
  const heed_input in = TokensFrom(*x, heads, token);
  return {const_cast<void*>(in.data), 0, kDim, heads * kDim, 1};
}

Buffer Prefill(const Loop& loop, const Model& model, int64_t tokens) {
  Buffer out(loop.dtype,
             model.q.bytes.size() / (loop.dtype == HEED_F32 ? 4 : 2), -1);
  const int64_t heads_q = loop.group * kHeadsKv;
  heed_call call;
  heed_call_init(&call);
  call.q = TokensFrom(model.q, heads_q, 0);
  call.k = TokensFrom(model.k, kHeadsKv, 0);
  call.v = TokensFrom(model.v, kHeadsKv, 0);
  call.out = TokensFrom(&out, heads_q, 0);
  const heed_problem p = ProblemOf(loop, tokens, tokens, HEED_CAUSAL_TOP_LEFT);
  EXPECT_EQ(HEED_OK, RunCall(p, call, {})) << heed_last_error();
  return out;
}

Buffer Generate(const Loop& loop, const Model& model, int64_t tokens) {
  const int64_t heads_q = loop.group * kHeadsKv;
  const int64_t page_size = loop.page_size;
  const int64_t pages =
      page_size > 0 ? (tokens + page_size - 1) / page_size : 1;
  const int64_t len_cache = page_size > 0 ? page_size : tokens;
  Buffer k_cache(loop.dtype,
                 static_cast<size_t>(pages * kHeadsKv * len_cache * kDim), -1);
  Buffer v_cache = k_cache;
  std::vector<int32_t> table(static_cast<size_t>(pages));
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), std::mt19937(3));

  heed_append append;
  heed_append_init(&append);
  append.batch = 1;
  append.heads_kv = kHeadsKv;
  append.len_cache = tokens;
  append.dim_qk = append.dim_v = kDim;
  append.dtype_new = append.dtype_cache = loop.dtype;
  append.k_cache =
      heed_dense_output(k_cache.bytes.data(), kHeadsKv, len_cache, kDim);
  append.v_cache =
      heed_dense_output(v_cache.bytes.data(), kHeadsKv, len_cache, kDim);
  append.page_size = page_size;
  if (page_size > 0) append.block_table = {table.data(), pages, pages, pages};

  heed_problem p = ProblemOf(loop, loop.step, tokens, HEED_CAUSAL_BOTTOM_RIGHT);
  p.ragged = 1;
  p.page_size = page_size;
  heed_options options;
  heed_options_init(&options);
  options.threads = loop.threads;
  options.runner = DefaultRunner();
  heed_plan* plan = nullptr;
  if (heed_plan_create(&p, &options, &plan) != HEED_OK) {
    ADD_FAILURE() << heed_last_error();
    return Buffer(loop.dtype, 0, 0);
  }
  const std::unique_ptr<heed_plan, void (*)(heed_plan*)> owned(
      plan, heed_plan_destroy);
  Workspace workspace(heed_plan_workspace_size(plan));

  Buffer out(loop.dtype,
             model.q.bytes.size() / (loop.dtype == HEED_F32 ? 4 : 2), -1);
  heed_call call;
  heed_call_init(&call);
  call.k = {k_cache.bytes.data(), append.k_cache.stride_batch, len_cache * kDim,
            kDim, 1};
  call.v = {v_cache.bytes.data(), append.v_cache.stride_batch, len_cache * kDim,
            kDim, 1};
  call.block_table = append.block_table;
  for (int64_t token = 0; token < tokens; token += loop.step) {
    const int64_t count = std::min(loop.step, tokens - token);
    append.len_new = count;
    append.positions = &token;
    append.k_new = TokensFrom(model.k, kHeadsKv, token);
    append.v_new = TokensFrom(model.v, kHeadsKv, token);
    if (heed_kv_append(&append) != HEED_OK) {
      ADD_FAILURE() << heed_last_error();
      return out;
    }
    const auto used = static_cast<int32_t>(token + count);
    const int32_t ends[] = {0, static_cast<int32_t>(count)};
    call.seqused_k = &used;
    call.cu_seqlens_q = ends;
    call.q = TokensFrom(model.q, heads_q, token);
    call.out = TokensFrom(&out, heads_q, token);
    call.workspace = workspace.data();
    call.workspace_size = workspace.size();
    if (heed_plan_run(plan, &call) != HEED_OK) {
      ADD_FAILURE() << heed_last_error();
      return out;
    }
  }
  return out;
}

void ExpectPrefill(const Loop& loop) {
  const int64_t tokens = TokenCount();
  const Model model(loop, tokens);
  const Buffer want = Prefill(loop, model, tokens);
  const Buffer got = Generate(loop, model, tokens);
  ASSERT_EQ(got.bytes.size(), want.bytes.size());
  const auto differ =
      std::mismatch(got.bytes.begin(), got.bytes.end(), want.bytes.begin());
  const auto row_bytes =
      loop.group * kHeadsKv * kDim * (loop.dtype == HEED_F32 ? 4 : 2);
  EXPECT_TRUE(differ.first == got.bytes.end())
      << NameOf(loop) << ": token "
      << (differ.first - got.bytes.begin()) / row_bytes;
}

TEST(Generation, TokenByTokenIsThePrefillByteForByte) {
  for (const int32_t dtype : kDtypes) {
    for (const int64_t group : {1, 4, 7, 8}) {
      for (const int64_t page_size : {0, 16}) {
        for (const int threads : {1, 2}) {
          ExpectPrefill({dtype, group, page_size, threads, 1});
        }
      }
    }
  }
}

TEST(Generation, PagesOfAnySizeAreThePrefillByteForByte) {
  for (const int64_t page_size : {1, 3, 8, 32, 64, 100, 256}) {
    ExpectPrefill({HEED_F32, 4, page_size, 2, 1});
  }
}

TEST(Generation, StepsOfSeveralTokensAreThePrefillByteForByte) {
  for (const int64_t step : {2, 5, 16, 64, 700}) {
    for (const int64_t page_size : {0, 16}) {
      for (const int threads : {1, 2}) {
        ExpectPrefill({HEED_F32, 4, page_size, threads, step});
        ExpectPrefill({HEED_BF16, 1, page_size, threads, step});
      }
    }
  }
}

}  // namespace
}  // namespace heed::test
