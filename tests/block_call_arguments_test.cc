// What a plan and a run of a block refuse, and in which words; and strides of
// every kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/block_case.h"

namespace heed::test {
namespace {

using ::testing::HasSubstr;

// A block and a plan of it.
class BlockPlans : public ::testing::Test {
 protected:
  void SetUp() override {
    const heed_block_desc desc = Desc(case_);
    ASSERT_EQ(heed_block_create(&desc, nullptr, &block_), HEED_OK)
        << heed_last_error();
  }
  void TearDown() override { heed_block_destroy(block_); }

  void ExpectRefusedPlan(int64_t batch, int64_t len, int64_t len_cache,
                         const char* words) {
    heed_block_plan* plan = reinterpret_cast<heed_block_plan*>(1);
    EXPECT_EQ(
        heed_block_plan_create(block_, batch, len, len_cache, nullptr, &plan),
        HEED_INVALID_ARGUMENT);
    EXPECT_EQ(plan, nullptr);
    EXPECT_THAT(heed_last_error(), HasSubstr(words));
  }

  BlockCase case_ = SmallBlock();
  heed_block* block_ = nullptr;
};

TEST_F(BlockPlans, SizesAndTarget) {
  ExpectRefusedPlan(-1, 5, 0, "batch is -1; expected 0 to 2147483647");
  ExpectRefusedPlan(1, -5, 0, "len is -5; expected 0 to 2147483647");
  ExpectRefusedPlan(1, 5, int64_t{1} << 32, "len_cache is 4294967296");
  ExpectRefusedPlan(1, 6, 5, "len is 6; expected at most len_cache");
  ExpectRefusedPlan(INT32_MAX, INT32_MAX, 0, "overflow 64 bits");
  heed_block_plan* plan = nullptr;
  EXPECT_EQ(heed_block_plan_create(nullptr, 1, 1, 0, nullptr, &plan),
            HEED_INVALID_ARGUMENT);
  EXPECT_STREQ(heed_last_error(), "block is NULL; expected a heed_block");
  EXPECT_EQ(heed_block_plan_create(block_, 1, 1, 0, nullptr, nullptr),
            HEED_INVALID_ARGUMENT);
  heed_options options;
  heed_options_init(&options);
  options.target = "Z80";
  EXPECT_EQ(heed_block_plan_create(block_, 1, 1, 0, &options, &plan),
            HEED_INVALID_ARGUMENT);
  EXPECT_THAT(heed_last_error(),
              HasSubstr("options.target is \"Z80\"; expected NULL or the "
                        "block's own"));
}

TEST_F(BlockPlans, NothingToDoIsASuccess) {
  for (const auto& [batch, len] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}}) {
    heed_block_plan* plan = nullptr;
    ASSERT_EQ(heed_block_plan_create(block_, batch, len, 0, nullptr, &plan),
              HEED_OK)
        << heed_last_error();
    std::vector<char> workspace(heed_block_plan_workspace_size(plan) + 64);
    heed_block_call call;
    heed_block_call_init(&call);
    call.workspace = reinterpret_cast<void*>(
        (reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
    call.workspace_size = heed_block_plan_workspace_size(plan);
    EXPECT_EQ(heed_block_run(plan, &call), HEED_OK) << heed_last_error();
    heed_block_plan_destroy(plan);
  }
}

TEST_F(BlockPlans, DescribeSaysWhatRuns) {
  heed_block_plan* plan = nullptr;
  ASSERT_EQ(heed_block_plan_create(block_, 2, 5, 9, nullptr, &plan), HEED_OK);
  std::string text(heed_block_plan_describe(plan, nullptr, 0), '\0');
  heed_block_plan_describe(plan, text.data(), text.size() + 1);
  EXPECT_THAT(text, HasSubstr("block=d8_norm-layer_qkv-f32_rope-half_out-f32_"
                              "residual batch=2 len=5 cache=9 target="));
  EXPECT_THAT(text, HasSubstr(" attention=(problem=b2_hq4_hkv2_q5_k9_"));
  heed_block_plan_destroy(plan);
}

using ChangeCall = std::function<void(heed_block_call*)>;

// A call against a cache of 9 tokens, with every output, and changes to it.
class BlockCalls : public BlockPlans {
 protected:
  void SetUp() override {
    BlockPlans::SetUp();
    ASSERT_EQ(heed_block_plan_create(block_, 2, 5, 9, nullptr, &plan_),
              HEED_OK);
    BindValues(case_, 2, 5, 9, &call_, &values_);
    const heed_block_desc& desc = case_.desc;
    k_.resize(static_cast<size_t>(2 * desc.heads_kv * 9 * desc.dim_qk));
    v_.resize(static_cast<size_t>(2 * desc.heads_kv * 9 * desc.dim_v));
    call_.x = heed_dense_input(case_.x.data(), 1, 5, desc.d_model);
    call_.positions = positions_;
    call_.k_cache = heed_dense_output(k_.data(), desc.heads_kv, 9, desc.dim_qk);
    call_.v_cache = heed_dense_output(v_.data(), desc.heads_kv, 9, desc.dim_v);
    call_.workspace_size = heed_block_plan_workspace_size(plan_);
    workspace_.reset(
        std::aligned_alloc(64, (call_.workspace_size + 127) / 64 * 64));
    call_.workspace = workspace_.get();
  }
  void TearDown() override {
    heed_block_plan_destroy(plan_);
    BlockPlans::TearDown();
  }

  void ExpectRefused(const ChangeCall& change, const std::string& words) {
    heed_block_call call = call_;
    change(&call);
    const std::vector<float> y = values_.y, k = k_;
    EXPECT_EQ(heed_block_run(plan_, &call), HEED_INVALID_ARGUMENT) << words;
    EXPECT_THAT(heed_last_error(), HasSubstr(words));
    EXPECT_EQ(values_.y, y);
    EXPECT_EQ(k_, k);
  }

  int64_t positions_[2] = {0, 4};
  BlockValues values_;
  std::vector<float> k_, v_;
  std::unique_ptr<void, void (*)(void*)> workspace_{nullptr, std::free};
  heed_block_plan* plan_ = nullptr;
  heed_block_call call_;
};

TEST_F(BlockCalls, ARightCallRuns) {
  EXPECT_EQ(heed_block_run(plan_, &call_), HEED_OK) << heed_last_error();
}

TEST_F(BlockCalls, PointersAndStrides) {
  using C = heed_block_call;
  ExpectRefused([](C* c) { c->struct_size = 1; }, "call.struct_size is 1");
  ExpectRefused([](C* c) { c->x.data = nullptr; }, "call.x.data is NULL");
  ExpectRefused([](C* c) { c->y.data = nullptr; }, "call.y.data is NULL");
  ExpectRefused([](C* c) { c->x.stride_dim = 2; },
                "call.x.stride_dim is 2; expected 1");
  ExpectRefused([](C* c) { c->y.stride_token = 0; },
                "call.y.stride_token is 0 with 5 indices");
  ExpectRefused([](C* c) { c->k_cache.data = nullptr; },
                "call.k_cache.data is NULL");
  ExpectRefused([](C* c) { c->v_cache.stride_token = 1; },
                "call.v_cache overlaps itself");
  ExpectRefused([](C* c) { c->z.data = static_cast<char*>(c->z.data) + 1; },
                "expected a multiple of 4 bytes");
  ExpectRefused([](C* c) { c->y.data = const_cast<void*>(c->x.data); },
                "call.y at");
  ExpectRefused([](C* c) { c->resid = c->y; }, "call.resid at");
  ExpectRefused([](C* c) { c->pattern = c->scores; }, "call.pattern at");
  ExpectRefused([](C* c) { c->q.data = c->workspace; }, "call.workspace at");
}

TEST_F(BlockCalls, WorkspaceAndPositions) {
  using C = heed_block_call;
  ExpectRefused([](C* c) { c->workspace = nullptr; },
                "call.workspace is NULL; expected");
  ExpectRefused([](C* c) { --c->workspace_size; },
                "as heed_block_plan_workspace_size() says");
  ExpectRefused(
      [](C* c) { c->workspace = static_cast<char*>(c->workspace) + 8; },
      "expected a multiple of 64 bytes");
  ExpectRefused([](C* c) { c->positions = nullptr; },
                "call.positions is NULL; expected the tokens that each of 2");
  positions_[1] = 5;
  ExpectRefused([](C*) {},
                "call.positions of sequence 1 is 5; expected 0 or more, and "
                "room for 5 new tokens among 9");
  positions_[1] = -1;
  ExpectRefused([](C*) {}, "call.positions of sequence 1 is -1");
}

// Rows apart from each other, batches in reverse, and what lies between.
TEST_F(BlockCalls, StridesOfEveryKind) {
  const BlockValues want = RunBlock(case_);
  heed_block_plan* plan = nullptr;
  ASSERT_EQ(heed_block_plan_create(block_, 2, 5, 0, nullptr, &plan), HEED_OK);
  std::vector<float> x(200, NAN), y(200, -7.0f);
  heed_block_call call;
  heed_block_call_init(&call);
  call.x = {x.data() + 100, -100, 1234567, 11, 1};
  call.y = {y.data() + 100, -100, 7654321, 13, 1};
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 5; ++t) {
      std::copy_n(case_.x.begin() + (b * 5 + t) * 8, 8,
                  x.begin() + 100 - b * 100 + t * 11);
    }
  }
  call.workspace_size = heed_block_plan_workspace_size(plan);
  const std::unique_ptr<void, void (*)(void*)> workspace(
      std::aligned_alloc(64, (call.workspace_size + 63) / 64 * 64), std::free);
  call.workspace = workspace.get();
  ASSERT_EQ(heed_block_run(plan, &call), HEED_OK) << heed_last_error();
  size_t written = 0;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 5; ++t) {
      for (int64_t i = 0; i < 8; ++i, ++written) {
        float& got = y[static_cast<size_t>(100 - b * 100 + t * 13 + i)];
        EXPECT_EQ(got, want.y[static_cast<size_t>((b * 5 + t) * 8 + i)]);
        got = -7.0f;
      }
    }
  }
  EXPECT_EQ(std::count(y.begin(), y.end(), -7.0f), 200);
  heed_block_plan_destroy(plan);
}

}  // namespace
}  // namespace heed::test
