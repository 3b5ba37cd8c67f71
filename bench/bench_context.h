// What every benchmark needs: which targets, thread counts and shapes were
// asked for, and the roofs to divide by.
#ifndef HEED_BENCH_BENCH_CONTEXT_H_
#define HEED_BENCH_BENCH_CONTEXT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/attention_case.h"
#include "bench/options.h"
#include "bench/roof.h"
#include "runtime/machine.h"

namespace heed {

struct BenchTarget {
  int64_t id = 0;
  std::string name;  // Highway's
};

class BenchContext {
 public:
  // False, and `why` in one line, if an option names something that is not
  // there.
  bool Init(const BenchOptions& options, std::string* why);

  const std::vector<BenchTarget>& targets() const { return targets_; }
  const std::vector<int>& threads() const { return threads_; }
  const std::vector<NamedProblem>& problems() const { return problems_; }

  // A benchmark found a wrong result: the program is to exit with a failure.
  void SetFailed() { failed_ = true; }
  bool failed() const { return failed_; }

  // Made at the first use and kept, so that the best canary is the process's.
  Roof& RoofOf(const BenchTarget& target, int threads);

  // The process's, of a target by its name.
  double BestCanary(const std::string& target, int threads);

  // The tensors of one problem at a time: the large ones fill memory.
  AttentionCase& CaseOf(const NamedProblem& problem);

 private:
  std::vector<BenchTarget> targets_;
  std::vector<int> threads_;
  std::vector<NamedProblem> problems_;
  ReadBuffer read_buffer_{ThisMachine()};
  std::map<std::pair<int64_t, int>, std::unique_ptr<Roof>> roofs_;
  std::unique_ptr<AttentionCase> case_;
  bool failed_ = false;
};

}  // namespace heed

#endif  // HEED_BENCH_BENCH_CONTEXT_H_
