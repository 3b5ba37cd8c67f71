// Promise P5: a row's bits depend on its own query, its visible keys and values
// and the parameters of the call, and on nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/input_families.h"

namespace heed::test {
namespace {

constexpr int kProblems = 240;

int64_t PickSize(Random* random, std::initializer_list<int64_t> values) {
  return values.begin()[random->Below(static_cast<int64_t>(values.size()))];
}

// A random problem of every kind, small enough for hundreds of them. The seed
// alone makes it.
Case RandomCase(uint64_t seed) {
  Random random(seed);
  const int64_t group = PickSize(&random, {1, 1, 2, 3, 4, 5, 7, 8, 12});
  const int64_t heads_kv = PickSize(&random, {1, 2});
  const int64_t len_q = PickSize(&random, {1, 2, 7, 8, 17, 31, 48, 65});
  const int64_t len_k =
      PickSize(&random, {1, 5, 47, 49, 96, 101, 130, 193, 767, 769, 800});
  const int64_t dim_qk = PickSize(&random, {1, 3, 8, 15, 40, 64, 80, 128});
  const int64_t dim_v = PickSize(&random, {1, 5, 8, 17, 40, 64, 128});
  const int64_t batch = PickSize(&random, {1, 1, 2});
  const int32_t causal = static_cast<int32_t>(random.Below(4));
  Case c = MakeCase(MakeProblem(batch, group * heads_kv, heads_kv, len_q, len_k,
                                dim_qk, dim_v, causal),
                    random.Below(len_q + len_k + 6) - len_q - 3);
  const auto& families = Families();
  families[random.Below(static_cast<int64_t>(families.size()))].fill(&random,
                                                                     &c);
  return c;
}

// Cases [first, first + kProblems), each against the same baseline: one thread,
// the model's tile.
template <typename Check>
void ForEachCase(Check check) {
  for (uint64_t seed = 1000; seed < 1000 + kProblems; ++seed) {
    const Case c = RandomCase(seed);
    Settings baseline;
    baseline.runner = SerialRunner();
    const Result want = RunHeed(c, baseline);
    ASSERT_EQ(want.status, HEED_OK) << want.error;
    check(c, want, "seed " + std::to_string(seed) + " " + NameOf(c));
    if (::testing::Test::HasFailure()) return;
  }
}

void ExpectSame(const Case& c, const Settings& settings, const Result& want,
                const std::string& where) {
  EXPECT_EQ(Difference(RunHeed(c, settings), want), "")
      << where << " " << NameOf(settings);
}

TEST(SameBits, ForAnyThreadCountAndRunner) {
  ForEachCase([](const Case& c, const Result& want, const std::string& where) {
    for (const int threads : {1, 2, 7}) {
      for (const heed_runner* runner :
           {DefaultRunner(), SerialRunner(), ThreadRunner()}) {
        Settings settings;
        settings.threads = threads;
        settings.runner = runner;
        // A tile that leaves several tasks for several threads.
        settings.pinned = threads == 7;
        settings.tile.row_block = 1;
        ExpectSame(c, settings, want, where);
      }
    }
  });
}

TEST(SameBits, ForAnyTile) {
  ForEachCase([](const Case& c, const Result& want, const std::string& where) {
    for (const heed_tile& tile : VariedTiles()) {
      Settings settings;
      settings.pinned = true;
      settings.tile = tile;
      ExpectSame(c, settings, want, where);
    }
  });
}

TEST(SameBits, ForEveryFusedTarget) {
  const std::vector<std::string> targets = TargetNames(/*fused_only=*/true);
  ASSERT_FALSE(targets.empty());
  RecordProperty("targets", static_cast<int>(targets.size()));
  // The baseline ran on the best target; a best target without fused
  // multiply-add would make this test fail on any CPU that also has one with
  // it.
  ForEachCase([&](const Case& c, const Result&, const std::string& where) {
    Settings first;
    first.target = targets.front();
    const Result want = RunHeed(c, first);
    for (const std::string& target : targets) {
      Settings settings;
      settings.target = target;
      ExpectSame(c, settings, want, where);
    }
  });
}

// The row alone, as a decode step would compute it.
Case RowAlone(const Case& c, int64_t token) {
  heed_problem p = c.problem;
  int64_t offset = c.causal_offset;
  if (p.causal == HEED_CAUSAL_TOP_LEFT) offset = 0;
  if (p.causal == HEED_CAUSAL_BOTTOM_RIGHT) offset = p.len_k - p.len_q;
  if (p.causal != HEED_CAUSAL_NONE) p.causal = HEED_CAUSAL_OFFSET;
  const int64_t len_q = p.len_q;
  p.len_q = 1;
  Case row = MakeCase(p, offset + token);
  row.k = c.k;
  row.v = c.v;
  const int64_t dim = p.dim_qk;
  for (int64_t head = 0; head < p.batch * p.heads_q; ++head) {
    std::copy_n(c.q.begin() + (head * len_q + token) * dim, dim,
                row.q.begin() + head * dim);
  }
  return row;
}

TEST(SameBits, ForEachRowAloneAsInTheFullCall) {
  ForEachCase([](const Case& c, const Result& want, const std::string& where) {
    const heed_problem& p = c.problem;
    for (int64_t token = 0; token < p.len_q; ++token) {
      // All rows of short calls, some of long ones: a plan for each costs more
      // than the row.
      if (p.len_q > 10 && token % 11 != 0 && token != p.len_q - 1) continue;
      const Result got = RunHeed(RowAlone(c, token));
      Result expected = got;
      for (int64_t head = 0; head < p.batch * p.heads_q; ++head) {
        const int64_t row = head * p.len_q + token;
        expected.lse[head] = want.lse[row];
        std::copy_n(want.out.begin() + row * p.dim_v, p.dim_v,
                    expected.out.begin() + head * p.dim_v);
      }
      EXPECT_EQ(Difference(got, expected), "") << where << " token " << token;
    }
  });
}

// The same sequence, alone and as the fourth of a batch of five others.
TEST(SameBits, ForBatchOneAsForBatchFive) {
  ForEachCase([](const Case& c, const Result& want, const std::string& where) {
    heed_problem p = c.problem;
    p.batch = 5 * c.problem.batch;
    Case five = MakeCase(p, c.causal_offset);
    Random random(77);
    random.FillNormal(&five.q);
    random.FillNormal(&five.k);
    random.FillNormal(&five.v);
    const auto place = [](const std::vector<float>& from,
                          std::vector<float>* to) {
      std::copy(from.begin(), from.end(), to->begin() + 3 * from.size());
    };
    place(c.q, &five.q);
    place(c.k, &five.k);
    place(c.v, &five.v);
    Settings settings;
    settings.threads = 2;
    const Result all = RunHeed(five, settings);
    ASSERT_EQ(all.status, HEED_OK) << all.error;
    Result got;
    const size_t outs = want.out.size(), lses = want.lse.size();
    got.out.assign(all.out.begin() + 3 * outs, all.out.begin() + 4 * outs);
    got.lse.assign(all.lse.begin() + 3 * lses, all.lse.begin() + 4 * lses);
    EXPECT_EQ(Difference(got, want), "") << where;
  });
}

// One kv head shared by a group gives what copies of it give.
TEST(SameBits, ForGroupedHeadsAsForCopiedHeads) {
  for (const int64_t group : {2, 3, 5, 8, 12}) {
    Case c = MakeCase(
        MakeProblem(1, 2 * group, 2, 9, 101, 24, 17, HEED_CAUSAL_BOTTOM_RIGHT));
    Random random(group);
    Families().front().fill(&random, &c);
    heed_problem p = c.problem;
    p.heads_kv = p.heads_q;
    Case copied = MakeCase(p);
    copied.q = c.q;
    const auto repeat = [&](const std::vector<float>& from,
                            std::vector<float>* to) {
      const int64_t head_size = static_cast<int64_t>(from.size()) / 2;
      for (int64_t h = 0; h < p.heads_q; ++h) {
        std::copy_n(from.begin() + h / group * head_size, head_size,
                    to->begin() + h * head_size);
      }
    };
    repeat(c.k, &copied.k);
    repeat(c.v, &copied.v);
    EXPECT_EQ(Difference(RunHeed(c), RunHeed(copied)), "") << group;
  }
}

TEST(SameBits, OnEveryOneOfTwentyRuns) {
  Case c =
      MakeCase(MakeProblem(2, 4, 2, 40, 128, 16, 16, HEED_CAUSAL_BOTTOM_RIGHT));
  Random random(5);
  Families().front().fill(&random, &c);
  const Result want = RunHeed(c);
  for (int run = 0; run < 20; ++run) {
    Settings settings;
    settings.threads = 1 + run % 8;
    ExpectSame(c, settings, want, "run " + std::to_string(run));
  }
}

}  // namespace
}  // namespace heed::test
