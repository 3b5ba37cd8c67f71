// A process that has used heed may fork: its children compute too, with as many
// threads, although oneTBB's stay behind.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/runner_tbb.h"
#include "runtime/runner_threads.h"
#include "tests/attention_case.h"
#include "tests/input_families.h"
#include "tests/sanitizer.h"

namespace heed::test {
namespace {

// What `child` returns in a forked process; -1 if that did not end by itself.
int InChild(const std::function<int()>& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);            // rather than wait for ever
    _exit(child() & 63);  // without the parent's destructors
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// True if `count` tasks of a runner are at work at the same time.
bool RunsTogether(const heed_runner& runner, size_t count) {
  struct Meeting {
    size_t count;
    std::atomic<size_t> here{0};
    std::atomic<bool> met{true};
  } meeting{count, {0}, {true}};
  runner.run(
      runner.runner_ctx, count,
      [](void* context, size_t) {
        Meeting& m = *static_cast<Meeting*>(context);
        ++m.here;
        // Only a runner that never starts the others waits this long.
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (m.here < m.count) {
          if (std::chrono::steady_clock::now() > end) m.met = false;
          if (!m.met) return;
          std::this_thread::yield();
        }
      },
      &meeting);
  return meeting.met;
}

// Of clang 14 the sanitizers' own locks are as the fork found them: where
// another thread had one, the child's first thread waits for it for ever (seen
// once).
class Fork : public testing::Test {
 protected:
  void SetUp() override {
    if (HEED_MALLOC_SANITIZER) GTEST_SKIP() << "a sanitizer's locks";
  }
};

TEST_F(Fork, ChildGivesTheSameBitsFromThePlanItHasAndFromANewOne) {
  const heed_problem p =
      MakeProblem(1, 4, 2, 61, 93, 24, 16, HEED_CAUSAL_BOTTOM_RIGHT);
  Case c = MakeCase(p);
  Random random(7);
  Families().front().fill(&random, &c);
  const Result want = RunHeed(c);

  heed_options options;
  heed_options_init(&options);
  options.threads = 3;
  heed_plan* plan = nullptr;
  ASSERT_EQ(heed_plan_create(&p, &options, &plan), HEED_OK);
  std::vector<char> memory(heed_plan_workspace_size(plan) + 64);
  const auto run = [&](Result* result) {
    heed_call call = DenseCall(c, result);
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    call.workspace = memory.data() + (64 - address % 64) % 64;
    call.workspace_size = heed_plan_workspace_size(plan);
    return heed_plan_run(plan, &call) == HEED_OK;
  };
  Result before;
  ASSERT_TRUE(run(&before));
  ASSERT_TRUE(SameBits(before, want));

  const int wrong = InChild([&] {
    Result kept;
    if (!run(&kept) || !SameBits(kept, want)) return 1;
    if (!SameBits(RunHeed(c), want)) return 2;
    // A child of a child.
    return InChild([&] { return SameBits(RunHeed(c), want) ? 0 : 4; });
  });
  EXPECT_EQ(wrong, 0);
  heed_plan_destroy(plan);
}

TEST_F(Fork, ChildHasThreads) {
  const heed_runner runner = TbbRunner();
  // Makes oneTBB start what it has, if it has not yet.
  runner.run(
      runner.runner_ctx, 4, [](void*, size_t) {}, nullptr);
  EXPECT_EQ(InChild([&] { return RunsTogether(runner, 3) ? 0 : 1; }), 0);
  EXPECT_EQ(InChild([&] { return ArenaConcurrency() == kNoArena ? 0 : 1; }), 0);
}

TEST(RunOnThreads, RunsEveryIndexOnceAndAtTheSameTime) {
  for (const size_t count : {0, 1, 2, 7}) {
    std::vector<std::atomic<int>> times(count);
    RunOnThreads(
        count,
        [](void* context, size_t i) {
          ++(*static_cast<std::vector<std::atomic<int>>*>(context))[i];
        },
        &times);
    for (const auto& n : times) EXPECT_EQ(n.load(), 1);
  }
  const heed_runner runner = {
      [](void*, size_t count, void (*task)(void*, size_t), void* context) {
        RunOnThreads(count, task, context);
      },
      nullptr};
  EXPECT_TRUE(RunsTogether(runner, 3));
}

}  // namespace
}  // namespace heed::test
