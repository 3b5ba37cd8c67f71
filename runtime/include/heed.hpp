// heed for C++17: a header-only face on heed.h. Failures are exceptions here.
//
//   const heed::Problem problem = heed::Problem()
//                                     .Heads(32, 8)
//                                     .Lengths(2048, 2048)
//                                     .Dims(128)
//                                     .Dtype(HEED_F32)
//                                     .Causal(HEED_CAUSAL_BOTTOM_RIGHT)
//                                     .ScaleInvSqrtDim();
//   const heed::Plan plan(problem);
//   heed::Workspace workspace = plan.MakeWorkspace();
//   heed::Tensors t;
//   t.q = heed::Input(q, heed::DenseStrides(32, 2048, 128));
//   t.k = heed::Input(k, heed::DenseStrides(8, 2048, 128));
//   t.v = heed::Input(v, heed::DenseStrides(8, 2048, 128));
//   t.out = heed::Output(out, heed::DenseStrides(32, 2048, 128));
//   plan.Run(t, workspace);
//
// Shapes: q [batch, heads_q, len_q, dim_qk], k [batch, heads_kv, len_k,
// dim_qk], v [batch, heads_kv, len_k, dim_v], out [batch, heads_q, len_q,
// dim_v], lse [batch, heads_q, len_q] in f32. Strides count elements; the last
// dimension is contiguous. Nothing here owns or copies a tensor.
//
// Threads: a const Plan may be run by any number of threads at once, each with
// a Workspace of its own. Everything else is an ordinary value.
#ifndef HEED_HPP_
#define HEED_HPP_

#include <heed.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace heed {

// A call that did not return HEED_OK. what() is heed_last_error()'s line.
class Error : public std::runtime_error {
 public:
  Error(heed_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  heed_status status() const noexcept { return status_; }

 private:
  heed_status status_;
};

// Throws Error unless `status` is HEED_OK. Call it on the thread that failed.
inline void Check(heed_status status) {
  if (status != HEED_OK) {
    throw Error(status, std::string(heed_status_name(status)) + ": " +
                            heed_last_error());
  }
}

// What is computed. As in C, the dtype and the scale have to be chosen; batch
// starts at 1 and everything is visible until Causal() says otherwise.
class Problem {
 public:
  Problem() {
    heed_problem_init(&problem_);
    problem_.batch = 1;
  }
  explicit Problem(const heed_problem& problem) : problem_(problem) {}

  // From a problem string, e.g. "b1_hq32_hkv8_q2048_k2048_d128_causal_f32".
  static Problem Parse(const std::string& text) {
    Problem problem;
    Check(heed_problem_parse(text.c_str(), &problem.problem_));
    return problem;
  }

  Problem& Batch(int64_t batch) {
    problem_.batch = batch;
    return *this;
  }
  // Query head h reads kv head h / (query / kv).
  Problem& Heads(int64_t query, int64_t kv) {
    problem_.heads_q = query;
    problem_.heads_kv = kv;
    return *this;
  }
  Problem& Heads(int64_t heads) { return Heads(heads, heads); }
  Problem& Lengths(int64_t query, int64_t key) {
    problem_.len_q = query;
    problem_.len_k = key;
    return *this;
  }
  Problem& Dims(int64_t qk, int64_t v) {
    problem_.dim_qk = qk;
    problem_.dim_v = v;
    return *this;
  }
  Problem& Dims(int64_t dim) { return Dims(dim, dim); }
  Problem& Dtype(heed_dtype dtype) {
    problem_.dtype = dtype;
    return *this;
  }
  Problem& Causal(heed_causal causal) {
    problem_.causal = causal;
    return *this;
  }
  // Query i at position p = i + offset sees keys p - left to p + right, both
  // included; -1: without limit. Without Causal() it needs Align().
  Problem& Window(int64_t left, int64_t right) {
    problem_.window = 1;
    problem_.window_left = left;
    problem_.window_right = right;
    return *this;
  }
  // Slopes for linear biases are in the call. Without Causal() it needs
  // Align().
  Problem& Alibi() {
    problem_.alibi = 1;
    return *this;
  }
  // Where queries stand among the keys, for a window or ALiBi without Causal().
  Problem& Align(heed_align align) {
    problem_.align = align;
    return *this;
  }
  // Scores become cap * tanh(score / cap); 0: they do not.
  Problem& Softcap(double cap) {
    problem_.softcap = cap;
    return *this;
  }
  // An element of a boolean mask may stand for a block of queries and keys.
  Problem& Mask(heed_mask mask, int32_t block_q = 1, int32_t block_k = 1) {
    problem_.mask = mask;
    problem_.mask_block_q = block_q;
    problem_.mask_block_k = block_k;
    return *this;
  }
  // A logit per query head, in the call, joins the denominator.
  Problem& Sinks() {
    problem_.sinks = 1;
    return *this;
  }
  // The call gives lengths, of which Lengths() are the longest.
  Problem& Ragged() {
    problem_.ragged = 1;
    return *this;
  }
  // k and v are pages of so many keys; 0: they are not.
  Problem& Pages(int64_t page_size) {
    problem_.page_size = page_size;
    return *this;
  }
  // 1 / sqrt(dim_qk).
  Problem& ScaleInvSqrtDim() {
    problem_.scale_mode = HEED_SCALE_INV_SQRT_DIM;
    problem_.scale = 0;
    return *this;
  }
  // Any finite value, 0 and negative included.
  Problem& Scale(double scale) {
    problem_.scale_mode = HEED_SCALE_VALUE;
    problem_.scale = scale;
    return *this;
  }

  const heed_problem& c() const noexcept { return problem_; }

  // The problem string; empty if a field is not set or out of range.
  std::string ToString() const {
    std::string text(heed_problem_print(&problem_, nullptr, 0), '\0');
    heed_problem_print(&problem_, text.data(), text.size() + 1);
    return text;
  }

 private:
  heed_problem problem_;
};

// How it is computed. The defaults are good ones.
class Options {
 public:
  Options() { heed_options_init(&options_); }

  // 0: as many as the system, the quota and the caller's TBB arena allow.
  Options& Threads(int32_t threads) {
    options_.threads = threads;
    return *this;
  }
  Options& Tuning(heed_tuning tuning) {
    options_.tuning = tuning;
    return *this;
  }
  // Runs exactly this tile, but for rounding.
  Options& PinTile(const heed_tile& tile) {
    options_.tuning = HEED_TUNING_PINNED;
    options_.tile = tile;
    return *this;
  }
  // A name from heed::Targets(): run exactly this one. Empty: the best.
  Options& Target(std::string target) {
    target_ = std::move(target);
    return *this;
  }
  // Instead of oneTBB. What runner_ctx points to has to outlive the plan.
  Options& Runner(const heed_runner& runner) {
    runner_ = runner;
    has_runner_ = true;
    return *this;
  }

  // Valid as long as this object is neither changed nor destroyed.
  heed_options c() const noexcept {
    heed_options options = options_;
    options.target = target_.empty() ? nullptr : target_.c_str();
    options.runner = has_runner_ ? &runner_ : nullptr;
    return options;
  }

 private:
  heed_options options_;
  std::string target_;
  heed_runner runner_{};
  bool has_runner_ = false;
};

// Steps between neighbours of one axis, in elements. The last axis has step 1.
struct Strides {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t token = 0;
};

// Of a contiguous [batch, heads, len, dim] tensor.
inline Strides DenseStrides(int64_t heads, int64_t len, int64_t dim) {
  const heed_input dense = heed_dense_input(nullptr, heads, len, dim);
  return {dense.stride_batch, dense.stride_head, dense.stride_token};
}

// Of a contiguous [batch, len, heads, dim] tensor, as projections write it.
inline Strides TokenMajorStrides(int64_t heads, int64_t len, int64_t dim) {
  const heed_input dense = heed_dense_input(nullptr, len, heads, dim);
  return {dense.stride_batch, dense.stride_token, dense.stride_head};
}

inline heed_input Input(const void* data, const Strides& strides) {
  return {data, strides.batch, strides.head, strides.token, 1};
}

inline heed_output Output(void* data, const Strides& strides) {
  return {data, strides.batch, strides.head, strides.token, 1};
}

// A dense [batch, max_pages] table of pages, num_pages of which exist.
inline heed_block_table BlockTable(const int32_t* data, int64_t max_pages,
                                   int64_t num_pages) {
  return {data, max_pages, max_pages, num_pages};
}

// The data of one call. out and lse overlap no input and not each other. What
// the problem does not ask for is not read.
struct Tensors {
  heed_input q{}, k{}, v{};
  heed_output out{};
  heed_output lse{};          // data null: not wanted
  int64_t causal_offset = 0;  // with HEED_CAUSAL_OFFSET or HEED_ALIGN_OFFSET
  heed_input mask{};          // [batch, heads_q, len_q, len_k]
  const float* alibi_slopes = nullptr;  // [heads_q]
  const float* sinks = nullptr;         // [heads_q]
  // With Problem::Ragged(); each may be null.
  const int32_t* seqused_k = nullptr;       // [batch]
  const int32_t* cu_seqlens_q = nullptr;    // [batch + 1]
  const int32_t* cu_seqlens_k = nullptr;    // [batch + 1]
  const int64_t* causal_offsets = nullptr;  // [batch]
  heed_block_table block_table{};           // with Problem::Pages()

  // Without a workspace.
  heed_call c() const noexcept {
    heed_call call;
    heed_call_init(&call);
    call.q = q;
    call.k = k;
    call.v = v;
    call.out = out;
    call.lse = lse;
    call.causal_offset = causal_offset;
    call.mask = mask;
    call.alibi_slopes = alibi_slopes;
    call.sinks = sinks;
    call.seqused_k = seqused_k;
    call.cu_seqlens_q = cu_seqlens_q;
    call.cu_seqlens_k = cu_seqlens_k;
    call.causal_offsets = causal_offsets;
    call.block_table = block_table;
    return call;
  }
};

// Scratch memory of one thread that runs plans, aligned to 64 bytes.
class Workspace {
 public:
  Workspace() = default;
  explicit Workspace(size_t size)
      : memory_(size == 0 ? nullptr : ::operator new(size, kAlignment)),
        size_(size) {}

  void* data() const noexcept { return memory_.get(); }
  size_t size() const noexcept { return size_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(void* memory) const noexcept {
      ::operator delete(memory, kAlignment);
    }
  };
  std::unique_ptr<void, Delete> memory_;
  size_t size_ = 0;
};

// A problem made ready to run: validated, bound to a SIMD target and a tile.
class Plan {
 public:
  explicit Plan(const Problem& problem, const Options& options = Options()) {
    const heed_options c_options = options.c();
    heed_plan* plan = nullptr;
    Check(heed_plan_create(&problem.c(), &c_options, &plan));
    plan_.reset(plan);
  }

  // Bytes a Workspace for this plan needs; a larger one serves as well.
  size_t WorkspaceSize() const noexcept {
    return heed_plan_workspace_size(plan_.get());
  }
  Workspace MakeWorkspace() const { return Workspace(WorkspaceSize()); }

  // Computes; allocates nothing. A failed run writes nothing.
  void Run(const Tensors& tensors, Workspace& workspace) const {
    heed_call call = tensors.c();
    call.workspace = workspace.data();
    call.workspace_size = workspace.size();
    Check(heed_plan_run(plan_.get(), &call));
  }

  // One line: target, threads, tile and where the tile came from.
  std::string Describe() const {
    std::string text(heed_plan_describe(plan_.get(), nullptr, 0), '\0');
    heed_plan_describe(plan_.get(), text.data(), text.size() + 1);
    return text;
  }

  // Null only after a move.
  const heed_plan* c() const noexcept { return plan_.get(); }

 private:
  struct Destroy {
    void operator()(heed_plan* plan) const noexcept { heed_plan_destroy(plan); }
  };
  std::unique_ptr<heed_plan, Destroy> plan_;
};

// Plan, workspace and run in one, for one-off use.
inline void Attention(const Problem& problem, const Tensors& tensors,
                      const Options& options = Options()) {
  const Plan plan(problem, options);
  Workspace workspace = plan.MakeWorkspace();
  plan.Run(tensors, workspace);
}

// The scores of a call, or its attention pattern, to look at: scores is f32,
// [batch, heads_q, len_q, len_k].
inline void Scores(const Problem& problem, const Tensors& tensors,
                   heed_score_stage stage, const heed_output& scores,
                   const Options& options = Options()) {
  const heed_options c_options = options.c();
  const heed_call call = tensors.c();
  Check(heed_scores(&problem.c(), &c_options, &call, stage, &scores));
}

// heed_append with its start, and one sequence; fill in the rest.
struct Append : heed_append {
  Append() {
    heed_append_init(this);
    batch = 1;
  }
};

// Appends new tokens of k and v to a cache. A failed call writes nothing.
inline void KvAppend(const Append& append) { Check(heed_kv_append(&append)); }

// heed_merge with its start, and one sequence; fill in the rest.
struct Merge : heed_merge {
  Merge() {
    heed_merge_init(this);
    batch = 1;
  }
};

// Merges the states of the same rows over two sets of keys.
inline void MergeStates(const Merge& merge) {
  Check(heed_merge_states(&merge));
}

// SIMD targets that are compiled in and run here, best first, separated by
// spaces.
inline std::string Targets() {
  std::string text(heed_targets(nullptr, 0), '\0');
  heed_targets(text.data(), text.size() + 1);
  return text;
}

}  // namespace heed

#endif  // HEED_HPP_
