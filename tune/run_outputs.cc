#include "tune/run_outputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/tile_text.h"
#include "tune/npy_header.h"
#include "tune/peaks.h"
#include "tune/statistics.h"

namespace heed {
namespace {

struct BytesFree {
  void operator()(void* p) const { std::free(p); }
};

bool MakeOptions(const RunOptions& options, heed_options* heed,
                 std::string* why) {
  heed_options_init(heed);
  heed->threads = options.threads;
  if (!options.target.empty()) heed->target = options.target.c_str();
  if (options.tile.empty()) return true;
  heed->tuning = HEED_TUNING_PINNED;
  return ParseTileOption(options.tile, &heed->tile, why);
}

bool MakeTensor(const char* name, NpyType type,
                const std::vector<int64_t>& shape, NpyTensor* tensor,
                std::string* why) {
  tensor->type = type;
  tensor->shape = shape;
  try {
    tensor->Resize(static_cast<size_t>(NpyElementCount(shape)));
  } catch (const std::exception&) {
    *why =
        fmt::format("no memory for {} of ({})", name, fmt::join(shape, ", "));
    return false;
  }
  return true;
}

// Makes room for out and lse and puts them into the call.
bool AddOutputs(const RunOptions& options, const RunInputs& inputs,
                RunOutputs* outputs, heed_call* call, std::string* why) {
  const heed_problem& p = inputs.problem;
  std::vector<int64_t> shape = inputs.q.shape;
  shape.back() = p.dim_v;
  if (!MakeTensor("out", inputs.q.type, shape, &outputs->out, why)) {
    return false;
  }
  shape.pop_back();
  if (!MakeTensor("lse", NpyType::kFloat32, shape, &outputs->lse, why)) {
    return false;
  }
  const bool wants_lse = !options.lse.empty() || options.check;
  void* const out = outputs->out.bytes.data();
  void* const lse = wants_lse ? outputs->lse.bytes.data() : nullptr;
  if (inputs.packed_q) {
    // [tokens, heads, width] is a dense [1, tokens, heads, width].
    call->out = heed_dense_output(out, 1, p.heads_q, p.dim_v);
    call->lse = heed_dense_output(lse, 1, p.heads_q, 1);
    std::swap(call->out.stride_head, call->out.stride_token);
    std::swap(call->lse.stride_head, call->lse.stride_token);
  } else {
    call->out = heed_dense_output(out, p.heads_q, p.len_q, p.dim_v);
    call->lse = heed_dense_output(lse, p.heads_q, p.len_q, 1);
  }
  return true;
}

// Runs `repeat` times.
bool Execute(int repeat, heed_call call, RunOutputs* outputs,
             std::string* why) {
  const heed_plan* plan = outputs->plan.get();
  const size_t bytes = (heed_plan_workspace_size(plan) + 63) / 64 * 64;
  const std::unique_ptr<void, BytesFree> workspace(
      bytes == 0 ? nullptr : std::aligned_alloc(64, bytes));
  if (bytes != 0 && workspace == nullptr) {
    *why = fmt::format("no memory for a workspace of {} bytes", bytes);
    return false;
  }
  call.workspace = workspace.get();
  call.workspace_size = bytes;
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    const double start = MonotonicSeconds();
    if (heed_plan_run(plan, &call) != HEED_OK) {
      *why = heed_last_error();
      return false;
    }
    times.push_back(MonotonicSeconds() - start);
  }
  outputs->seconds = Median(times);
  return true;
}

// What a sequence's rows and keys do not reach keeps `filler`.
bool ShowScores(const heed_problem& p, const heed_options& options,
                const heed_call& call, heed_score_stage stage, float filler,
                NpyTensor* scores, std::string* why) {
  if (!MakeTensor("scores", NpyType::kFloat32,
                  {p.batch, p.heads_q, p.len_q, p.len_k}, scores, why)) {
    return false;
  }
  float* const data = reinterpret_cast<float*>(scores->bytes.data());
  std::fill(data, data + scores->count(), filler);
  const heed_output view = heed_dense_output(data, p.heads_q, p.len_q, p.len_k);
  if (heed_scores(&p, &options, &call, stage, &view) == HEED_OK) return true;
  *why = heed_last_error();
  return false;
}

bool ShowAllScores(const RunOptions& options, const heed_problem& problem,
                   const heed_options& heed, const heed_call& call,
                   RunOutputs* outputs, std::string* why) {
  if (!options.scores.second.empty()) {
    const std::string& name = options.scores.first;
    const heed_score_stage stage = name == "scaled"   ? HEED_SCORES_SCALED
                                   : name == "capped" ? HEED_SCORES_CAPPED
                                                      : HEED_SCORES_BIASED;
    const float filler = stage == HEED_SCORES_BIASED
                             ? -std::numeric_limits<float>::infinity()
                             : 0;
    if (!ShowScores(problem, heed, call, stage, filler, &outputs->scores,
                    why)) {
      return false;
    }
  }
  return options.weights.empty() ||
         ShowScores(problem, heed, call, HEED_SCORES_WEIGHTS, 0,
                    &outputs->weights, why);
}

}  // namespace

bool ComputeRun(const RunOptions& options, const RunInputs& inputs,
                RunOutputs* outputs, std::string* why) {
  heed_options heed;
  if (!MakeOptions(options, &heed, why)) return false;
  heed_plan* plan = nullptr;
  if (heed_plan_create(&inputs.problem, &heed, &plan) != HEED_OK) {
    *why = heed_last_error();
    return false;
  }
  outputs->plan.reset(plan);
  heed_call call = CallOn(options, inputs);
  return AddOutputs(options, inputs, outputs, &call, why) &&
         Execute(options.repeat, call, outputs, why) &&
         ShowAllScores(options, inputs.problem, heed, call, outputs, why);
}

bool WriteRun(const RunOptions& options, const RunOutputs& outputs,
              std::string* why) {
  const struct {
    const std::string& path;
    const NpyTensor& tensor;
  } results[] = {{options.out, outputs.out},
                 {options.lse, outputs.lse},
                 {options.scores.second, outputs.scores},
                 {options.weights, outputs.weights}};
  StagedFile files[4];
  std::vector<StagedFile*> all;
  for (const auto& result : results) {
    StagedFile* file = &files[all.size()];
    all.push_back(file);
    if (result.path.empty()) continue;
    const NpyTensor& tensor = result.tensor;
    if (!StageNpy(result.path, tensor.type, tensor.shape, tensor.bytes.data(),
                  file, why)) {
      return false;
    }
  }
  return StagedFile::CommitAll(all, why);
}

}  // namespace heed
