// heed_plan_run() and heed_block_run() allocate nothing: every way to the heap
// is watched while they run.
//
// A program of its own, because it replaces malloc. Sanitizers replace it too,
// and are let be.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "tests/attention_case.h"
#include "tests/block_case.h"
#include "tests/input_families.h"
#include "tests/random_case.h"
#include "tests/sanitizer.h"

#if defined(__GLIBC__) && !HEED_MALLOC_SANITIZER
#define HEED_TEST_WATCHES_MALLOC 1
#endif

namespace {

std::atomic<bool> watching{false};
std::atomic<long> allocations{0};

}  // namespace

#if HEED_TEST_WATCHES_MALLOC

// glibc's own, which its malloc() is an alias of; operator new calls malloc().
extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  if (watching) ++allocations;
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  if (watching) ++allocations;
  return __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) {
  if (watching) ++allocations;
  return __libc_realloc(old, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  if (watching) ++allocations;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  if (watching) ++allocations;
  *result = __libc_memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}

}  // extern "C"

#endif

namespace heed::test {
namespace {

class Allocation : public ::testing::Test {
 protected:
  void SetUp() override {
#if !HEED_TEST_WATCHES_MALLOC
    GTEST_SKIP() << "malloc belongs to a sanitizer, or the C library is not "
                    "glibc";
#endif
  }
};

long AllocationsOfRun(const Case& c, int threads, const heed_runner* runner,
                      const heed_tile* tile, const std::string& target) {
  heed_options options;
  heed_options_init(&options);
  options.threads = threads;
  options.runner = runner;
  options.target = target.c_str();
  if (tile != nullptr) {
    options.tuning = HEED_TUNING_PINNED;
    options.tile = *tile;
  }
  heed_plan* plan = nullptr;
  EXPECT_EQ(heed_plan_create(&c.problem, &options, &plan), HEED_OK)
      << heed_last_error();
  const size_t size = (heed_plan_workspace_size(plan) + 64) / 64 * 64;
  void* workspace = std::aligned_alloc(64, size);
  Result result;
  heed_call call = DenseCall(c, &result);
  call.workspace = workspace;
  call.workspace_size = size;
  allocations = 0;
  watching = true;
  const heed_status status = heed_plan_run(plan, &call);
  watching = false;
  EXPECT_EQ(status, HEED_OK) << heed_last_error();
  std::free(workspace);
  heed_plan_destroy(plan);
  return allocations;
}

TEST_F(Allocation, TheWatchSeesNewAndMalloc) {
  allocations = 0;
  watching = true;
  std::vector<int>* made = new std::vector<int>(1000);
  watching = false;
  delete made;
  EXPECT_GE(allocations.load(), 2);
}

TEST_F(Allocation, RunAllocatesNothing) {
  for (const int64_t len_k : {1, 50, 801}) {
    for (const int64_t dim : {3, 64, 300}) {
      Case c = MakeCase(MakeProblem(2, 6, 2, 29, len_k, dim, dim + 1,
                                    HEED_CAUSAL_BOTTOM_RIGHT));
      Random random(1);
      Families().front().fill(&random, &c);
      for (const std::string& target : TargetNames(/*fused_only=*/false)) {
        EXPECT_EQ(AllocationsOfRun(c, 1, nullptr, nullptr, target), 0);
        for (const heed_tile& tile : VariedTiles()) {
          EXPECT_EQ(AllocationsOfRun(c, 3, SerialRunner(), &tile, target), 0);
        }
      }
    }
  }
}

// Ragged batches sort their tasks, pages are looked up, and decodes that are
// cut over keys keep states: all in the workspace.
TEST_F(Allocation, RunsOfEveryOptionAllocateNothing) {
  const std::string best = TargetNames(/*fused_only=*/true).front();
  const uint32_t wanted[] = {0,       kRagged,
                             kPages,  kRagged | kPages,
                             kDecode, kDecode | kManyKeys | kRagged};
  for (const uint32_t features : wanted) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const Case c = RandomCase(seed, features);
      for (const int threads : {1, 3}) {
        EXPECT_EQ(AllocationsOfRun(c, threads, SerialRunner(), nullptr, best),
                  0)
            << NameOf(c);
      }
    }
  }
}

// With a cache and without, with every intermediate but scores and pattern.
TEST_F(Allocation, RunsOfBlocksAllocateNothing) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const BlockCase c = RandomBlock(seed);
    const heed_block_desc desc = Desc(c);
    heed_options options;
    heed_options_init(&options);
    options.threads = 3;
    options.runner = SerialRunner();
    heed_block* block = nullptr;
    ASSERT_EQ(heed_block_create(&desc, &options, &block), HEED_OK);
    for (const int64_t room : {int64_t{0}, c.len + 3}) {
      heed_block_plan* plan = nullptr;
      ASSERT_EQ(
          heed_block_plan_create(block, c.batch, c.len, room, &options, &plan),
          HEED_OK);
      BlockValues values;
      heed_block_call call;
      BindValues(c, c.batch, c.len, 0, &call, &values);
      call.x = heed_dense_input(c.x.data(), 1, c.len, desc.d_model);
      const std::vector<int64_t> positions(static_cast<size_t>(c.batch), 2);
      call.positions = positions.data();
      const auto cache = [&](int64_t dim) {
        return std::vector<float>(
            static_cast<size_t>(c.batch * desc.heads_kv * room * dim));
      };
      std::vector<float> k = cache(desc.dim_qk), v = cache(desc.dim_v);
      call.k_cache =
          heed_dense_output(k.data(), desc.heads_kv, room, desc.dim_qk);
      call.v_cache =
          heed_dense_output(v.data(), desc.heads_kv, room, desc.dim_v);
      call.workspace_size =
          (heed_block_plan_workspace_size(plan) + 63) / 64 * 64;
      call.workspace = std::aligned_alloc(64, call.workspace_size);
      allocations = 0;
      watching = true;
      const heed_status status = heed_block_run(plan, &call);
      watching = false;
      EXPECT_EQ(status, HEED_OK) << heed_last_error();
      EXPECT_EQ(allocations.load(), 0) << NameOf(c);
      std::free(call.workspace);
      heed_block_plan_destroy(plan);
    }
    heed_block_destroy(block);
  }
}

TEST_F(Allocation, AFailingRunAllocatesNothing) {
  Case c = MakeCase(MakeProblem(1, 1, 1, 4, 4, 4, 4));
  heed_plan* plan = nullptr;
  ASSERT_EQ(heed_plan_create(&c.problem, nullptr, &plan), HEED_OK);
  Result result;
  heed_call call = DenseCall(c, &result);
  call.q.data = nullptr;
  allocations = 0;
  watching = true;
  const heed_status status = heed_plan_run(plan, &call);
  watching = false;
  EXPECT_EQ(status, HEED_INVALID_ARGUMENT);
  EXPECT_EQ(allocations.load(), 0);
  heed_plan_destroy(plan);
}

}  // namespace
}  // namespace heed::test
