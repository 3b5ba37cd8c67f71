// One problem's tensors, and the candidates that run on them: the work a race
// is about.
#ifndef HEED_TUNE_ATTENTION_WORK_H_
#define HEED_TUNE_ATTENTION_WORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/include/heed.h"
#include "tune/candidates.h"
#include "tune/option_inputs.h"
#include "tune/peaks.h"
#include "tune/sampler.h"

namespace heed {

// Dense tensors of a problem, inputs filled with numbers close to N(0, 1) that
// depend on the seed only. Allocated once per shape; a problem with fewer heads
// or batches uses the front of the same memory.
class AttentionTensors {
 public:
  // Null and one line of reason if there is no memory.
  static std::unique_ptr<AttentionTensors> Create(const heed_problem& problem,
                                                  uint64_t seed,
                                                  std::string* why);
  // Of the problem's dtype.
  const void* q() const { return data_.get(); }
  const void* k() const { return data_.get() + q_bytes_; }
  const void* v() const { return data_.get() + q_bytes_ + k_bytes_; }
  // Two sets of results, to compare.
  void* out(int set) { return results_.get() + set * result_bytes_; }
  void* lse(int set) {
    return results_.get() + set * result_bytes_ + out_bytes_;
  }

 private:
  struct Free {
    void operator()(char* p) const;
  };
  AttentionTensors() = default;

  std::unique_ptr<char[], Free> data_, results_;
  size_t q_bytes_ = 0, k_bytes_ = 0, out_bytes_ = 0, result_bytes_ = 0;
};

struct WorkOptions {
  int threads = 1;
  std::function<void()> tick;  // called between samples; may be empty
};

// The same shape with fewer batches and heads, so that a call of
// `flops_per_second` takes less time, in steps down to about `seconds`. Keeps
// `min_rows` query rows over all kv heads, enough to feed the threads, and what
// a tile can see of the shape: lengths, widths and group. A problem that is
// fast enough comes back as it is.
heed_problem SliceOf(const heed_problem& problem, double flops_per_second,
                     double seconds, size_t min_rows);

// Candidates of one problem, each a plan with its configuration pinned; 0 is
// the first one added.
class AttentionWork : public Sampler {
 public:
  AttentionWork(const heed_problem& problem, AttentionTensors* tensors,
                const WorkOptions& options, Canary* canary);
  ~AttentionWork() override;
  AttentionWork(const AttentionWork&) = delete;
  AttentionWork& operator=(const AttentionWork&) = delete;

  // The gate: plans the candidate, runs it once and compares: out and lse must
  // have the bytes of candidate 0. On failure says why in one line, and there
  // is no such candidate.
  bool Add(const Candidate& candidate, std::string* why);
  // The last one added once more: its equal, for an A/A run.
  bool AddAgain(std::string* why);
  size_t count() const { return plans_.size(); }

  Timed Sample(size_t candidate, size_t iterations) override;
  double Now() override;
  Disturbance Disturbed() override;

 private:
  struct Destroy {
    void operator()(heed_plan* plan) const;
  };
  struct FreeBytes {
    void operator()(void* p) const;
  };
  heed_status Run(size_t candidate, int result_set);

  heed_problem problem_;
  OptionInputs inputs_;
  AttentionTensors* tensors_;
  WorkOptions options_;
  Canary* canary_;
  std::vector<std::unique_ptr<heed_plan, Destroy>> plans_;
  std::unique_ptr<void, FreeBytes> workspace_;
  size_t workspace_bytes_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace heed

#endif  // HEED_TUNE_ATTENTION_WORK_H_
