// Every tile the tuner may emit can be run, and the default is among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

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

TEST(Candidates, AreFeasibleDistinctAndBeginWithTheDefault) {
  const Machine& machine = ThisMachine();
  for (const int64_t target : RunnableTargets()) {
    const Kernels kernels = GetKernels(target, DType::kF32);
    for (const NamedProblem& shape : AllShapes()) {
      const Tile model = ModelTile(shape.problem, kernels, machine, 2);
      const std::vector<Tile> tiles =
          TileCandidates(shape.problem, kernels, machine, model, 48);
      SCOPED_TRACE(shape.name + " " + kernels.target);
      ASSERT_FALSE(tiles.empty());
      EXPECT_EQ(tiles[0], model);
      EXPECT_LE(tiles.size(), 48u);
      for (size_t i = 0; i < tiles.size(); ++i) {
        EXPECT_TRUE(FeasibleTile(tiles[i], shape.problem, kernels))
            << ToString(tiles[i]);
        EXPECT_EQ(std::count(tiles.begin(), tiles.end(), tiles[i]), 1)
            << ToString(tiles[i]);
        // What is measured is what a plan would run.
        EXPECT_EQ(RoundTile(tiles[i], shape.problem, kernels), tiles[i])
            << ToString(tiles[i]);
      }
    }
  }
}

TEST(Candidates, AFewOfThemChangeOneFieldEach) {
  const Kernels kernels = GetKernels(RunnableTargets().front(), DType::kF32);
  heed_problem problem;
  ASSERT_EQ(
      heed_problem_parse("b1_hq4_hkv4_q4096_k4096_d64_causal_f32", &problem),
      HEED_OK);
  const Tile model = ModelTile(problem, kernels, ThisMachine(), 1);
  const std::vector<Tile> tiles =
      TileCandidates(problem, kernels, ThisMachine(), model, 8);
  ASSERT_EQ(tiles.size(), 8u);
  for (size_t i = 1; i < tiles.size(); ++i) {
    const int changed = (tiles[i].row_block != model.row_block) +
                        (tiles[i].key_tile != model.key_tile) +
                        (tiles[i].pack_k != model.pack_k) +
                        (tiles[i].pack_v != model.pack_v) +
                        (tiles[i].prefetch != model.prefetch);
    EXPECT_EQ(changed, 1) << ToString(tiles[i]);
  }
}

TEST(Candidates, AreNoMoreThanAskedFor) {
  const Kernels kernels = GetKernels(RunnableTargets().front(), DType::kF32);
  for (const NamedProblem& shape : AllShapes()) {
    const Tile model = ModelTile(shape.problem, kernels, ThisMachine(), 1);
    for (const size_t max : {1, 2, 5}) {
      EXPECT_LE(
          TileCandidates(shape.problem, kernels, ThisMachine(), model, max)
              .size(),
          max)
          << shape.name;
    }
  }
}

}  // namespace
}  // namespace heed
