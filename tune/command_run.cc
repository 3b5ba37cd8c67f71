// `heed run`: attention on .npy files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/include/heed.h"
#include "tune/commands.h"
#include "tune/npy.h"
#include "tune/peaks.h"
#include "tune/reference.h"
#include "tune/statistics.h"
#include "tune/storage.h"
#include "tune/tile_option.h"

namespace heed {
namespace {

struct RunOptions {
  std::string q, k, v, out, lse;
  std::string causal = "none";
  CLI::Option* causal_offset_option = nullptr;
  CLI::Option* scale_option = nullptr;
  int64_t causal_offset = 0;
  double scale = 1;
  int threads = 0;
  int repeat = 1;
  std::string dtype;  // empty = what q's file says
  std::string target;
  std::string tile;
  bool check = false, json = false;
};

struct Inputs {
  NpyTensor q, k, v;
};

struct Outputs {
  NpyTensor out;
  std::vector<float> lse;
};

// How a dtype is called on the command line and stored in files.
const struct {
  int32_t dtype;
  const char* name;
  NpyType type;
} kDtypes[] = {{HEED_F32, "f32", NpyType::kFloat32},
               {HEED_F16, "f16", NpyType::kFloat16},
               {HEED_BF16, "bf16", NpyType::kUint16}};

struct PlanDestroyer {
  void operator()(heed_plan* plan) const { heed_plan_destroy(plan); }
};
using Plan = std::unique_ptr<heed_plan, PlanDestroyer>;

struct BytesFree {
  void operator()(void* p) const { std::free(p); }
};

bool ReadInputs(const RunOptions& options, Inputs* inputs, std::string* why) {
  return ReadNpy(options.q, 4, &inputs->q, why) &&
         ReadNpy(options.k, 4, &inputs->k, why) &&
         ReadNpy(options.v, 4, &inputs->v, why);
}

// All three files hold the same type: the one that --dtype names, else q's.
bool FindDtype(const RunOptions& options, const Inputs& inputs, int32_t* dtype,
               std::string* why) {
  NpyType type = inputs.q.type;
  if (options.dtype.empty() && type == NpyType::kUint16) {
    *why = fmt::format(
        "{}: uint16 elements; if they are bfloat16, say --dtype bf16",
        options.q);
    return false;
  }
  for (const auto& known : kDtypes) {
    if (options.dtype == known.name) type = known.type;
  }
  for (const auto& known : kDtypes) {
    if (type == known.type) *dtype = known.dtype;
  }
  const struct {
    const std::string& path;
    const NpyTensor& tensor;
  } files[] = {
      {options.q, inputs.q}, {options.k, inputs.k}, {options.v, inputs.v}};
  for (const auto& file : files) {
    if (file.tensor.type == type) continue;
    *why =
        fmt::format("{}: {} elements; expected {}, as {}", file.path,
                    NpyTypeName(file.tensor.type), NpyTypeName(type),
                    options.dtype.empty() ? "q's" : "--dtype " + options.dtype);
    return false;
  }
  return true;
}

// The dimension `axis` of the tensor in `path` must be what another tensor
// says.
bool Agree(const std::string& path, const NpyTensor& tensor, size_t axis,
           int64_t want, const char* as, std::string* why) {
  if (tensor.shape[axis] == want) return true;
  *why = fmt::format("{}: dimension {} is {}; expected {}, as {}", path, axis,
                     tensor.shape[axis], want, as);
  return false;
}

bool MakeProblem(const RunOptions& options, const Inputs& inputs,
                 heed_problem* problem, std::string* why) {
  const auto& q = inputs.q.shape;
  const auto& k = inputs.k.shape;
  int32_t dtype = 0;
  if (!FindDtype(options, inputs, &dtype, why) ||
      !Agree(options.k, inputs.k, 0, q[0], "q's batch", why) ||
      !Agree(options.k, inputs.k, 3, q[3], "q's head width", why) ||
      !Agree(options.v, inputs.v, 0, q[0], "q's batch", why) ||
      !Agree(options.v, inputs.v, 1, k[1], "k's heads", why) ||
      !Agree(options.v, inputs.v, 2, k[2], "k's length", why)) {
    return false;
  }
  heed_problem_init(problem);
  problem->batch = q[0];
  problem->heads_q = q[1];
  problem->len_q = q[2];
  problem->dim_qk = q[3];
  problem->heads_kv = k[1];
  problem->len_k = k[2];
  problem->dim_v = inputs.v.shape[3];
  problem->dtype = dtype;
  problem->causal = HEED_CAUSAL_NONE;
  if (options.causal == "top_left") problem->causal = HEED_CAUSAL_TOP_LEFT;
  if (options.causal == "bottom_right") {
    problem->causal = HEED_CAUSAL_BOTTOM_RIGHT;
  }
  if (*options.causal_offset_option) problem->causal = HEED_CAUSAL_OFFSET;
  problem->scale_mode = HEED_SCALE_INV_SQRT_DIM;
  if (*options.scale_option) {
    problem->scale_mode = HEED_SCALE_VALUE;
    problem->scale = options.scale;
  }
  return true;
}

bool MakePlan(const RunOptions& options, const heed_problem& problem,
              Plan* plan, std::string* why) {
  heed_options heed;
  heed_options_init(&heed);
  heed.threads = options.threads;
  if (!options.target.empty()) heed.target = options.target.c_str();
  if (!options.tile.empty()) {
    heed.tuning = HEED_TUNING_PINNED;
    if (!ParseTileOption(options.tile, &heed.tile, why)) return false;
  }
  heed_plan* created = nullptr;
  if (heed_plan_create(&problem, &heed, &created) != HEED_OK) {
    *why = heed_last_error();
    return false;
  }
  plan->reset(created);
  return true;
}

// Runs `repeat` times; the median of the seconds.
bool Execute(const RunOptions& options, const heed_problem& p,
             const heed_plan* plan, const Inputs& inputs, Outputs* outputs,
             double* seconds, std::string* why) {
  const size_t rows = static_cast<size_t>(p.batch * p.heads_q * p.len_q);
  outputs->out.type = inputs.q.type;
  outputs->out.shape = {p.batch, p.heads_q, p.len_q, p.dim_v};
  outputs->out.Resize(rows * static_cast<size_t>(p.dim_v));
  outputs->lse.resize(rows);
  const size_t bytes = (heed_plan_workspace_size(plan) + 63) / 64 * 64;
  const std::unique_ptr<void, BytesFree> workspace(
      bytes == 0 ? nullptr : std::aligned_alloc(64, bytes));
  if (bytes != 0 && workspace == nullptr) {
    *why = fmt::format("no memory for a workspace of {} bytes", bytes);
    return false;
  }
  heed_call call;
  heed_call_init(&call);
  call.q = heed_dense_input(inputs.q.elements(), p.heads_q, p.len_q, p.dim_qk);
  call.k = heed_dense_input(inputs.k.elements(), p.heads_kv, p.len_k, p.dim_qk);
  call.v = heed_dense_input(inputs.v.elements(), p.heads_kv, p.len_k, p.dim_v);
  call.out =
      heed_dense_output(outputs->out.elements(), p.heads_q, p.len_q, p.dim_v);
  if (!options.lse.empty() || options.check) {
    call.lse = heed_dense_output(outputs->lse.data(), p.heads_q, p.len_q, 1);
  }
  call.causal_offset = options.causal_offset;
  call.workspace = workspace.get();
  call.workspace_size = bytes;
  std::vector<double> times;
  for (int i = 0; i < options.repeat; ++i) {
    const double start = MonotonicSeconds();
    if (heed_plan_run(plan, &call) != HEED_OK) {
      *why = heed_last_error();
      return false;
    }
    times.push_back(MonotonicSeconds() - start);
  }
  *seconds = Median(times);
  return true;
}

// Both files or none.
bool WriteResults(const RunOptions& options, const heed_problem& p,
                  const Outputs& outputs, std::string* why) {
  StagedFile out_file, lse_file;
  const NpyTensor& out = outputs.out;
  return StageNpy(options.out, out.type, out.shape, out.elements(), &out_file,
                  why) &&
         (options.lse.empty() ||
          StageNpy(options.lse, NpyType::kFloat32,
                   {p.batch, p.heads_q, p.len_q}, outputs.lse.data(), &lse_file,
                   why)) &&
         StagedFile::CommitAll({&out_file, &lse_file}, why);
}

// The tensor as floats, which `widened` holds if it did not store them.
const float* AsFloats(int32_t dtype, const NpyTensor& tensor,
                      std::vector<float>* widened) {
  if (dtype == HEED_F32) return tensor.data.data();
  widened->resize(tensor.words.size());
  Widen(dtype, tensor.words.data(), tensor.words.size(), widened->data());
  return widened->data();
}

ReferenceError Check(const RunOptions& options, const heed_problem& problem,
                     const Inputs& inputs, const Outputs& outputs) {
  std::vector<float> q, k, v, out;
  const int32_t dtype = problem.dtype;
  const ReferenceInputs reference{
      AsFloats(dtype, inputs.q, &q), AsFloats(dtype, inputs.k, &k),
      AsFloats(dtype, inputs.v, &v), options.causal_offset};
  return CompareWithReference(problem, reference,
                              AsFloats(dtype, outputs.out, &out),
                              outputs.lse.data());
}

std::string Describe(const heed_plan* plan) {
  std::string text(heed_plan_describe(plan, nullptr, 0) + 1, '\0');
  heed_plan_describe(plan, &text[0], text.size());
  text.pop_back();
  return text;
}

void Print(const RunOptions& options, const heed_plan* plan, double seconds,
           const ReferenceError& error) {
  if (options.json) {
    nlohmann::ordered_json json = {{"plan", Describe(plan)},
                                   {"ms", seconds * 1e3},
                                   {"repeat", options.repeat}};
    if (options.check) {
      json["max_abs_error"] = error.out;
      json["max_abs_error_lse"] = error.lse;
      json["max_abs_reference"] = error.max_abs;
      json["rows_checked"] = error.rows;
    }
    fmt::print("{}\n", json.dump());
    return;
  }
  std::string check;
  if (options.check) {
    check = fmt::format(
        " max_abs_error={:.3g} max_abs_error_lse={:.3g} "
        "max_abs_reference={:.3g}",
        error.out, error.lse, error.max_abs);
  }
  fmt::print("{} time={:.3f}ms{}\n", Describe(plan), seconds * 1e3, check);
}

int RunRun(const RunOptions& options) {
  std::string why;
  Inputs inputs;
  heed_problem problem;
  Plan plan;
  Outputs outputs;
  double seconds = 0;
  if (!options.lse.empty() && options.lse == options.out) {
    FailCommand("run", "--lse and --out name the same file");
    return kUsage;
  }
  if (!ReadInputs(options, &inputs, &why) ||
      !MakeProblem(options, inputs, &problem, &why) ||
      !MakePlan(options, problem, &plan, &why) ||
      !Execute(options, problem, plan.get(), inputs, &outputs, &seconds,
               &why)) {
    return FailCommand("run", why);
  }
  ReferenceError error;
  if (options.check) error = Check(options, problem, inputs, outputs);
  if (!WriteResults(options, problem, outputs, &why)) {
    return FailCommand("run", why);
  }
  Print(options, plan.get(), seconds, error);
  return kDone;
}

// A wrong tile is wrong usage, so CLI11 asks for the reason it is wrong.
std::string CheckTile(const std::string& text) {
  heed_tile tile;
  std::string why;
  ParseTileOption(text, &tile, &why);
  return why;
}

}  // namespace

void AddRunCommand(CLI::App* app, Action* action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* run = app->add_subcommand(
      "run",
      "Compute attention on .npy files: float32, float16, or bfloat16 stored "
      "as uint16 (--dtype bf16), all three alike; little endian, C order, 4 "
      "dimensions (batch, heads, tokens, width). Prints one line: the problem, "
      "the plan and the time");
  run->add_option("--q", options->q, "Queries, (B, Hq, Tq, D)")
      ->required()
      ->type_name("FILE");
  run->add_option("--k", options->k,
                  "Keys, (B, Hkv, Tk, D); Hq is a multiple of Hkv")
      ->required()
      ->type_name("FILE");
  run->add_option("--v", options->v, "Values, (B, Hkv, Tk, Dv)")
      ->required()
      ->type_name("FILE");
  run->add_option(
         "--out", options->out,
         "Where the result goes, (B, Hq, Tq, Dv), of the inputs' type; "
         "written whole or not at all")
      ->required()
      ->type_name("FILE");
  run->add_option("--lse", options->lse,
                  "Where the logarithms of the rows' sums go, (B, Hq, Tq), "
                  "always float32")
      ->type_name("FILE");
  run->add_option("--dtype", options->dtype,
                  "Type of q, k, v and out: f32 (float32), f16 (float16) or "
                  "bf16 (stored as uint16, which is never taken for bf16 "
                  "unasked). Default: what the files say")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->type_name("TYPE");
  CLI::Option* causal =
      run->add_option("--causal", options->causal,
                      "Which keys a query sees: none = all; top_left = key j "
                      "<= query i; bottom_right = j <= i + Tk - Tq")
          ->check(CLI::IsMember({"none", "top_left", "bottom_right"}))
          ->type_name("")
          ->capture_default_str();
  options->causal_offset_option =
      run->add_option("--causal-offset", options->causal_offset,
                      "Query i sees key j <= i + N; N may be negative")
          ->excludes(causal)
          ->type_name("N");
  options->scale_option =
      run->add_option("--scale", options->scale,
                      "Factor of the scores (default: 1 / sqrt(D))")
          ->type_name("S");
  run->add_option("--threads", options->threads,
                  "Threads (default: what affinity and quota allow)")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  run->add_option("--target", options->target,
                  "SIMD target, one that `heed info` lists (default: the best)")
      ->type_name("NAME");
  run->add_option("--tile", options->tile,
                  "Tile instead of the record's or the model's, e.g. "
                  "row_block=96,key_tile=192,pack_k=0,pack_v=2,prefetch=0; "
                  "what is left out is the model's; pack 0 reads in place, 1 "
                  "copies per tile, 2 once per call. Changes the time, never "
                  "the result")
      ->check(CheckTile)
      ->type_name("KEY=N,...");
  run->add_option("--repeat", options->repeat,
                  "Run this often and print the median time")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N")
      ->capture_default_str();
  run->add_flag("--check", options->check,
                "Compare with a reference in double precision on the same "
                "inputs (slow, one thread) and print the largest absolute "
                "error; with f16 and bf16 that includes the rounding of out");
  run->add_flag("--json", options->json, "Print JSON");
  run->callback(
      [options, action] { *action = [options] { return RunRun(*options); }; });
}

}  // namespace heed
