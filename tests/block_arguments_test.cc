// What a block refuses, and in which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "tests/block_case.h"

namespace heed::test {
namespace {

using ::testing::HasSubstr;

using ChangeDesc = std::function<void(heed_block_desc*)>;

void ExpectRefusedDesc(const ChangeDesc& change, const std::string& words,
                       heed_status status = HEED_INVALID_ARGUMENT) {
  const BlockCase c = SmallBlock();
  heed_block_desc desc = Desc(c);
  change(&desc);
  heed_block* block = reinterpret_cast<heed_block*>(1);
  EXPECT_EQ(heed_block_create(&desc, nullptr, &block), status) << words;
  EXPECT_EQ(block, nullptr);
  EXPECT_THAT(heed_last_error(), HasSubstr(words));
  EXPECT_EQ(std::string(heed_last_error()).find('\n'), std::string::npos);
}

TEST(BlockArguments, SizesOfADescription) {
  using D = heed_block_desc;
  ExpectRefusedDesc([](D* d) { d->struct_size = 8; },
                    "desc.struct_size is 8; expected");
  ExpectRefusedDesc([](D* d) { d->d_model = 0; },
                    "desc.d_model is 0; expected 1 to 16777216");
  ExpectRefusedDesc([](D* d) { d->heads_q = -4; },
                    "desc.heads_q is -4; expected 1 to 16777216");
  ExpectRefusedDesc([](D* d) { d->heads_kv = 3; },
                    "desc.heads_q is 4; expected a multiple of heads_kv, "
                    "which is 3");
  ExpectRefusedDesc([](D* d) { d->dim_qk = 0; }, "desc.dim_qk is 0");
  ExpectRefusedDesc([](D* d) { d->dim_v = int64_t{1} << 40; },
                    "desc.dim_v is 1099511627776");
}

TEST(BlockArguments, NormOfADescription) {
  using D = heed_block_desc;
  ExpectRefusedDesc([](D* d) { d->norm = 3; },
                    "desc.norm is 3; expected HEED_NORM_NONE (0)");
  ExpectRefusedDesc([](D* d) { d->norm_place = 0; },
                    "desc.norm_place is 0; expected HEED_NORM_PRE (1)");
  ExpectRefusedDesc([](D* d) { d->norm_eps = NAN; },
                    "desc.norm_eps is nan; expected a finite number");
  ExpectRefusedDesc([](D* d) { d->norm_eps = -1e-5; },
                    "desc.norm_eps is -1e-05; expected a finite number");
  ExpectRefusedDesc([](D* d) { d->norm_eps = INFINITY; },
                    "desc.norm_eps is inf");
  static const float gain[8] = {};
  ExpectRefusedDesc(
      [](D* d) {
        d->norm_gain = {gain, 9, 0};
      },
      "desc.norm_gain.dtype is 9; expected HEED_F32 (1)");
  ExpectRefusedDesc(
      [](D* d) {
        d->norm_bias = {gain, HEED_F32, 1};
      },
      "desc.norm_bias.reserved is 1; expected 0");
}

TEST(BlockArguments, MatricesOfADescription) {
  using D = heed_block_desc;
  ExpectRefusedDesc([](D* d) { d->qkv.data = nullptr; },
                    "desc.qkv.data is NULL; expected a matrix of 8 inputs and "
                    "42 outputs, or desc.q, .k and .v");
  ExpectRefusedDesc([](D* d) { d->k = d->qkv; }, "desc.k.data is 0x");
  ExpectRefusedDesc(
      [](D* d) {
        d->q = d->qkv;
        d->qkv.data = nullptr;
      },
      "desc.k.data is NULL; expected a matrix of 8 inputs and 12 outputs");
  ExpectRefusedDesc([](D* d) { d->out.data = nullptr; },
                    "desc.out.data is NULL; expected a matrix of 12 inputs "
                    "and 8 outputs");
  ExpectRefusedDesc([](D* d) { d->qkv.dtype = 0; },
                    "desc.qkv.dtype is 0; expected HEED_F32 (1)");
  ExpectRefusedDesc([](D* d) { d->qkv.layout = 0; },
                    "desc.qkv.layout is 0; expected HEED_LAYOUT_IN_OUT (1)");
  ExpectRefusedDesc([](D* d) { d->out.stride = 7; },
                    "desc.out.stride is 7; expected 0 (dense) or at least 8");
  ExpectRefusedDesc([](D* d) { d->out.stride = INT64_MAX / 8; },
                    "overflow 64 bits; expected less than 2^63");
  ExpectRefusedDesc(
      [](D* d) {
        d->out.bias = {d->out.data, -1, 0};
      },
      "desc.out.bias.dtype is -1; expected HEED_F32 (1)");
}

TEST(BlockArguments, RopeOfADescription) {
  using D = heed_block_desc;
  ExpectRefusedDesc([](D* d) { d->rope = 3; },
                    "desc.rope is 3; expected HEED_ROPE_NONE (0)");
  for (const int64_t width : {1, 3, 8, -2}) {
    ExpectRefusedDesc([width](D* d) { d->rope_width = width; },
                      "desc.rope_width is " + std::to_string(width) +
                          "; expected an even number up to dim_qk");
  }
  ExpectRefusedDesc([](D* d) { d->rope_theta = 0; },
                    "desc.rope_theta is 0; expected a finite number above 0");
  ExpectRefusedDesc([](D* d) { d->rope_theta = NAN; }, "desc.rope_theta is ");
  ExpectRefusedDesc([](D* d) { d->rope_scaling = 3; },
                    "desc.rope_scaling is 3; expected HEED_ROPE_SCALING_NONE");
  ExpectRefusedDesc([](D* d) { d->rope_scaling = HEED_ROPE_SCALING_LINEAR; },
                    "desc.rope_factor is 0; expected a finite number above 0");
  const auto llama3 = [](D* d) {
    d->rope_scaling = HEED_ROPE_SCALING_LLAMA3;
    d->rope_factor = 8;
    d->rope_low_freq_factor = 1;
    d->rope_high_freq_factor = 4;
  };
  ExpectRefusedDesc(
      [&](D* d) {
        llama3(d);
        d->rope_low_freq_factor = 0;
      },
      "desc.rope_low_freq_factor is 0");
  ExpectRefusedDesc(
      [&](D* d) {
        llama3(d);
        d->rope_high_freq_factor = 1;
      },
      "desc.rope_high_freq_factor is 1; expected more than "
      "rope_low_freq_factor, which is 1");
  ExpectRefusedDesc(llama3, "desc.rope_original_len is 0; expected");
}

TEST(BlockArguments, AttentionOfADescription) {
  using D = heed_block_desc;
  ExpectRefusedDesc([](D* d) { d->causal = 2; },
                    "desc.causal is 2; expected 0 or 1");
  ExpectRefusedDesc([](D* d) { d->window = -1; },
                    "desc.window is -1; expected 0 or 1");
  ExpectRefusedDesc([](D* d) { d->residual = 7; },
                    "desc.residual is 7; expected 0 or 1");
  ExpectRefusedDesc([](D* d) { d->scale_mode = 0; },
                    "desc.scale_mode is 0; expected HEED_SCALE_INV_SQRT_DIM");
  ExpectRefusedDesc(
      [](D* d) {
        d->scale_mode = HEED_SCALE_VALUE;
        d->scale = NAN;
      },
      "desc, as its attention's problem.scale is nan; expected");
  ExpectRefusedDesc([](D* d) { d->softcap = -1; },
                    "problem.softcap is -1; expected");
  ExpectRefusedDesc(
      [](D* d) {
        d->window = 1;
        d->window_left = -2;
      },
      "problem.window_left is -2; expected");
}

TEST(BlockArguments, NullPointersAndOptions) {
  const BlockCase c = SmallBlock();
  const heed_block_desc desc = Desc(c);
  heed_block* block = nullptr;
  EXPECT_EQ(heed_block_create(&desc, nullptr, nullptr), HEED_INVALID_ARGUMENT);
  EXPECT_STREQ(heed_last_error(), "block is NULL; expected an address");
  EXPECT_EQ(heed_block_create(nullptr, nullptr, &block), HEED_INVALID_ARGUMENT);
  EXPECT_STREQ(heed_last_error(), "desc is NULL; expected a heed_block_desc");
  heed_options options;
  heed_options_init(&options);
  options.target = "Z80";
  EXPECT_EQ(heed_block_create(&desc, &options, &block), HEED_UNSUPPORTED);
  EXPECT_THAT(heed_last_error(), HasSubstr("options.target is \"Z80\""));
  options.target = nullptr;
  options.threads = -1;
  EXPECT_EQ(heed_block_create(&desc, &options, &block), HEED_INVALID_ARGUMENT);
  EXPECT_EQ(heed_block_run(nullptr, nullptr), HEED_INVALID_ARGUMENT);
  EXPECT_STREQ(heed_last_error(), "plan is NULL; expected a heed_block_plan");
  heed_block_destroy(nullptr);
  heed_block_plan_destroy(nullptr);
  heed_block_desc_init(nullptr);
  heed_block_call_init(nullptr);
  EXPECT_EQ(heed_block_plan_workspace_size(nullptr), 0u);
  EXPECT_EQ(heed_block_plan_describe(nullptr, nullptr, 0), 0u);
}

}  // namespace
}  // namespace heed::test
