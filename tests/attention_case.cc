#include "tests/attention_case.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "tests/row_program.h"
#include "tests/sanitizer.h"
#include "tests/scratch.h"
#include "tests/special_values.h"

namespace heed::test {
namespace {

// Not a number a test computes, so an element that was not written shows.
size_t Count(int64_t a, int64_t b, int64_t c, int64_t d) {
  return static_cast<size_t>(a * b * c * d);
}

// Batch and tokens of a tensor, and its strides.
struct Extents {
  int64_t batch, len;
};

Extents QueryExtents(const Case& c) {
  if (c.cu_seqlens_q.empty()) return {c.problem.batch, c.problem.len_q};
  return {1, c.cu_seqlens_q.back()};
}

Extents KeyExtents(const Case& c) {
  if (c.problem.page_size > 0) return {c.num_pages, c.problem.page_size};
  if (c.cu_seqlens_k.empty()) return {c.problem.batch, c.problem.len_k};
  return {1, c.cu_seqlens_k.back()};
}

template <typename Tensor, typename Data>
Tensor Describe(const Case& c, Data data, int64_t heads, int64_t len,
                int64_t dim) {
  if (c.tokens_first) return {data, len * heads * dim, dim, heads * dim, 1};
  return {data, heads * len * dim, len * dim, dim, 1};
}

template <typename T>
const T* OrNull(const std::vector<T>& x) {
  return x.empty() ? nullptr : x.data();
}

void BindMask(const Case& c, heed_call* call) {
  const CaseMask& mask = c.mask;
  if (c.problem.mask == HEED_MASK_NONE) return;
  if (c.problem.mask == HEED_MASK_BOOL) {
    call->mask.data = mask.bytes.data();
  } else {
    call->mask.data = mask.values.data();
  }
  const int64_t head = mask.len_q * mask.room;
  call->mask.stride_token = mask.len_q == 1 ? 0 : mask.room;
  call->mask.stride_head = mask.heads == 1 ? 0 : head;
  call->mask.stride_batch = mask.batch == 1 ? 0 : mask.heads * head;
  call->mask.stride_dim = 1;
}

void BindSequences(const Case& c, heed_call* call) {
  call->causal_offset = c.causal_offset;
  call->seqused_k = OrNull(c.seqused_k);
  call->cu_seqlens_q = OrNull(c.cu_seqlens_q);
  call->cu_seqlens_k = OrNull(c.cu_seqlens_k);
  call->causal_offsets = OrNull(c.causal_offsets);
  call->block_table = {OrNull(c.block_table), c.max_pages, c.max_pages,
                       c.num_pages};
}

std::string OptionsOf(const Case& c) {
  const heed_problem& p = c.problem;
  std::string text;
  const auto add = [&text](bool on, const std::string& what) {
    if (on) text += " " + what;
  };
  const auto number = [](int64_t x) { return std::to_string(x); };
  add(p.causal == HEED_CAUSAL_OFFSET || p.align == HEED_ALIGN_OFFSET,
      "offset " + number(c.causal_offset));
  add(p.causal == HEED_CAUSAL_NONE && p.align != 0, "align " + number(p.align));
  add(p.window != 0,
      "window " + number(p.window_left) + " " + number(p.window_right));
  add(p.softcap != 0, "softcap " + std::to_string(p.softcap));
  add(p.alibi != 0, "alibi");
  add(p.mask != HEED_MASK_NONE, "mask " + number(p.mask));
  add(p.mask_block_q > 1 || p.mask_block_k > 1,
      "blocks " + number(p.mask_block_q) + "x" + number(p.mask_block_k));
  add(p.sinks != 0, "sinks");
  add(!c.seqused_k.empty(), "seqused_k");
  add(!c.cu_seqlens_q.empty(), "cu_seqlens_q");
  add(!c.cu_seqlens_k.empty(), "cu_seqlens_k");
  add(!c.causal_offsets.empty(), "causal_offsets");
  add(p.page_size > 0, "page_size " + number(p.page_size));
  add(c.tokens_first, "tokens first");
  return text;
}

void RunSerially(void*, size_t count, void (*task)(void*, size_t), void* ctx) {
  for (size_t i = 0; i < count; ++i) task(ctx, i);
}

void RunOnNewThreads(void*, size_t count, void (*task)(void*, size_t),
                     void* ctx) {
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i) threads.emplace_back(task, ctx, i);
  if (count > 0) task(ctx, 0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

heed_problem MakeProblem(int64_t batch, int64_t heads_q, int64_t heads_kv,
                         int64_t len_q, int64_t len_k, int64_t dim_qk,
                         int64_t dim_v, int32_t causal) {
  heed_problem problem;
  heed_problem_init(&problem);
  problem.batch = batch;
  problem.heads_q = heads_q;
  problem.heads_kv = heads_kv;
  problem.len_q = len_q;
  problem.len_k = len_k;
  problem.dim_qk = dim_qk;
  problem.dim_v = dim_v;
  problem.dtype = HEED_F32;
  problem.causal = causal;
  problem.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  return problem;
}

void SizeInputs(Case* c) {
  const heed_problem& p = c->problem;
  const Extents q = QueryExtents(*c), k = KeyExtents(*c);
  c->q.assign(Count(q.batch, p.heads_q, q.len, p.dim_qk), 0.0f);
  c->k.assign(Count(k.batch, p.heads_kv, k.len, p.dim_qk), 0.0f);
  c->v.assign(Count(k.batch, p.heads_kv, k.len, p.dim_v), 0.0f);
}

Case MakeCase(const heed_problem& p, int64_t causal_offset) {
  Case c;
  c.problem = p;
  c.causal_offset = causal_offset;
  SizeInputs(&c);
  return c;
}

std::string NameOf(const Case& c) {
  char text[256] = "";
  heed_problem_print(&c.problem, text, sizeof(text));
  return text + OptionsOf(c);
}

std::string NameOf(const Settings& settings) {
  const heed_tile& t = settings.tile;
  std::string name = "threads " + std::to_string(settings.threads);
  name += " target " + (settings.target.empty() ? "best" : settings.target);
  if (settings.pinned) {
    name += " tile " + std::to_string(t.row_block) + "x" +
            std::to_string(t.key_tile) + " pack_k " + std::to_string(t.pack_k) +
            " pack_v " + std::to_string(t.pack_v) + " prefetch " +
            std::to_string(t.prefetch);
  }
  return name;
}

heed_call DenseCall(const Case& c, Result* result) {
  const heed_problem& p = c.problem;
  const Extents q = QueryExtents(c), k = KeyExtents(c);
  result->out.assign(Count(q.batch, p.heads_q, q.len, p.dim_v), kSentinel);
  result->lse.assign(Count(q.batch, p.heads_q, q.len, 1), kSentinel);
  heed_call call;
  heed_call_init(&call);
  // An empty vector has no address, and a null pointer may be an error even
  // where nothing is read.
  static float nothing[1] = {kSentinel};
  const auto in = [](const std::vector<float>& x) -> const void* {
    return x.empty() ? nothing : x.data();
  };
  const auto to = [](std::vector<float>& x) -> void* {
    return x.empty() ? nothing : x.data();
  };
  call.q = Describe<heed_input>(c, in(c.q), p.heads_q, q.len, p.dim_qk);
  call.k = Describe<heed_input>(c, in(c.k), p.heads_kv, k.len, p.dim_qk);
  call.v = Describe<heed_input>(c, in(c.v), p.heads_kv, k.len, p.dim_v);
  call.out =
      Describe<heed_output>(c, to(result->out), p.heads_q, q.len, p.dim_v);
  call.lse = Describe<heed_output>(c, to(result->lse), p.heads_q, q.len, 1);
  BindMask(c, &call);
  BindSequences(c, &call);
  call.alibi_slopes = OrNull(c.slopes);
  call.sinks = OrNull(c.sinks);
  return call;
}

heed_status RunCall(const heed_problem& problem, const heed_call& call,
                    const Settings& settings) {
  heed_options options;
  heed_options_init(&options);
  options.threads = settings.threads;
  options.tuning = settings.pinned ? HEED_TUNING_PINNED : HEED_TUNING_OFF;
  options.tile = settings.tile;
  options.target = settings.target.empty() ? nullptr : settings.target.c_str();
  options.runner = settings.runner;
  heed_plan* plan = nullptr;
  heed_status status = heed_plan_create(&problem, &options, &plan);
  if (status != HEED_OK) return status;
  const size_t size = heed_plan_workspace_size(plan);
  const Scratch workspace(size);
  heed_call with_workspace = call;
  with_workspace.workspace = workspace.get();
  with_workspace.workspace_size = size;
  status = heed_plan_run(plan, &with_workspace);
  heed_plan_destroy(plan);
  return status;
}

Result RunHeed(const Case& c, const Settings& settings) {
  Result result;
  const heed_call call = DenseCall(c, &result);
  result.status = RunCall(c.problem, call, settings);
  if (result.status != HEED_OK) result.error = heed_last_error();
  return result;
}

Result RunRowProgram(const Case& c, size_t step) {
  Result result;
  const heed_call call = DenseCall(c, &result);
  RowProgramAttention(c.problem, call, step);
  return result;
}

bool SameBits(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!SameBits(a[i], b[i])) return false;
  }
  return true;
}

bool SameBits(const Result& a, const Result& b) {
  return a.status == b.status && SameBits(a.out, b.out) &&
         SameBits(a.lse, b.lse);
}

std::string Difference(const Result& got, const Result& want) {
  if (got.status != want.status) {
    return std::string("status ") + heed_status_name(got.status) + ": " +
           got.error;
  }
  const auto first = [](const char* name, const std::vector<float>& a,
                        const std::vector<float>& b) -> std::string {
    if (a.size() != b.size()) return std::string(name) + " sizes differ";
    for (size_t i = 0; i < a.size(); ++i) {
      if (SameBits(a[i], b[i])) continue;
      char text[160];
      std::snprintf(text, sizeof(text), "%s[%zu]: got %a (%g), want %a (%g)",
                    name, i, a[i], a[i], b[i], b[i]);
      return text;
    }
    return "";
  };
  const std::string out = first("out", got.out, want.out);
  return out.empty() ? first("lse", got.lse, want.lse) : out;
}

const heed_runner* SerialRunner() {
  static const heed_runner runner = {RunSerially, nullptr};
  return &runner;
}

const heed_runner* ThreadRunner() {
  static const heed_runner runner = {RunOnNewThreads, nullptr};
  return &runner;
}

const heed_runner* DefaultRunner() {
  return HEED_THREAD_SANITIZER ? ThreadRunner() : nullptr;
}

std::vector<std::string> TargetNames(bool fused_only) {
  int64_t targets[64];
  const size_t count = SupportedTargets(targets, 64);
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    const Kernels kernels = GetKernels(targets[i], DType::kF32);
    if (kernels.fused || !fused_only) names.push_back(kernels.target);
  }
  return names;
}

std::vector<heed_tile> VariedTiles() {
  return {{1, 48, 1, 2, 1, 0, 0, {}},
          {48, 96, 2, 2, 2, 1, 0, {}},
          {33, 768, 1, 3, 2, 0, 1, {}},
          {96, 144, 1, 1, 2, 64, 3, {}},
          {200, 240, 3, 3, 1, 16, 65, {}}};
}

}  // namespace heed::test
