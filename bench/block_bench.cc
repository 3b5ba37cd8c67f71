// GPT-2 small's attention block, whole: where its time goes, and how much more
// it takes than its projections and its attention by themselves.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <heed_block.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "bench/buffer.h"
#include "bench/register.h"
#include "runtime/block.h"
#include "tune/statistics.h"

namespace heed {
namespace {

constexpr int64_t kModel = 768, kHeads = 12, kHead = 64;
constexpr int64_t kTokens[] = {1, 128, 1024};

Floats Normal(size_t count, float scale, unsigned seed) {
  Floats floats = AllocateFloats(count);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  for (size_t i = 0; i < count; ++i) floats.get()[i] = normal(random);
  return floats;
}

class Gpt2Block {
 public:
  Gpt2Block(int64_t tokens, const std::string& target, int threads)
      : tokens_(tokens) {
    const Floats qkv = Normal(3 * kModel * kModel, 0.04f, 1);
    const Floats out = Normal(kModel * kModel, 0.04f, 2);
    const Floats vectors = Normal(6 * kModel, 0.1f, 3);
    heed_block_desc desc;
    heed_block_desc_init(&desc);
    desc.d_model = kModel;
    desc.heads_q = desc.heads_kv = kHeads;
    desc.dim_qk = desc.dim_v = kHead;
    desc.norm = HEED_NORM_LAYER;
    desc.norm_place = HEED_NORM_PRE;
    desc.norm_eps = 1e-5;
    desc.norm_gain = {vectors.get(), HEED_F32, 0};
    desc.norm_bias = {vectors.get() + kModel, HEED_F32, 0};
    desc.qkv = {qkv.get(),
                HEED_F32,
                HEED_LAYOUT_IN_OUT,
                0,
                {vectors.get() + 2 * kModel, HEED_F32, 0}};
    desc.out = {out.get(),
                HEED_F32,
                HEED_LAYOUT_IN_OUT,
                0,
                {vectors.get() + 5 * kModel, HEED_F32, 0}};
    desc.causal = 1;
    desc.scale_mode = HEED_SCALE_INV_SQRT_DIM;
    heed_options options;
    heed_options_init(&options);
    options.target = target.c_str();
    options.threads = threads;
    if (heed_block_create(&desc, &options, &block_) != HEED_OK ||
        heed_block_plan_create(block_, 1, tokens, 0, &options, &plan_) !=
            HEED_OK) {
      error_ = heed_last_error();
      return;
    }
    x_ = Normal(static_cast<size_t>(tokens * kModel), 1.0f, 4);
    y_ = AllocateFloats(static_cast<size_t>(tokens * kModel));
    workspace_ = AllocateBytes(heed_block_plan_workspace_size(plan_));
    heed_block_call_init(&call_);
    call_.x = heed_dense_input(x_.get(), 1, tokens, kModel);
    call_.y = heed_dense_output(y_.get(), 1, tokens, kModel);
    call_.workspace = workspace_.get();
    call_.workspace_size = heed_block_plan_workspace_size(plan_);
    call_.stage_seconds = seconds_;
    if (heed_block_run(plan_, &call_) != HEED_OK) error_ = heed_last_error();
  }
  ~Gpt2Block() {
    heed_block_plan_destroy(plan_);
    heed_block_destroy(block_);
  }
  Gpt2Block(const Gpt2Block&) = delete;
  Gpt2Block& operator=(const Gpt2Block&) = delete;

  const std::string& error() const { return error_; }
  void Run() { heed_block_run(plan_, &call_); }
  const double* seconds() const { return seconds_; }

  // The three parts alone, on data of the block's last run.
  void RunParts() {
    const BlockLayout& at = plan_->workspace;
    const auto in_workspace = [this](size_t offset) {
      return reinterpret_cast<float*>(workspace_.get() + offset);
    };
    ProjectionRun part{};
    part.kernels = &block_->kernels;
    part.slices = workspace_.get();
    part.slice_bytes = at.slice_bytes;
    part.matrix = &block_->qkv;
    part.cut = plan_->qkv_cut;
    part.x = in_workspace(at.tokens);
    part.x_stride = at.tokens_stride;
    part.y = in_workspace(at.qkv);
    part.y_stride = at.qkv_stride;
    RunProjection(part, plan_->runner, plan_->workers);

    heed_call call;
    heed_call_init(&call);
    const auto stride = static_cast<int64_t>(at.qkv_stride);
    const auto z_stride = static_cast<int64_t>(at.z_stride);
    float* q = in_workspace(at.qkv);
    call.q = {q, 0, kHead, stride, 1};
    call.k = {q + kModel, 0, kHead, stride, 1};
    call.v = {q + 2 * kModel, 0, kHead, stride, 1};
    call.out = {in_workspace(at.z), 0, kHead, z_stride, 1};
    call.workspace = workspace_.get() + at.attention;
    call.workspace_size = heed_plan_workspace_size(plan_->attention.get());
    heed_plan_run(plan_->attention.get(), &call);

    part.matrix = &block_->out;
    part.cut = plan_->out_cut;
    part.x = in_workspace(at.z);
    part.x_stride = at.z_stride;
    part.y = in_workspace(at.tokens);
    part.y_stride = at.tokens_stride;
    RunProjection(part, plan_->runner, plan_->workers);
  }

  // Of projections and of attention over the keys that tokens see.
  double ProjectFlops() const {
    return 2.0 * static_cast<double>(tokens_) * 4 * kModel * kModel;
  }
  double AttentionFlops() const {
    const auto n = static_cast<double>(tokens_);
    return 4.0 * n * (n + 1) / 2 * kModel;
  }

 private:
  int64_t tokens_;
  std::string error_;
  heed_block* block_ = nullptr;
  heed_block_plan* plan_ = nullptr;
  Floats x_, y_;
  Bytes workspace_;
  heed_block_call call_;
  double seconds_[HEED_STAGE_COUNT] = {};
};

void RunBlock(benchmark::State& state, BenchContext& context,
              const BenchTarget& target, int64_t tokens, int threads) {
  Gpt2Block block(tokens, target.name, threads);
  if (!block.error().empty()) {
    context.SetFailed();
    state.SkipWithError(block.error().c_str());
    return;
  }
  Roof& roof = context.RoofOf(target, threads);
  double fma = roof.FmaPeak();
  const double canary = roof.CanaryRate();
  std::vector<double> stages[HEED_STAGE_COUNT], whole, parts;
  for (auto _ : state) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    block.Run();
    const Clock::time_point middle = Clock::now();
    block.RunParts();
    const Clock::time_point end = Clock::now();
    whole.push_back(std::chrono::duration<double>(middle - begin).count());
    parts.push_back(std::chrono::duration<double>(end - middle).count());
    state.SetIterationTime(whole.back());
    const double* seconds = block.seconds();
    for (size_t i = 0; i < HEED_STAGE_COUNT; ++i) {
      stages[i].push_back(seconds[i]);
    }
    whole.push_back(std::accumulate(seconds, seconds + HEED_STAGE_COUNT, 0.0));
    state.SetIterationTime(whole.back());
  }
  fma = std::max(fma, roof.FmaPeak());
  const double total = Median(whole);
  constexpr struct {
    const char* name;
    heed_block_stage stage;
  } kShown[] = {{"norm", HEED_STAGE_NORM},
                {"qkv", HEED_STAGE_QKV},
                {"attention", HEED_STAGE_ATTENTION},
                {"out", HEED_STAGE_OUT}};
  for (const auto& shown : kShown) {
    state.counters[fmt::format("pct_{}", shown.name)] =
        100 * Median(stages[shown.stage]) / total;
  }
  // 1: the block is its parts and nothing else.
  state.counters["whole_by_parts"] = total / Median(parts);
  const double flops = block.ProjectFlops() + block.AttentionFlops();
  state.counters["GFLOP/s"] = flops / total * 1e-9;
  state.counters["pct_peak"] = 100 * flops / total / fma;
  state.counters["canary"] =
      std::min(canary, roof.CanaryRate()) / roof.best_canary();
}

}  // namespace

void RegisterBlockBenchmarks(BenchContext* context) {
  for (const BenchTarget& target : context->targets()) {
    for (const int threads : context->threads()) {
      for (const int64_t tokens : kTokens) {
        const std::string name =
            fmt::format("block/gpt2_small/tokens:{}/threads:{}/target:{}",
                        tokens, threads, target.name);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) {
                                       RunBlock(state, *context, target, tokens,
                                                threads);
                                     })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace heed
