// A block's bits are the scalar program's, on every target with fused
// multiply-add, for anything a block can be; and nothing that must not show in
// them does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/block_case.h"
#include "tests/block_program.h"

namespace heed::test {
namespace {

std::vector<std::string> FusedTargets() {
  return TargetNames(/*fused_only=*/true);
}

Settings On(const std::string& target, int threads = 1) {
  Settings settings;
  settings.target = target;
  settings.threads = threads;
  return settings;
}

TEST(BlockBits, RandomBlocksAreTheScalarPrograms) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const BlockCase c = RandomBlock(seed);
    const BlockValues want = BlockProgram(c);
    for (const std::string& target : FusedTargets()) {
      const int threads = 1 + static_cast<int>(seed % 3);
      ASSERT_EQ(Difference(RunBlock(c, On(target, threads)), want), "")
          << "seed " << seed << ", " << target << ": " << NameOf(c);
    }
  }
}

BlockCase Sized(int64_t d_model, int64_t heads_q, int64_t heads_kv, int64_t dim,
                int64_t batch, int64_t len, int32_t dtype) {
  BlockCase c;
  heed_block_desc_init(&c.desc);
  c.desc.d_model = d_model;
  c.desc.heads_q = heads_q;
  c.desc.heads_kv = heads_kv;
  c.desc.dim_qk = c.desc.dim_v = dim;
  c.desc.norm = HEED_NORM_RMS;
  c.desc.norm_place = HEED_NORM_PRE;
  c.desc.norm_eps = 1e-5;
  c.desc.causal = 1;
  c.desc.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  c.desc.rope = HEED_ROPE_HALF;
  c.desc.rope_theta = 10000;
  c.batch = batch;
  c.len = len;
  for (StoredMatrix* m : {&c.qkv, &c.q, &c.k, &c.v, &c.out}) {
    m->dtype = dtype;
    m->layout = HEED_LAYOUT_OUT_IN;
  }
  Random random(static_cast<uint64_t>(d_model * 31 + len));
  FillNormal(&random, &c);
  return c;
}

// Rows around every group of rows, and enough that tasks have several; widths
// of several chunks of inputs.
TEST(BlockBits, AnyNumberOfTokens) {
  for (const int32_t dtype : {HEED_F32, HEED_F16, HEED_BF16}) {
    const BlockCase whole = Sized(264, 4, 2, 24, 1, 70, dtype);
    const BlockValues all = BlockProgram(whole);
    for (int64_t len = 1; len <= 70; len += len < 27 ? 1 : 11) {
      BlockCase c = whole;
      c.len = len;
      c.x.resize(static_cast<size_t>(len * c.desc.d_model));
      for (const std::string& target : FusedTargets()) {
        ASSERT_EQ(
            Difference(RunBlock(c, On(target)), FirstTokens(whole, all, len)),
            "")
            << len << " tokens, type " << dtype << ", " << target;
      }
    }
  }
}

// More rows than a task has, more chunks than two.
TEST(BlockBits, ManyTokensAndInputs) {
  const BlockCase c = Sized(776, 2, 1, 260, 3, 171, HEED_F32);
  const BlockValues want = BlockProgram(c);
  for (const std::string& target : FusedTargets()) {
    for (const int threads : {1, 2, 5}) {
      ASSERT_EQ(Difference(RunBlock(c, On(target, threads)), want), "")
          << target << ", " << threads << " threads";
    }
  }
}

// NaN, infinities, subnormals and huge numbers in some tokens: their own rows
// and those that see them.
TEST(BlockBits, NumbersOfEveryKind) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    BlockCase c = RandomBlock(1000 + seed);
    Random random(seed);
    const float kinds[] = {NAN, INFINITY, -INFINITY, 1e-40f, 3e38f, -0.0f, 0};
    for (float& x : c.x) {
      if (random.Below(static_cast<int64_t>(c.x.size())) < 3) {
        x = kinds[random.Below(7)];
      }
    }
    const BlockValues want = BlockProgram(c);
    for (const std::string& target : FusedTargets()) {
      ASSERT_EQ(Difference(RunBlock(c, On(target)), want), "")
          << "seed " << seed << ", " << target << ": " << NameOf(c);
    }
  }
}

// Also without fused multiply-add, where the bits are others.
TEST(BlockBits, ThreadsRunnersAndTilesDoNotShow) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    BlockCase c = RandomBlock(2000 + seed);
    for (const std::string& target : TargetNames(/*fused_only=*/false)) {
      const BlockValues want = RunBlock(c, On(target), true);
      ASSERT_EQ(want.status, HEED_OK) << want.error;
      for (const heed_runner* runner :
           {DefaultRunner(), SerialRunner(), ThreadRunner()}) {
        Settings settings = On(target, 4);
        settings.runner = runner;
        settings.pinned = true;
        settings.tile = VariedTiles()[seed % VariedTiles().size()];
        ASSERT_EQ(Difference(RunBlock(c, settings, true), want), "")
            << "seed " << seed << ", " << target << ": " << NameOf(c);
      }
    }
  }
}

// A sequence's bits are those it has alone.
TEST(BlockBits, TheBatchDoesNotShow) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const BlockCase c = RandomBlock(3000 + seed);
    const BlockValues all = RunBlock(c);
    BlockCase alone = c;
    const auto run = static_cast<int64_t>(c.x.size()) / c.batch;
    const int64_t last = c.batch - 1;
    alone.batch = 1;
    alone.x.assign(c.x.begin() + last * run, c.x.end());
    if (!c.positions.empty()) alone.positions = {c.positions[last]};
    const BlockValues one = RunBlock(alone);
    ASSERT_TRUE(std::equal(one.y.begin(), one.y.end(),
                           all.y.begin() + last * run,
                           [](float a, float b) { return SameBits(a, b); }))
        << "seed " << seed << ": " << NameOf(c);
  }
}

// A checkpoint mapped into memory has its tensors anywhere.
TEST(BlockBits, WeightsAtAnyAddress) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const BlockCase c = RandomBlock(4000 + seed);
    const BlockValues want = RunBlock(c);
    std::vector<std::vector<char>> keep;
    heed_block_desc desc = Desc(c);
    for (heed_matrix* m : {&desc.qkv, &desc.q, &desc.k, &desc.v, &desc.out}) {
      if (m->data == nullptr) continue;
      const StoredMatrix& stored = m == &desc.qkv ? c.qkv
                                   : m == &desc.q ? c.q
                                   : m == &desc.k ? c.k
                                   : m == &desc.v ? c.v
                                                  : c.out;
      for (const auto& [bytes, data] :
           {std::pair<const std::vector<char>&, const void**>{stored.bytes,
                                                              &m->data},
            {stored.bias_bytes, &m->bias.data}}) {
        if (bytes.empty()) continue;
        keep.emplace_back(1, '\x7F');
        keep.back().insert(keep.back().end(), bytes.begin(), bytes.end());
        *data = keep.back().data() + 1;
      }
    }
    EXPECT_EQ(Difference(RunBlock(c, {}, false, &desc), want), "")
        << "seed " << seed << ": " << NameOf(c);
  }
}

// Each thread has a workspace of its own, and the block and plan are shared.
TEST(ConcurrencyOfBlocks, OnePlanRunsOnSeveralThreads) {
  const BlockCase c = Sized(64, 4, 2, 16, 2, 37, HEED_F32);
  const BlockValues want = BlockProgram(c);
  const heed_block_desc desc = Desc(c);
  Settings settings = On("", 2);
  const heed_options options = OptionsOf(settings);
  heed_block* block = nullptr;
  heed_block_plan* plan = nullptr;
  ASSERT_EQ(heed_block_create(&desc, &options, &block), HEED_OK);
  ASSERT_EQ(heed_block_plan_create(block, c.batch, c.len, 0, &options, &plan),
            HEED_OK);
  const size_t size = (heed_block_plan_workspace_size(plan) + 63) / 64 * 64;
  std::vector<BlockValues> values(4);
  std::vector<std::thread> threads;
  for (BlockValues& mine : values) {
    threads.emplace_back([&] {
      void* workspace = std::aligned_alloc(64, size);
      heed_block_call call;
      BindValues(c, c.batch, c.len, 0, &call, &mine);
      call.x = heed_dense_input(c.x.data(), 1, c.len, desc.d_model);
      call.workspace = workspace;
      call.workspace_size = size;
      for (int i = 0; i < 5 && mine.status == HEED_OK; ++i) {
        mine.status = heed_block_run(plan, &call);
      }
      std::free(workspace);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const BlockValues& mine : values) {
    if (!TargetNames(true).empty()) {
      EXPECT_EQ(Difference(mine, want), "");
    }
  }
  heed_block_plan_destroy(plan);
  heed_block_destroy(block);
}

// A runner that does not run, or throws, is an error and no crash.
TEST(BlockBits, ARunnerThatFailsIsReported) {
  const heed_runner idle = {
      [](void*, size_t, void (*)(void*, size_t), void*) {}, nullptr};
  const heed_runner throwing = {
      [](void*, size_t, void (*)(void*, size_t), void*) {
        throw std::runtime_error("no thread today");
      },
      nullptr};
  const BlockCase c = Sized(512, 4, 2, 16, 1, 64, HEED_F32);
  for (const heed_runner* runner : {&idle, &throwing}) {
    const heed_block_desc desc = Desc(c);
    Settings settings = On("", 2);
    settings.runner = runner;
    const heed_options options = OptionsOf(settings);
    heed_block* block = nullptr;
    EXPECT_EQ(heed_block_create(&desc, &options, &block), HEED_INTERNAL);
    EXPECT_EQ(block, nullptr);
    // Packed by oneTBB, run by the runner.
    ASSERT_EQ(heed_block_create(&desc, nullptr, &block), HEED_OK);
    heed_block_plan* plan = nullptr;
    ASSERT_EQ(heed_block_plan_create(block, 1, c.len, 0, &options, &plan),
              HEED_OK);
    BlockValues values;
    heed_block_call call;
    BindValues(c, 1, c.len, 0, &call, &values);
    call.x = heed_dense_input(c.x.data(), 1, c.len, desc.d_model);
    call.workspace_size = (heed_block_plan_workspace_size(plan) + 63) / 64 * 64;
    call.workspace = std::aligned_alloc(64, call.workspace_size);
    EXPECT_EQ(heed_block_run(plan, &call), HEED_INTERNAL);
    EXPECT_NE(std::string(heed_last_error()).find("the runner"),
              std::string::npos)
        << heed_last_error();
    std::free(call.workspace);
    heed_block_plan_destroy(plan);
    heed_block_destroy(block);
  }
}

// The comparisons could tell: the same numbers with chains of another length
// are other bits.
TEST(BlockBits, AnotherOrderOfSumsWouldShow) {
  BlockCase c = Sized(520, 2, 2, 16, 1, 9, HEED_F32);
  const BlockValues want = BlockProgram(c);
  // Inputs in reverse, which is the same sum in another order.
  const int64_t n = c.desc.d_model;
  const int64_t outputs = c.QkvOutputs();
  for (int64_t row = 0; row < c.len; ++row) {
    std::reverse(c.x.begin() + row * n, c.x.begin() + (row + 1) * n);
  }
  StoredMatrix& m = c.qkv;
  for (int64_t i = 0; i < n / 2; ++i) {
    std::swap_ranges(m.values.begin() + i * outputs,
                     m.values.begin() + (i + 1) * outputs,
                     m.values.begin() + (n - 1 - i) * outputs);
  }
  Store(&m, !m.bias_bytes.empty());
  EXPECT_NE(Difference(RunBlock(c), want), "");
}

}  // namespace
}  // namespace heed::test
