#include "bench/attention_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "bench/shortest_tasks.h"
#include "runtime/plan.h"
#include "runtime/problem.h"
#include "runtime/tile_model.h"
#include "tune/reference.h"
#include "tune/storage.h"

namespace heed {
namespace {

// Rows compared with the reference, spread over all of them.
constexpr int64_t kSampledRows = 16;

// Fills tensors with N(0, 1) values, quickly: a million draws, over and over.
// The period is a prime, so no two rows of a tensor are alike.
class NormalValues {
 public:
  explicit NormalValues(int32_t dtype)
      : elements_(kPeriod * static_cast<size_t>(ElementBytes(dtype))) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> values(kPeriod);
    for (float& value : values) value = normal(random);
    Narrow(dtype, values.data(), kPeriod, elements_.data());
  }

  Bytes Tensor(size_t bytes) {
    Bytes tensor = AllocateBytes(bytes);
    size_t filled = 0;
    while (filled < bytes) {
      const size_t part =
          std::min(bytes - filled, elements_.size() - position_);
      std::copy_n(elements_.data() + position_, part, tensor.get() + filled);
      filled += part;
      position_ = (position_ + part) % elements_.size();
    }
    return tensor;
  }

 private:
  static constexpr size_t kPeriod = 1048573;
  std::vector<char> elements_;
  size_t position_ = 0;
};

size_t Product(int64_t a, int64_t b, int64_t c, int64_t d) {
  return static_cast<size_t>(a * b * c * d);
}

// How k and v lie: sequences of keys, or pages of them.
struct KeyExtents {
  int64_t batch, len;
};

KeyExtents ExtentsOf(const heed_problem& p, const OptionInputs& options) {
  if (p.page_size > 0) return {options.pages(), p.page_size};
  return {p.batch, p.len_k};
}

}  // namespace

AttentionCase::AttentionCase(const NamedProblem& named, size_t last_level_bytes)
    : named_(named), options_(named.problem) {
  const heed_problem& p = problem();
  const KeyExtents keys = ExtentsOf(p, options_);
  q_count_ = Product(p.batch, p.heads_q, p.len_q, p.dim_qk);
  k_count_ = Product(keys.batch, p.heads_kv, keys.len, p.dim_qk);
  v_count_ = Product(keys.batch, p.heads_kv, keys.len, p.dim_v);
  out_count_ = Product(p.batch, p.heads_q, p.len_q, p.dim_v);
  element_bytes_ = static_cast<size_t>(ElementBytes(p.dtype));
  const size_t set_bytes = (k_count_ + v_count_) * element_bytes_;
  const bool decode = p.len_q == 1 && set_bytes != 0;
  sets_ = decode ? 4 * last_level_bytes / set_bytes + 1 : 1;
  NormalValues normal(p.dtype);
  q_ = normal.Tensor(q_count_ * element_bytes_);
  k_ = normal.Tensor(k_count_ * element_bytes_ * sets_);
  v_ = normal.Tensor(v_count_ * element_bytes_ * sets_);
  out_ = AllocateBytes(out_count_ * element_bytes_);
  ClearOut();
}

heed_call AttentionCase::Call(size_t set) {
  const heed_problem& p = problem();
  const char* const k = k_.get() + set * k_count_ * element_bytes_;
  const char* const v = v_.get() + set * v_count_ * element_bytes_;
  const int64_t len = ExtentsOf(p, options_).len;
  heed_call call;
  heed_call_init(&call);
  options_.Describe(&call);
  call.q = heed_dense_input(q_.get(), p.heads_q, p.len_q, p.dim_qk);
  call.k = heed_dense_input(k, p.heads_kv, len, p.dim_qk);
  call.v = heed_dense_input(v, p.heads_kv, len, p.dim_v);
  call.out = heed_dense_output(out_.get(), p.heads_q, p.len_q, p.dim_v);
  return call;
}

double AttentionCase::flops() const {
  return options_.visible_pairs() * 2 *
         static_cast<double>(problem().dim_qk + problem().dim_v);
}

double AttentionCase::bytes() const {
  const heed_problem& p = problem();
  const double keys = options_.keys_in_use() * static_cast<double>(p.heads_kv);
  const double elements = static_cast<double>(q_count_ + out_count_) +
                          keys * static_cast<double>(p.dim_qk + p.dim_v);
  return elements * static_cast<double>(element_bytes_) +
         static_cast<double>(options_.mask_bytes());
}

void AttentionCase::ClearOut() {
  // All ones are a NaN of every dtype.
  std::memset(out_.get(), 0xFF, out_count_ * element_bytes_);
}

std::string AttentionCase::CheckOut(size_t set, double largest_error) const {
  const heed_problem& p = problem();
  const auto widened = [&](const Bytes& tensor, size_t count, size_t first) {
    std::vector<float> values(count);
    Widen(p.dtype, tensor.get() + first * element_bytes_, count, values.data());
    return values;
  };
  const std::vector<float> q = widened(q_, q_count_, 0);
  const std::vector<float> k = widened(k_, k_count_, set * k_count_);
  const std::vector<float> v = widened(v_, v_count_, set * v_count_);
  const std::vector<float> out = widened(out_, out_count_, 0);
  ReferenceInputs inputs{q.data(), k.data(), v.data()};
  options_.Describe(&inputs);
  const int64_t rows = p.batch * p.heads_q * p.len_q;
  const int64_t step = std::max<int64_t>(1, (rows - 1) / (kSampledRows - 1));
  const ReferenceError error =
      CompareWithReference(p, inputs, out.data(), nullptr, step);
  if (error.out_unrounded <= largest_error) return "";
  return fmt::format(
      "wrong result: {:.3g} from the double reference, at most "
      "{:.0e} expected",
      error.out_unrounded, largest_error);
}

bool AttentionCase::IsVerified(const Computed& computed) const {
  return verified_.count(computed) != 0;
}

void AttentionCase::SetVerified(const Computed& computed) {
  verified_.insert(computed);
}

PlanPointer MakePlan(const heed_problem& problem, const std::string& target,
                     int threads, const HeedLibrary& library) {
  heed_options options;
  library.options_init(&options);
  options.threads = threads;
  options.target = target.c_str();
  heed_plan* plan = nullptr;
  library.plan_create(&problem, &options, &plan);
  return PlanPointer(plan, PlanDestroyer{library.plan_destroy});
}

AttentionRun::AttentionRun(AttentionCase* attention, const std::string& target,
                           int threads, const HeedLibrary& library)
    : attention_(attention),
      computed_(library.path, target, threads),
      library_(library),
      plan_(MakePlan(attention->problem(), target, threads, library)) {
  if (plan_ == nullptr) {
    plan_error_ = library.last_error();
    return;
  }
  workspace_bytes_ = library.workspace_size(plan_.get());
  workspace_ = AllocateBytes(workspace_bytes_);
}

std::string AttentionRun::Tile() const {
  return plan_ == nullptr || !library_.path.empty()
             ? ""
             : ToString(plan_->choice.tile);
}

std::string AttentionRun::Tier() const {
  return plan_ == nullptr || !library_.path.empty()
             ? ""
             : TierName(plan_->choice.tier);
}

std::string AttentionRun::Verify() {
  if (plan_ == nullptr) return plan_error_;
  if (attention_->IsVerified(computed_)) return "";
  for (const size_t set : {size_t{0}, attention_->sets() - 1}) {
    attention_->ClearOut();
    if (RunSet(set) != HEED_OK) return library_.last_error();
    const std::string wrong = attention_->CheckOut(set);
    if (!wrong.empty()) return wrong;
  }
  attention_->SetVerified(computed_);
  return "";
}

void AttentionRun::Run() {
  // Verify() has seen this very call succeed.
  RunSet(next_set_);
  if (++next_set_ == attention_->sets()) next_set_ = 0;
}

double AttentionRun::TaskSeconds(double seconds) {
  if (!library_.path.empty()) return 0;
  return ShortestTasks(plan_.get(), seconds, [this] { Run(); });
}

heed_status AttentionRun::RunSet(size_t set) {
  heed_call call = attention_->Call(set);
  call.workspace = workspace_.get();
  call.workspace_size = workspace_bytes_;
  return library_.plan_run(plan_.get(), &call);
}

}  // namespace heed
