// Every candidate the tuner may emit can be run, and the default is among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/problem.h"
#include "runtime/targets.h"
#include "runtime/tile_model.h"
#include "tune/candidates.h"
#include "tune/shapes.h"

namespace heed {
namespace {

std::vector<NamedProblem> AllShapes() {
  std::vector<NamedProblem> shapes;
  std::string why;
  EXPECT_TRUE(ParseShapeList("all", &shapes, &why)) << why;
  return shapes;
}

heed_problem Parsed(const char* text) {
  heed_problem problem;
  EXPECT_EQ(heed_problem_parse(text, &problem), HEED_OK);
  return problem;
}

std::vector<Kernels> OnlyTarget(int64_t target, const heed_problem& problem) {
  return {GetKernels(target, KernelDType(problem.dtype))};
}

TEST(Candidates, AreFeasibleDistinctAndBeginWithTheDefault) {
  const Machine& machine = ThisMachine();
  for (const int64_t target : RunnableTargets()) {
    for (const NamedProblem& shape : AllShapes()) {
      const std::vector<Kernels> targets = OnlyTarget(target, shape.problem);
      const Kernels& kernels = targets[0];
      const std::vector<Candidate> all =
          Candidates(shape.problem, targets, machine, 2, 48);
      SCOPED_TRACE(shape.name + " " + kernels.target);
      ASSERT_FALSE(all.empty());
      EXPECT_EQ(all[0].config.tile,
                ModelTile(shape.problem, kernels, machine, 2));
      EXPECT_EQ(all[0].config.cut, Cut{});
      EXPECT_LE(all.size(), 48u);
      for (size_t i = 0; i < all.size(); ++i) {
        const Tile& tile = all[i].config.tile;
        EXPECT_TRUE(FeasibleTile(tile, shape.problem, kernels))
            << ToString(all[i]);
        EXPECT_TRUE(i == 0 || FitsCaches(tile, shape.problem, kernels, machine))
            << ToString(all[i]);
        EXPECT_EQ(std::count(all.begin(), all.end(), all[i]), 1)
            << ToString(all[i]);
        // What is measured is what a plan would run.
        EXPECT_EQ(RoundTile(tile, shape.problem, kernels), tile)
            << ToString(all[i]);
      }
    }
  }
}

TEST(Candidates, AFewOfThemChangeOneFieldEach) {
  const heed_problem problem = Parsed("b1_hq4_hkv4_q4096_k4096_d64_causal_f32");
  const std::vector<Kernels> targets =
      OnlyTarget(RunnableTargets().front(), problem);
  const std::vector<Candidate> all =
      Candidates(problem, targets, ThisMachine(), 1, 8);
  ASSERT_EQ(all.size(), 8u);
  const Tile& model = all[0].config.tile;
  for (size_t i = 1; i < all.size(); ++i) {
    const Tile& tile = all[i].config.tile;
    const int changed =
        (tile.row_block != model.row_block) +
        (tile.key_tile != model.key_tile) + (tile.pack_k != model.pack_k) +
        (tile.pack_v != model.pack_v) + (tile.prefetch != model.prefetch);
    EXPECT_EQ(changed, 1) << ToString(all[i]);
  }
}

TEST(Candidates, AreNoMoreThanAskedFor) {
  for (const NamedProblem& shape : AllShapes()) {
    for (const size_t max : {1, 2, 5}) {
      EXPECT_LE(Candidates(shape.problem,
                           OnlyTarget(RunnableTargets().front(), shape.problem),
                           ThisMachine(), 1, max)
                    .size(),
                max)
          << shape.name;
    }
  }
}

TEST(Candidates, OfADecodeDifferInTheCutAlone) {
  const heed_problem problem = Parsed("b1_hq32_hkv8_q1_k4096_d128_f32");
  const std::vector<Kernels> targets =
      OnlyTarget(RunnableTargets().front(), problem);
  const std::vector<Candidate> two =
      Candidates(problem, targets, ThisMachine(), 2, 48);
  std::vector<size_t> tasks;
  bool as_block = false;
  for (const Candidate& candidate : two) {
    tasks.push_back(candidate.config.cut.tasks_per_worker);
    as_block = as_block || candidate.config.cut.decode_rows == 0;
  }
  for (const size_t wanted : {1u, 2u, 8u, 16u}) {
    EXPECT_EQ(std::count(tasks.begin(), tasks.end(), wanted), 1) << wanted;
  }
  EXPECT_TRUE(as_block);
  // One thread shares nothing out.
  for (const Candidate& candidate :
       Candidates(problem, targets, ThisMachine(), 1, 48)) {
    EXPECT_EQ(candidate.config.cut.tasks_per_worker, kTasksPerWorker);
  }
}

TEST(Candidates, RowsBeyondTheThresholdMayBeDecoded) {
  const heed_problem problem =
      Parsed("b1_hq32_hkv8_q8_k4096_d128_causalbr_f32");
  const std::vector<Candidate> all =
      Candidates(problem, OnlyTarget(RunnableTargets().front(), problem),
                 ThisMachine(), 2, 48);
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Candidate& c) {
    return c.config.cut.decode_rows == kMaxDecodeRows;
  }));
}

// A CPU with two targets of the same bits: both are raced.
TEST(Candidates, OtherTargetsOfTheSameBitsAreAmongThem) {
  const heed_problem problem = Parsed("b1_hq4_hkv4_q512_k512_d64_causal_f32");
  Kernels best = GetKernels(RunnableTargets().front(), DType::kF32);
  best.fused = true;
  Kernels second = best, third = best;
  second.target = "SECOND";
  third.target = "UNFUSED";
  third.fused = false;
  const std::vector<Kernels> equal = WithEqualBits({best, second, third});
  ASSERT_EQ(equal.size(), 2u);
  EXPECT_STREQ(equal[1].target, "SECOND");
  const std::vector<Candidate> all =
      Candidates(problem, equal, ThisMachine(), 2, 24);
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Candidate& c) {
    return c.target == "SECOND";
  }));
  // Without fused multiply-add there is nobody with the same bits.
  EXPECT_EQ(WithEqualBits({third, best}).size(), 1u);
}

}  // namespace
}  // namespace heed
