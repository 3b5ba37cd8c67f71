// A user of heed.hpp and heed_block.hpp, compiled as C++17: with equal scores
// every query gets the mean of the values it sees, and what is wrong comes as
// an exception that says so.
#include <cmath>
#include <cstdio>
#include <heed.hpp>
#include <heed_block.hpp>
#include <vector>

int main() {
  const std::vector<float> q(2 * 4 * 8, 1.0f), k(1 * 4 * 8, 1.0f);
  const std::vector<float> v = {1, 3, 5, 7};
  std::vector<float> out(2 * 4);
  const heed::Problem problem =
      heed::Problem::Parse("b1_hq2_hkv1_q4_k4_d8_dv1_causal_f32");
  heed::Tensors tensors;
  tensors.q = heed::Input(q.data(), heed::DenseStrides(2, 4, 8));
  tensors.k = heed::Input(k.data(), heed::DenseStrides(1, 4, 8));
  tensors.v = heed::Input(v.data(), heed::DenseStrides(1, 4, 1));
  tensors.out = heed::Output(out.data(), heed::DenseStrides(2, 4, 1));
  const heed::Plan plan(problem);
  heed::Workspace workspace = plan.MakeWorkspace();
  plan.Run(tensors, workspace);
  for (int row = 0; row < 8; ++row) {
    const float want = 1.0f + row % 4;  // mean of the first row % 4 + 1 odds
    if (std::fabs(out[row] - want) > 1e-5f) {
      std::fprintf(stderr, "row %d is %g, expected %g\n", row, out[row], want);
      return 1;
    }
  }
  try {
    heed::Plan bad(heed::Problem().Heads(3, 2).Lengths(1, 1).Dims(8));
    std::fprintf(stderr, "3 query heads over 2 were not refused\n");
    return 1;
  } catch (const heed::Error& error) {
    std::printf("%s\n%s\n", plan.Describe().c_str(), error.what());
  }
  // A block that projects to v and back with 1: a token twice.
  const float qkv[] = {0, 0, 1}, one[] = {1}, x[] = {3};
  float y[] = {0};
  heed::BlockDesc desc;
  desc.d_model = desc.heads_q = desc.heads_kv = desc.dim_qk = desc.dim_v = 1;
  desc.qkv = {qkv, HEED_F32, HEED_LAYOUT_IN_OUT, 0, {}};
  desc.out = {one, HEED_F32, HEED_LAYOUT_IN_OUT, 0, {}};
  desc.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  const heed::AttentionBlock block(desc);
  const heed::AttentionBlockPlan block_plan(block, 1, 1);
  heed::Workspace block_workspace = block_plan.MakeWorkspace();
  heed::BlockCall call;
  call.x = heed_dense_input(x, 1, 1, 1);
  call.y = heed_dense_output(y, 1, 1, 1);
  block_plan.Run(call, block_workspace);
  std::printf("%s\n", block_plan.Describe().c_str());
  if (y[0] != 6.0f) {
    std::fprintf(stderr, "the block gives %g, expected 6\n", y[0]);
    return 1;
  }
  return 0;
}
