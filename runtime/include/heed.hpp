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

// The data of one call. out and lse overlap no input and not each other.
struct Tensors {
  heed_input q{}, k{}, v{};
  heed_output out{};
  heed_output lse{};          // data null: not wanted
  int64_t causal_offset = 0;  // read only with HEED_CAUSAL_OFFSET
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
    heed_call call;
    heed_call_init(&call);
    call.q = tensors.q;
    call.k = tensors.k;
    call.v = tensors.v;
    call.out = tensors.out;
    call.lse = tensors.lse;
    call.causal_offset = tensors.causal_offset;
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

// SIMD targets that are compiled in and run here, best first, separated by
// spaces.
inline std::string Targets() {
  std::string text(heed_targets(nullptr, 0), '\0');
  heed_targets(text.data(), text.size() + 1);
  return text;
}

}  // namespace heed

#endif  // HEED_HPP_
