// Public bug reports of other libraries as tests: threads and the C ABI. Each
// test's name begins with the kind and number of its case.
#include <gtest/gtest.h>
#include <tbb/parallel_for.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/attention_case.h"
#include "tests/report_case.h"

namespace heed::test {
namespace {

// pytorch#88718
TEST(PublicReports, PRF05_ResultsDoNotChangeWithTheThreadCount) {
  for (const int64_t len : {1, 7, 97, 101}) {
    const Case c = GenCase(
        MakeProblem(2, 6, 2, len, 801, 32, 32, HEED_CAUSAL_BOTTOM_RIGHT));
    const Result want = RunHeed(c);
    for (Settings settings : EveryKernel()) {
      const bool fused = [&] {
        for (const std::string& name : TargetNames(true)) {
          if (name == settings.target) return true;
        }
        return false;
      }();
      settings.threads = 1;
      const Result alone = RunHeed(c, settings);
      if (fused) {
        EXPECT_EQ(Difference(alone, want), "");
      }
      for (const int threads : {2, 3, 8}) {
        settings.threads = threads;
        EXPECT_EQ(Difference(RunHeed(c, settings), alone), "")
            << NameOf(settings);
      }
    }
  }
}

// stan-dev/math#2444
TEST(PublicReports, TBB01_CallsNestedInAParallelLoopAreRight) {
  if (DefaultRunner() != nullptr) GTEST_SKIP() << "oneTBB cannot be used here";
  std::vector<Case> cases;
  std::vector<Result> want;
  for (int64_t i = 0; i < 64; ++i) {
    cases.push_back(GenCase(MakeProblem(1, 3, 1, 5 + i, 40 + i, 16, 16)));
    Settings settings;
    settings.runner = SerialRunner();
    want.push_back(RunHeed(cases.back(), settings));
  }
  std::atomic<int> wrong{0};
  for (int round = 0; round < 10; ++round) {
    tbb::parallel_for(0, 64, [&](int i) {
      Settings settings;
      settings.threads = 0;
      if (!SameBits(RunHeed(cases[i], settings), want[i])) ++wrong;
    });
  }
  EXPECT_EQ(wrong.load(), 0);
}

size_t ThreadsOfThisProcess() {
  size_t count = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    static_cast<void>(task);
    ++count;
  }
  return count;
}

// oneTBB#1903
TEST(PublicReports, TBB05_OneThreadMeansNoOtherThread) {
  if (!std::filesystem::exists("/proc/self/task")) {
    GTEST_SKIP() << "no /proc/self/task to count threads in";
  }
  const Case c = GenCase(MakeProblem(1, 4, 2, 5, 20, 8, 8));
  const Result want = RunHeed(c);
  const size_t before = ThreadsOfThisProcess();
  std::atomic<int> wrong{0};
  std::atomic<bool> go{false};
  std::atomic<int> done{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&] {
      for (int call = 0; call < 100; ++call) {
        if (!SameBits(RunHeed(c), want)) ++wrong;
      }
      ++done;
      while (!go) std::this_thread::yield();
    });
  }
  while (done < 8) std::this_thread::yield();
  const size_t during = ThreadsOfThisProcess();
  go = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(during, before + 8);
}

// oneDNN#2151: a plan is shared, but lengths are part of it, so threads with
// other lengths have other plans; both kinds at once.
TEST(PublicReports, TBB09_PlansAreConstWhileManyThreadsRunThem) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  const heed_problem shared = MakeProblem(1, 2, 1, 9, 33, 16, 16);
  heed_options options;
  heed_options_init(&options);
  options.runner = DefaultRunner();
  heed_plan* plan = nullptr;
  ASSERT_EQ(heed_plan_create(&shared, &options, &plan), HEED_OK);
  for (int caller = 0; caller < 16; ++caller) {
    callers.emplace_back([&, caller] {
      const Case own = GenCase(MakeProblem(1, 2, 1, 1 + caller, 50, 16, 16));
      const Case common = GenCase(shared);
      const Result want_own = RunHeed(own), want_common = RunHeed(common);
      std::vector<char> memory(heed_plan_workspace_size(plan) + 64);
      for (int round = 0; round < 20; ++round) {
        if (!SameBits(RunHeed(own), want_own)) ++wrong;
        Result got;
        heed_call call = DenseCall(common, &got);
        const auto address = reinterpret_cast<uintptr_t>(memory.data());
        call.workspace = memory.data() + (64 - address % 64) % 64;
        call.workspace_size = heed_plan_workspace_size(plan);
        if (heed_plan_run(plan, &call) != HEED_OK ||
            !SameBits(got, want_common)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  heed_plan_destroy(plan);
  EXPECT_EQ(wrong.load(), 0);
}

// PicoGKRuntime#27
void ThrowingRun(void*, size_t, void (*)(void*, size_t), void*) {
  throw std::runtime_error("from the runner");
}

TEST(PublicReports, ABI01_NothingIsThrownThroughTheCInterface) {
  const heed_runner runner = {ThrowingRun, nullptr};
  Settings settings;
  settings.threads = 4;
  settings.runner = &runner;
  settings.pinned = true;
  settings.tile.row_block = 1;
  Result got;
  EXPECT_NO_THROW(
      got = RunHeed(GenCase(MakeProblem(1, 9, 9, 50, 9, 8, 8)), settings));
  EXPECT_EQ(got.status, HEED_INTERNAL);
  EXPECT_NE(got.error.find("from the runner"), std::string::npos) << got.error;

  const heed_problem huge =
      MakeProblem(1, 1, 1, int64_t{1} << 40, int64_t{1} << 40, 1, 1);
  heed_plan* plan = nullptr;
  EXPECT_NO_THROW(heed_plan_create(&huge, nullptr, &plan));
  heed_plan_destroy(plan);
}

TEST(PublicReports, ABI09_ZeroStructsMeanDefaultsOrAreRefused) {
  Case c = GenCase(MakeProblem(1, 1, 1, 3, 9, 16, 4));
  Result got;
  const heed_call call = DenseCall(c, &got);
  // Options have defaults, once they say their size.
  heed_options options;
  std::memset(&options, 0, sizeof(options));
  EXPECT_EQ(heed_attention(&c.problem, &options, &call), HEED_INVALID_ARGUMENT);
  options.struct_size = sizeof(options);
  EXPECT_EQ(heed_attention(&c.problem, &options, &call), HEED_OK)
      << heed_last_error();
  EXPECT_EQ(Difference(got, RunHeed(c)), "");
  // A problem has none: no type and no scale is an error.
  heed_problem problem;
  std::memset(&problem, 0, sizeof(problem));
  problem.struct_size = sizeof(problem);
  EXPECT_EQ(heed_attention(&problem, nullptr, &call), HEED_INVALID_ARGUMENT);
  problem.dtype = HEED_F32;
  EXPECT_EQ(heed_attention(&problem, nullptr, &call), HEED_INVALID_ARGUMENT);
  EXPECT_NE(std::string(heed_last_error()).find("scale_mode"),
            std::string::npos);
}

}  // namespace
}  // namespace heed::test
