// A problem with tensors to run it on, and a plan to run it with.
#ifndef HEED_BENCH_ATTENTION_CASE_H_
#define HEED_BENCH_ATTENTION_CASE_H_

#include <heed.h>

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "bench/buffer.h"
#include "bench/heed_library.h"
#include "tune/option_inputs.h"
#include "tune/shapes.h"

namespace heed {

// On N(0, 1) values float32 arithmetic stays within 1e-6 of the double
// reference; a wrong key, weight or row is off by 1e-3 and more. What storing
// the result in 16 bits costs comes on top and is counted apart.
constexpr double kLargestError = 1e-5;

// Dense tensors of N(0, 1) values, of the problem's dtype, and what else the
// problem asks for.
//
// In decoding, each layer's keys and values are read once per token and are
// long out of every cache when their turn comes again. So a case with one
// query token holds many sets of k and v, together more than 4 times the last
// level, and its calls go round them.
class AttentionCase {
 public:
  AttentionCase(const NamedProblem& named, size_t last_level_bytes);

  const NamedProblem& named() const { return named_; }
  const heed_problem& problem() const { return named_.problem; }

  // Of one call. Flops: visible pairs * 2 * (dim_qk + dim_v), the causal
  // diagonal counted exactly. Bytes: q, out, the mask and what is in use of k
  // and v, each once.
  double flops() const;
  double bytes() const;

  size_t sets() const { return sets_; }
  // The call on one set of k and v; the workspace is the caller's to fill in.
  heed_call Call(size_t set);

  // Overwrites the output, so that a check never sees an older one.
  void ClearOut();
  // Compares sampled rows with the double reference, before they are rounded
  // to the dtype. Empty, or what is wrong in one line.
  std::string CheckOut(size_t set, double largest_error = kLargestError) const;

  // What has been found right: a library's path, a target and a thread count.
  using Computed = std::tuple<std::string, std::string, int>;
  bool IsVerified(const Computed& computed) const;
  void SetVerified(const Computed& computed);

 private:
  NamedProblem named_;
  OptionInputs options_;
  size_t q_count_, k_count_, v_count_, out_count_;  // elements
  size_t element_bytes_;
  size_t sets_;
  Bytes q_, k_, v_, out_;
  std::set<Computed> verified_;
};

struct PlanDestroyer {
  decltype(&heed_plan_destroy) destroy = heed_plan_destroy;
  void operator()(heed_plan* plan) const { destroy(plan); }
};
using PlanPointer = std::unique_ptr<heed_plan, PlanDestroyer>;

// Null if heed_plan_create() fails; the library's last error then says why.
PlanPointer MakePlan(const heed_problem& problem, const std::string& target,
                     int threads, const HeedLibrary& library = LinkedHeed());

// A plan for a case on one target and thread count.
class AttentionRun {
 public:
  // `attention` and `library` must outlive the run.
  AttentionRun(AttentionCase* attention, const std::string& target, int threads,
               const HeedLibrary& library = LinkedHeed());

  // Runs the first and the last set and checks both outputs, unless this case
  // has been found right before on this target and thread count. Empty, or
  // what is wrong in one line: then Run() must not be called. A plan that
  // could not be made is reported here too.
  std::string Verify();

  // One call, on the next set.
  void Run();

  // See shortest_tasks.h; 0 with another library than the linked one.
  double TaskSeconds(double seconds);

  // What the plan chose, and by what right; empty without a plan. Of the linked
  // library only: another's plan is its own.
  std::string Tile() const;
  std::string Tier() const;

 private:
  heed_status RunSet(size_t set);

  AttentionCase* attention_;
  AttentionCase::Computed computed_;
  const HeedLibrary& library_;
  PlanPointer plan_;
  std::string plan_error_;
  Bytes workspace_;
  size_t workspace_bytes_ = 0;
  size_t next_set_ = 0;
};

}  // namespace heed

#endif  // HEED_BENCH_ATTENTION_CASE_H_
