#include "tune/attention_work.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/problem.h"
#include "tune/shapes.h"
#include "tune/storage.h"
#include "tune/weather.h"

namespace heed {
namespace {

// SplitMix64 (Steele, Lea and Flood 2014): one multiply-xor chain per number.
uint64_t Next(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Four 16-bit uniforms summed and scaled to variance 1: near enough to normal
// for timing, and without the logarithms of std::normal_distribution, which
// matters where the time budget pays for it.
float NextNormal(uint64_t* state) {
  constexpr double kScale = 1.7320508 / 65536;  // sum of 4 has variance 1 / 3
  const uint64_t bits = Next(state);
  const double sum =
      static_cast<double>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                          (bits >> 32 & 0xffff) + (bits >> 48));
  return static_cast<float>((sum - 2 * 65535.0) * kScale);
}

// Fills `bytes` bytes with elements of the dtype.
void FillNormal(int32_t dtype, char* data, size_t bytes, uint64_t seed) {
  constexpr size_t kAtOnce = 1024;
  float values[kAtOnce];
  const auto element_bytes = static_cast<size_t>(ElementBytes(dtype));
  const size_t count = bytes / element_bytes;
  for (size_t i = 0; i < count; i += kAtOnce) {
    const size_t part = std::min(kAtOnce, count - i);
    std::generate_n(values, part, [&seed] { return NextNormal(&seed); });
    Narrow(dtype, values, part, data + i * element_bytes);
  }
}

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

char* AllocateBytes(size_t count) {
  return static_cast<char*>(std::aligned_alloc(64, RoundUp(count + 1, 64)));
}

size_t TensorBytes(int64_t batch, int64_t heads, int64_t len, int64_t dim,
                   int64_t element_bytes) {
  // Tensors begin at multiples of 64 bytes.
  return RoundUp(static_cast<size_t>(batch * heads * len * dim * element_bytes),
                 64);
}

}  // namespace

void AttentionTensors::Free::operator()(char* p) const { std::free(p); }

std::unique_ptr<AttentionTensors> AttentionTensors::Create(
    const heed_problem& p, uint64_t seed, std::string* why) {
  std::unique_ptr<AttentionTensors> t(new AttentionTensors);
  const int64_t size = ElementBytes(p.dtype);
  t->q_bytes_ = TensorBytes(p.batch, p.heads_q, p.len_q, p.dim_qk, size);
  // Pages are whole.
  const int64_t len =
      p.page_size > 0 ? (p.len_k + p.page_size - 1) / p.page_size * p.page_size
                      : p.len_k;
  t->k_bytes_ = TensorBytes(p.batch, p.heads_kv, len, p.dim_qk, size);
  const size_t v_bytes = TensorBytes(p.batch, p.heads_kv, len, p.dim_v, size);
  t->out_bytes_ = TensorBytes(p.batch, p.heads_q, p.len_q, p.dim_v, size);
  t->result_bytes_ = t->out_bytes_ +
                     TensorBytes(p.batch, p.heads_q, p.len_q, 1, sizeof(float));
  const size_t inputs = t->q_bytes_ + t->k_bytes_ + v_bytes;
  t->data_.reset(AllocateBytes(inputs));
  t->results_.reset(AllocateBytes(2 * t->result_bytes_));
  if (t->data_ == nullptr || t->results_ == nullptr) {
    *why = "no memory for " + std::to_string(inputs + 2 * t->result_bytes_) +
           " bytes of tensors";
    return nullptr;
  }
  FillNormal(p.dtype, t->data_.get(), inputs, seed);
  // Touched now, so that no page fault falls into a sample.
  std::memset(t->results_.get(), 0, 2 * t->result_bytes_);
  return t;
}

heed_problem SliceOf(const heed_problem& problem, double flops_per_second,
                     double seconds, size_t min_rows) {
  heed_problem slice = problem;
  const auto too_slow = [&] {
    return AttentionFlops(slice) / flops_per_second > seconds;
  };
  const auto rows = [](const heed_problem& p) {
    return static_cast<size_t>(p.batch * p.heads_q * p.len_q);
  };
  while (too_slow() && slice.batch > 1 && rows(slice) / 2 >= min_rows) {
    slice.batch /= 2;
  }
  const int64_t group = problem.heads_q / problem.heads_kv;
  while (too_slow() && slice.heads_kv > 1 && rows(slice) / 2 >= min_rows) {
    slice.heads_kv /= 2;
    slice.heads_q = slice.heads_kv * group;
  }
  return slice;
}

void AttentionWork::Destroy::operator()(heed_plan* plan) const {
  heed_plan_destroy(plan);
}

void AttentionWork::FreeBytes::operator()(void* p) const { std::free(p); }

AttentionWork::AttentionWork(const heed_problem& problem,
                             AttentionTensors* tensors,
                             const WorkOptions& options, Canary* canary)
    : problem_(problem),
      inputs_(problem),
      tensors_(tensors),
      options_(options),
      canary_(canary) {}

AttentionWork::~AttentionWork() = default;

heed_status AttentionWork::Run(size_t candidate, int result_set) {
  const heed_problem& p = problem_;
  heed_call call;
  heed_call_init(&call);
  inputs_.Describe(&call);
  const int64_t len = p.page_size > 0 ? p.page_size : p.len_k;
  call.q = heed_dense_input(tensors_->q(), p.heads_q, p.len_q, p.dim_qk);
  call.k = heed_dense_input(tensors_->k(), p.heads_kv, len, p.dim_qk);
  call.v = heed_dense_input(tensors_->v(), p.heads_kv, len, p.dim_v);
  call.out =
      heed_dense_output(tensors_->out(result_set), p.heads_q, p.len_q, p.dim_v);
  call.lse =
      heed_dense_output(tensors_->lse(result_set), p.heads_q, p.len_q, 1);
  call.workspace = workspace_.get();
  call.workspace_size = workspace_bytes_;
  return heed_plan_run(plans_[candidate].get(), &call);
}

bool AttentionWork::AddAgain(std::string* why) {
  const Candidate again = candidates_.back();
  return Add(again, why);
}

bool AttentionWork::Add(const Candidate& added, std::string* why) {
  heed_options options;
  heed_options_init(&options);
  options.threads = options_.threads;
  options.target = added.target.c_str();
  options.tuning = HEED_TUNING_PINNED;
  options.tile = PublicTile(added.config);
  heed_plan* plan = nullptr;
  if (heed_plan_create(&problem_, &options, &plan) != HEED_OK) {
    *why = heed_last_error();
    return false;
  }
  plans_.emplace_back(plan);
  const size_t bytes = RoundUp(heed_plan_workspace_size(plan), 64);
  if (bytes > workspace_bytes_) {
    workspace_.reset(std::aligned_alloc(64, bytes));
    workspace_bytes_ = workspace_ == nullptr ? 0 : bytes;
    if (workspace_ == nullptr) {
      plans_.pop_back();
      *why = "no memory for a workspace of " + std::to_string(bytes) + " bytes";
      return false;
    }
  }
  const size_t candidate = plans_.size() - 1;
  const int result_set = candidate == 0 ? 0 : 1;
  if (Run(candidate, result_set) != HEED_OK) {
    *why = heed_last_error();
    plans_.pop_back();
    return false;
  }
  const size_t rows =
      static_cast<size_t>(problem_.batch * problem_.heads_q * problem_.len_q);
  const size_t out_bytes = rows * static_cast<size_t>(problem_.dim_v) *
                           static_cast<size_t>(ElementBytes(problem_.dtype));
  if (std::memcmp(tensors_->out(0), tensors_->out(result_set), out_bytes) !=
          0 ||
      std::memcmp(tensors_->lse(0), tensors_->lse(result_set),
                  rows * sizeof(float)) != 0) {
    plans_.pop_back();
    *why =
        "wrong result: it differs from the default's, which is a fault of "
        "heed: please report it";
    return false;
  }
  candidates_.push_back(added);
  return true;
}

Timed AttentionWork::Sample(size_t candidate, size_t iterations) {
  if (options_.tick) options_.tick();
  Timed timed;
  if (canary_ != nullptr) timed.canary = canary_->Sample();
  const double start = MonotonicSeconds();
  // Add() has run this very call, so it cannot fail.
  for (size_t i = 0; i < iterations; ++i) Run(candidate, 1);
  timed.seconds = MonotonicSeconds() - start;
  return timed;
}

double AttentionWork::Now() { return MonotonicSeconds(); }

Disturbance AttentionWork::Disturbed() { return ReadDisturbance(); }

}  // namespace heed
