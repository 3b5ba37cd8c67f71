// Promise P10: memory beyond the tensors does not grow with len_q * len_k.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "tests/attention_case.h"
#include "tests/sanitizer.h"

namespace heed::test {
namespace {

long PeakKilobytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// In a process of its own, so that nothing before or after it is in the peak:
// writes to `pipe` the kilobytes by which a call's peak exceeds that with the
// tensors in place.
void MeasureInChild(int threads, int pipe) {
  Case c = MakeCase(
      MakeProblem(1, 1, 1, 65536, 65536, 64, 64, HEED_CAUSAL_TOP_LEFT));
  for (size_t i = 0; i < c.q.size(); ++i) {
    c.q[i] = static_cast<float>(i % 17) * 0.0625f;
    c.k[i] = static_cast<float>(i % 29) * 0.03125f;
    c.v[i] = static_cast<float>(i % 13);
  }
  Result result;
  const heed_call call = DenseCall(c, &result);
  const long before = PeakKilobytes();
  heed_options options;
  heed_options_init(&options);
  options.threads = threads;
  const heed_status status = heed_attention(&c.problem, &options, &call);
  long grown = PeakKilobytes() - before;
  // The first row sees its own key alone (w * v / w, so v but for rounding);
  // the last one must have been written too.
  if (status != HEED_OK || std::fabs(result.out[5] - c.v[5]) > 1e-5f ||
      result.lse.back() < 0) {
    grown = -1;
  }
  const bool told = write(pipe, &grown, sizeof(grown)) == sizeof(grown);
  _exit(told ? 0 : 1);
}

void ExpectAtMost64Megabytes(int threads) {
  if (HEED_MALLOC_SANITIZER) {
    GTEST_SKIP() << "a sanitizer's own memory is in the peak";
  }
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) MeasureInChild(threads, ends[1]);
  close(ends[1]);
  long grown = -1;
  ASSERT_EQ(read(ends[0], &grown, sizeof(grown)),
            static_cast<ssize_t>(sizeof(grown)));
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::printf("%ld kB beyond the tensors\n", grown);
  EXPECT_GE(grown, 0) << "the call failed";
  EXPECT_LE(grown, 64 * 1024);
}

TEST(Memory, OfA65536TokenCausalCallIsBelow64MegabytesOnOneThread) {
  ExpectAtMost64Megabytes(1);
}

TEST(Memory, OfA65536TokenCausalCallIsBelow64MegabytesOnTwoThreads) {
  ExpectAtMost64Megabytes(2);
}

// Copies of k and v aside, which a tile has to ask for.
// A few tiles for each thread, and at most one copy of k and v, padded to whole
// vectors and steps.
TEST(Memory, OfAWorkspaceIsTilesAndAtMostOneCopyOfKeysAndValues) {
  for (const int64_t len : {int64_t{1} << 10, int64_t{1} << 14,
                            int64_t{1} << 20, int64_t{1} << 30}) {
    const heed_problem p =
        MakeProblem(1, 1, 1, len, len, 64, 64, HEED_CAUSAL_TOP_LEFT);
    heed_options options;
    heed_options_init(&options);
    options.threads = 2;
    options.tuning = HEED_TUNING_OFF;
    heed_plan* plan = nullptr;
    ASSERT_EQ(heed_plan_create(&p, &options, &plan), HEED_OK)
        << heed_last_error();
    const size_t padded_keys = static_cast<size_t>(len) + 2 * kChunk;
    const size_t copy_bytes = padded_keys * (64 + 64) * sizeof(float);
    EXPECT_LE(heed_plan_workspace_size(plan), (size_t{8} << 20) + copy_bytes)
        << len;
    heed_plan_destroy(plan);
  }
}

}  // namespace
}  // namespace heed::test
