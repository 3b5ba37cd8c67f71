// A plan is immutable: any number of threads may run it at once, under any
// runner, also from inside the caller's own parallel loops.
#include <gtest/gtest.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/attention_case.h"
#include "tests/input_families.h"

namespace heed::test {
namespace {

using FreedMemory = std::unique_ptr<void, decltype(&std::free)>;

FreedMemory MakeWorkspace(const heed_plan* plan) {
  const size_t size = (heed_plan_workspace_size(plan) + 64) / 64 * 64;
  return FreedMemory(std::aligned_alloc(64, size), &std::free);
}

heed_status RunPlan(const heed_plan* plan, const Case& c, Result* result) {
  const FreedMemory workspace = MakeWorkspace(plan);
  heed_call call = DenseCall(c, result);
  call.workspace = workspace.get();
  call.workspace_size = heed_plan_workspace_size(plan);
  return heed_plan_run(plan, &call);
}

heed_plan* MakePlan(const heed_problem& problem, int threads,
                    const heed_runner* runner = DefaultRunner()) {
  heed_options options;
  heed_options_init(&options);
  options.threads = threads;
  options.tuning = HEED_TUNING_PINNED;
  options.tile.row_block = 1;  // many tasks
  options.runner = runner;
  heed_plan* plan = nullptr;
  EXPECT_EQ(heed_plan_create(&problem, &options, &plan), HEED_OK)
      << heed_last_error();
  return plan;
}

TEST(Concurrency, OnePlanRunsOnManyThreadsAtOnceOnDifferentData) {
  const heed_problem p =
      MakeProblem(1, 4, 2, 37, 101, 24, 16, HEED_CAUSAL_BOTTOM_RIGHT);
  for (const int threads : {1, 3}) {
    heed_plan* plan = MakePlan(p, threads);
    ASSERT_NE(plan, nullptr);
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 16; ++caller) {
      callers.emplace_back([&, caller] {
        const Case c = NormalCase(p, caller);
        const Result want = RunHeed(c);
        for (int round = 0; round < 20; ++round) {
          Result got;
          if (RunPlan(plan, c, &got) != HEED_OK || !SameBits(got, want)) {
            ++wrong;
          }
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong.load(), 0);
    heed_plan_destroy(plan);
  }
}

TEST(Concurrency, RunsInsideTheCallersParallelLoop) {
  if (DefaultRunner() != nullptr) GTEST_SKIP() << "oneTBB cannot be used here";
  const heed_problem p =
      MakeProblem(1, 4, 1, 30, 60, 16, 16, HEED_CAUSAL_TOP_LEFT);
  heed_plan* plan = MakePlan(p, 4);
  ASSERT_NE(plan, nullptr);
  std::vector<Case> cases;
  std::vector<Result> want;
  for (int i = 0; i < 64; ++i) {
    cases.push_back(NormalCase(p, i));
    Settings settings;
    settings.runner = SerialRunner();
    want.push_back(RunHeed(cases.back(), settings));
  }
  std::atomic<int> wrong{0};
  for (int round = 0; round < 50; ++round) {
    tbb::parallel_for(0, 64, [&](int i) {
      Result got;
      if (RunPlan(plan, cases[i], &got) != HEED_OK || !SameBits(got, want[i])) {
        ++wrong;
      }
    });
  }
  EXPECT_EQ(wrong.load(), 0);
  heed_plan_destroy(plan);
}

TEST(Concurrency, RunsInTheCallersArenaOfOneThread) {
  if (DefaultRunner() != nullptr) GTEST_SKIP() << "oneTBB cannot be used here";
  const Case c = NormalCase(MakeProblem(1, 8, 8, 30, 60, 16, 16), 3);
  const Result want = RunHeed(c);
  tbb::task_arena arena(1);
  Result got;
  arena.execute([&] {
    Settings settings;
    settings.threads = 4;
    got = RunHeed(c, settings);
  });
  EXPECT_EQ(Difference(got, want), "");
}

struct Recorder {
  std::atomic<size_t> calls{0}, tasks{0}, largest{0};
};

void RecordAndRun(void* ctx, size_t count, void (*task)(void*, size_t),
                  void* task_ctx) {
  Recorder& recorder = *static_cast<Recorder*>(ctx);
  ++recorder.calls;
  recorder.largest = count;
  for (size_t i = count; i-- > 0;) {
    task(task_ctx, i);
    ++recorder.tasks;
  }
}

TEST(Concurrency, TheCallersRunnerGetsAtMostThePlansThreads) {
  const Case c = NormalCase(MakeProblem(1, 8, 8, 30, 60, 16, 16), 3);
  const Result want = RunHeed(c);
  Recorder recorder;
  const heed_runner runner = {RecordAndRun, &recorder};
  heed_plan* plan = MakePlan(c.problem, 5, &runner);
  ASSERT_NE(plan, nullptr);
  Result got;
  ASSERT_EQ(RunPlan(plan, c, &got), HEED_OK) << heed_last_error();
  heed_plan_destroy(plan);
  EXPECT_EQ(Difference(got, want), "");
  EXPECT_EQ(recorder.calls.load(), 1u);
  EXPECT_LE(recorder.largest.load(), 5u);
}

TEST(Concurrency, ErrorsOfOneThreadAreNotSeenByAnother) {
  heed_problem bad = MakeProblem(1, 3, 2, 4, 4, 4, 4);
  heed_plan* plan = nullptr;
  ASSERT_NE(heed_plan_create(&bad, nullptr, &plan), HEED_OK);
  const std::string here = heed_last_error();
  std::thread([] {
    heed_problem other = MakeProblem(-5, 2, 2, 4, 4, 4, 4);
    heed_plan* none = nullptr;
    EXPECT_NE(heed_plan_create(&other, nullptr, &none), HEED_OK);
  }).join();
  EXPECT_EQ(here, heed_last_error());
}

}  // namespace
}  // namespace heed::test
