#include "onnxruntime/attention_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "onnxruntime/node_inputs.h"

namespace heed_ort {
namespace {

constexpr size_t kKeptPlans = 8;

void Check(heed_status status) {
  if (status != HEED_OK) Refuse(heed_last_error());
}

// The context of the run that this thread is in. A plan's runner is made before
// there is one; heed calls it on the thread that runs.
thread_local OrtKernelContext* current = nullptr;

// ONNX Runtime's own threads: a second pool would compete with the first.
void RunOnSession(void*, size_t count, void (*task)(void*, size_t),
                  void* task_ctx) {
  struct Work {
    void (*task)(void*, size_t);
    void* task_ctx;
  } work{task, task_ctx};
  Ort::KernelContext(current).ParallelFor(
      [](void* context, size_t i) {
        const Work& w = *static_cast<const Work*>(context);
        w.task(w.task_ctx, i);
      },
      count, count, &work);
}

// Scratch of one thread, aligned to 64 bytes, kept for its next run.
class Scratch {
 public:
  ~Scratch() { std::free(memory_); }
  void* Reserve(size_t bytes) {
    if (bytes > size_) {
      std::free(memory_);
      size_ = (bytes + 63) / 64 * 64;
      memory_ = std::aligned_alloc(64, size_);
      if (memory_ == nullptr) {
        size_ = 0;
        throw std::bad_alloc();
      }
    }
    return memory_;
  }

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
};

// What has to live as long as the call: the cache, if nobody asked for it, the
// mask, if it was short, and the lengths.
struct Kept {
  std::vector<char> key, value, mask;
  std::vector<int32_t> used;
  std::vector<int64_t> offsets;
  std::vector<float> sinks;
};

int64_t ElementBytes(heed_dtype dtype) { return dtype == HEED_F32 ? 4 : 2; }

// Appends the tokens of k and v to caches of `len` keys.
void Append(heed_dtype dtype, const View& k, const View& v,
            const heed_output& key, const heed_output& value, int64_t len,
            const std::vector<int64_t>& positions) {
  heed_append append;
  heed_append_init(&append);
  append.batch = k.batch;
  append.heads_kv = k.heads;
  append.len_new = k.len;
  append.len_cache = len;
  append.dim_qk = k.dim;
  append.dim_v = v.dim;
  append.dtype_new = append.dtype_cache = dtype;
  append.k_new = k.input;
  append.v_new = v.input;
  append.k_cache = key;
  append.v_cache = value;
  append.positions = positions.data();
  Check(heed_kv_append(&append));
}

// Present is past and the new tokens. Leaves `k` and `v` to be the present.
void MakePresent(const Ort::KernelContext& context, heed_dtype dtype,
                 const View& past_key, const View& past_value, int64_t len,
                 const std::vector<int64_t>& positions, View* k, View* v,
                 Kept* kept) {
  const auto room = [&](size_t output, const View& view,
                        std::vector<char>* own) -> void* {
    Ort::UnownedValue present =
        context.GetOutput(output, {view.batch, view.heads, len, view.dim});
    if (present) return present.GetTensorMutableRawData();
    own->resize(static_cast<size_t>(view.batch * view.heads * len * view.dim *
                                    ElementBytes(dtype)));
    return own->data();
  };
  void* const key = room(kPresentKey, *k, &kept->key);
  void* const value = room(kPresentValue, *v, &kept->value);
  const heed_output keys = heed_dense_output(key, k->heads, len, k->dim);
  const heed_output values = heed_dense_output(value, v->heads, len, v->dim);
  // The session may have bound both to one buffer.
  if (past_key.data != nullptr && past_key.data != key) {
    Append(dtype, past_key, past_value, keys, values, len,
           std::vector<int64_t>(static_cast<size_t>(k->batch), 0));
  }
  Append(dtype, *k, *v, keys, values, len, positions);
  k->data = key, k->len = len;
  v->data = value, v->len = len;
  k->input = heed_dense_input(key, k->heads, len, k->dim);
  v->input = heed_dense_input(value, v->heads, len, v->dim);
}

// qk_matmul_output: f32 from heed, of q's type in the graph.
void WriteScores(const heed_problem& problem, const heed_call& call,
                 int64_t mode, Ort::UnownedValue output) {
  const auto count = static_cast<size_t>(problem.batch * problem.heads_q *
                                         problem.len_q * problem.len_k);
  std::vector<float> own(problem.dtype == HEED_F32 ? 0 : count);
  float* scores = problem.dtype == HEED_F32
                      ? output.GetTensorMutableData<float>()
                      : own.data();
  // Of a ragged call heed writes what sequences have.
  std::fill_n(scores, count, 0.0f);
  const heed_output out =
      heed_dense_output(scores, problem.heads_q, problem.len_q, problem.len_k);
  Check(heed_scores(&problem, nullptr, &call,
                    static_cast<heed_score_stage>(mode + HEED_SCORES_SCALED),
                    &out));
  if (problem.dtype == HEED_F16) {
    auto* to = output.GetTensorMutableData<Ort::Float16_t>();
    std::transform(own.begin(), own.end(), to,
                   [](float x) { return Ort::Float16_t(x); });
  } else if (problem.dtype == HEED_BF16) {
    auto* to = output.GetTensorMutableData<Ort::BFloat16_t>();
    std::transform(own.begin(), own.end(), to,
                   [](float x) { return Ort::BFloat16_t(x); });
  }
}

}  // namespace

Attributes ReadAttributes(const OrtKernelInfo* raw) {
  const Ort::ConstKernelInfo info(raw);
  const auto integer = [&](const char* name, int64_t otherwise) {
    int64_t value = otherwise;
    Ort::Status status(
        Ort::GetApi().KernelInfoGetAttribute_int64(raw, name, &value));
    return status.IsOK() ? value : otherwise;
  };
  const auto real = [&](const char* name, float* value) {
    Ort::Status status(
        Ort::GetApi().KernelInfoGetAttribute_float(raw, name, value));
    return status.IsOK();
  };
  Attributes a;
  a.is_causal = integer("is_causal", 0);
  a.q_num_heads = integer("q_num_heads", 0);
  a.kv_num_heads = integer("kv_num_heads", 0);
  a.scores_stage = integer("qk_matmul_output_mode", 0);
  a.local_window_size = integer("local_window_size", -1);
  a.has_scale = real("scale", &a.scale);
  real("softcap", &a.softcap);
  if (a.scores_stage < 0 || a.scores_stage > 3) {
    Refuse("qk_matmul_output_mode is " + std::to_string(a.scores_stage) +
           "; expected 0 to 3");
  }
  if (a.local_window_size > 0 && a.is_causal == 0) {
    Refuse("local_window_size is " + std::to_string(a.local_window_size) +
           "; expected none without is_causal");
  }
  return a;
}

AttentionKernel::Plan AttentionKernel::PlanOf(const heed_problem& problem) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Made& made : made_) {
    if (std::memcmp(&made.problem, &problem, sizeof(problem)) == 0) {
      return made.plan;
    }
  }
  const heed_runner runner = {RunOnSession, nullptr};
  heed_options options;
  heed_options_init(&options);
  options.runner = &runner;
  heed_plan* plan = nullptr;
  Check(heed_plan_create(&problem, &options, &plan));
  Plan shared(plan, heed_plan_destroy);
  if (made_.size() == kKeptPlans) made_.erase(made_.begin());
  made_.push_back({problem, shared});
  return shared;
}

void AttentionKernel::Compute(OrtKernelContext* raw) {
  const Ort::KernelContext context(raw);
  const size_t inputs = context.GetInputCount();
  const auto given = [&](size_t input) {
    return input < inputs ? context.GetInput(input) : Ort::ConstValue{nullptr};
  };
  const Ort::ConstValue q_value = given(kQ);
  const View q = ViewOf(q_value, "Q", attributes_.q_num_heads);
  View k = ViewOf(given(kK), "K", attributes_.kv_num_heads);
  View v = ViewOf(given(kV), "V", attributes_.kv_num_heads);
  if (k.batch != q.batch || v.batch != q.batch || v.heads != k.heads ||
      v.len != k.len || k.dim != q.dim) {
    Refuse("K or V does not fit Q: batch " + std::to_string(q.batch) + ", " +
           std::to_string(k.batch) + ", " + std::to_string(v.batch) +
           ", tokens of K and V " + std::to_string(k.len) + ", " +
           std::to_string(v.len) + ", width of Q and K " +
           std::to_string(q.dim) + ", " + std::to_string(k.dim));
  }

  Kept kept;
  heed_problem problem;
  heed_problem_init(&problem);
  heed_call call;
  heed_call_init(&call);
  const auto sequences = static_cast<size_t>(q.batch);

  // Where the new tokens of each sequence stand, and how many keys it has.
  View past_key, past_value;
  if (const Ort::ConstValue past = given(kPastKey)) {
    past_key = ViewOf(past, "past_key", attributes_.kv_num_heads);
    past_value =
        ViewOf(given(kPastValue), "past_value", attributes_.kv_num_heads);
  }
  int64_t len_k = past_key.len + k.len;
  std::vector<int64_t> positions(sequences, past_key.len);
  if (const Ort::ConstValue nonpad = given(kNonpad)) {
    if (nonpad.GetTensorTypeAndShapeInfo().GetElementCount() != sequences) {
      Refuse("nonpad_kv_seqlen does not have one number for each of " +
             std::to_string(sequences) + " sequences");
    }
    const int64_t* used = nonpad.GetTensorData<int64_t>();
    const int64_t longest =
        sequences == 0 ? 0 : *std::max_element(used, used + sequences);
    if (past_key.data != nullptr) len_k = std::max(past_key.len, longest);
    for (size_t b = 0; b < sequences; ++b) {
      if (used[b] < 0 || used[b] > len_k) {
        Refuse("nonpad_kv_seqlen of sequence " + std::to_string(b) + " is " +
               std::to_string(used[b]) + "; expected 0 to " +
               std::to_string(len_k));
      }
      kept.used.push_back(static_cast<int32_t>(used[b]));
      const bool prompt = past_key.data != nullptr && q.len == longest;
      positions[b] = prompt ? 0 : used[b] - q.len;
    }
    problem.ragged = 1;
    call.seqused_k = kept.used.data();
    call.causal_offsets = positions.data();
  }
  if (past_key.data != nullptr || context.GetOutputCount() > kPresentKey) {
    const std::vector<int64_t> first(sequences, 0);
    const bool cached = past_key.data != nullptr;
    MakePresent(context, dtype_, past_key, past_value, len_k,
                cached ? positions : first, &k, &v, &kept);
  }

  problem.batch = q.batch, problem.heads_q = q.heads;
  problem.heads_kv = k.heads, problem.len_q = q.len, problem.len_k = len_k;
  problem.dim_qk = q.dim, problem.dim_v = v.dim, problem.dtype = dtype_;
  problem.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  if (attributes_.has_scale) {
    problem.scale_mode = HEED_SCALE_VALUE;
    problem.scale = attributes_.scale;
  }
  problem.softcap = attributes_.softcap;
  if (attributes_.is_causal != 0) {
    problem.causal = HEED_CAUSAL_OFFSET;
    call.causal_offset = past_key.len;
    if (attributes_.local_window_size > 0) {
      problem.window = 1;
      problem.window_left = attributes_.local_window_size;
    }
  }
  call.q = q.input, call.k = k.input, call.v = v.input;
  if (const Ort::ConstValue mask = given(kMask)) {
    TakeMask(mask, &problem, &call, &kept.mask);
  }
  if (const Ort::ConstValue sinks = given(kSinks)) {
    kept.sinks = Floats(sinks, dtype_);
    if (kept.sinks.size() != static_cast<size_t>(q.heads)) {
      Refuse("sinks has " + std::to_string(kept.sinks.size()) +
             " numbers; expected one for each of " + std::to_string(q.heads) +
             " heads");
    }
    problem.sinks = 1;
    call.sinks = kept.sinks.data();
  }

  const bool rank3 =
      q_value.GetTensorTypeAndShapeInfo().GetDimensionsCount() == 3;
  if (rank3) {
    Ort::UnownedValue y =
        context.GetOutput(kY, {q.batch, q.len, q.heads * v.dim});
    call.out = {y.GetTensorMutableRawData(), q.len * q.heads * v.dim, v.dim,
                q.heads * v.dim, 1};
  } else {
    Ort::UnownedValue y =
        context.GetOutput(kY, {q.batch, q.heads, q.len, v.dim});
    call.out =
        heed_dense_output(y.GetTensorMutableRawData(), q.heads, q.len, v.dim);
  }

  thread_local Scratch scratch;
  const Plan plan = PlanOf(problem);
  call.workspace_size = heed_plan_workspace_size(plan.get());
  if (call.workspace_size != 0) {
    call.workspace = scratch.Reserve(call.workspace_size);
  }
  OrtKernelContext* const outer = current;
  current = raw;
  const heed_status status = heed_plan_run(plan.get(), &call);
  current = outer;
  Check(status);
  if (context.GetOutputCount() > kScores) {
    Ort::UnownedValue scores =
        context.GetOutput(kScores, {q.batch, q.heads, q.len, len_k});
    if (scores) WriteScores(problem, call, attributes_.scores_stage, scores);
  }
}

}  // namespace heed_ort
