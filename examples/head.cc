// A whole attention head block, as GPT-2 has it, in C++: normalise, project to
// q, k and v, attend, merge the heads, project back, add. First a prompt, then
// token after token against a cache, which gives the same bits as all at once.
//
//   c++ -std=c++17 head.cc $(pkg-config --cflags --libs heed)
#include <heed_block.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace {

constexpr int64_t kModel = 48, kHeads = 3, kDim = kModel / kHeads;
constexpr int64_t kTokens = 20, kPrompt = 12;

void Demand(heed_status status) {
  if (status == HEED_OK) return;
  std::fprintf(stderr, "%s\n", heed_last_error());
  std::exit(1);
}

// Weights that a checkpoint would have; the block copies them.
std::vector<float> Random(int64_t count, float scale) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

heed_matrix Conv1d(const std::vector<float>& weight,
                   const std::vector<float>& bias) {
  heed_matrix matrix = {};
  matrix.data = weight.data();
  matrix.dtype = HEED_F32;
  matrix.layout = HEED_LAYOUT_IN_OUT;  // y = x W + b
  matrix.bias = {bias.data(), HEED_F32, 0};
  return matrix;
}

struct Destroy {
  void operator()(heed_block* block) const { heed_block_destroy(block); }
  void operator()(heed_block_plan* plan) const {
    heed_block_plan_destroy(plan);
  }
  void operator()(void* memory) const { std::free(memory); }
};
using Block = std::unique_ptr<heed_block, Destroy>;
using Plan = std::unique_ptr<heed_block_plan, Destroy>;

Block MakeBlock() {
  const std::vector<float> gain(kModel, 1.0f), shift(kModel, 0.0f);
  const std::vector<float> qkv = Random(kModel * 3 * kModel, 0.2f);
  const std::vector<float> qkv_bias = Random(3 * kModel, 0.1f);
  const std::vector<float> out = Random(kModel * kModel, 0.2f);
  const std::vector<float> out_bias = Random(kModel, 0.1f);
  heed_block_desc desc;
  heed_block_desc_init(&desc);
  desc.d_model = kModel;
  desc.heads_q = desc.heads_kv = kHeads;
  desc.dim_qk = desc.dim_v = kDim;
  desc.norm = HEED_NORM_LAYER;
  desc.norm_place = HEED_NORM_PRE;
  desc.norm_eps = 1e-5;
  desc.norm_gain = {gain.data(), HEED_F32, 0};
  desc.norm_bias = {shift.data(), HEED_F32, 0};
  desc.qkv = Conv1d(qkv, qkv_bias);
  desc.out = Conv1d(out, out_bias);
  desc.causal = 1;
  desc.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  heed_block* block = nullptr;
  Demand(heed_block_create(&desc, nullptr, &block));
  return Block(block);
}

// A plan for runs of `len` tokens that come after `positions` others.
class Runs {
 public:
  Runs(const Block& block, int64_t len, int64_t len_cache) : len_(len) {
    heed_block_plan* plan = nullptr;
    Demand(
        heed_block_plan_create(block.get(), 1, len, len_cache, nullptr, &plan));
    plan_.reset(plan);
    const size_t bytes = heed_block_plan_workspace_size(plan);
    workspace_.reset(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    heed_block_call_init(&call_);
    call_.workspace = workspace_.get();
    call_.workspace_size = bytes;
  }

  void UseCache(std::vector<float>* k, std::vector<float>* v) {
    call_.k_cache = heed_dense_output(k->data(), kHeads, kTokens, kDim);
    call_.v_cache = heed_dense_output(v->data(), kHeads, kTokens, kDim);
  }

  // Tokens [position, position + len) of x [tokens, d_model] to y.
  void Run(const std::vector<float>& x, int64_t position,
           std::vector<float>* y) {
    call_.positions = &position;
    call_.x = heed_dense_input(x.data() + position * kModel, 1, len_, kModel);
    call_.y = heed_dense_output(y->data() + position * kModel, 1, len_, kModel);
    Demand(heed_block_run(plan_.get(), &call_));
  }

 private:
  const int64_t len_;
  Plan plan_;
  std::unique_ptr<void, Destroy> workspace_;
  heed_block_call call_;
};

}  // namespace

int main() {
  const Block block = MakeBlock();
  const std::vector<float> x = Random(kTokens * kModel, 1);

  std::vector<float> at_once(x.size());
  Runs(block, kTokens, 0).Run(x, 0, &at_once);

  std::vector<float> k(kHeads * kTokens * kDim), v(k.size());
  std::vector<float> one_by_one(x.size());
  Runs prompt(block, kPrompt, kTokens), token(block, 1, kTokens);
  prompt.UseCache(&k, &v);
  token.UseCache(&k, &v);
  prompt.Run(x, 0, &one_by_one);
  for (int64_t t = kPrompt; t < kTokens; ++t) token.Run(x, t, &one_by_one);

  const size_t bytes = x.size() * sizeof(float);
  if (std::memcmp(at_once.data(), one_by_one.data(), bytes) != 0) {
    std::fprintf(stderr, "the cache gives other bits\n");
    return 1;
  }
  std::printf("%d tokens, the last %d one by one: the same bytes\n",
              static_cast<int>(kTokens), static_cast<int>(kTokens - kPrompt));
  return 0;
}
