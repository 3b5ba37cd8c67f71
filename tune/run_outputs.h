// What `heed run` computes and writes.
#ifndef HEED_TUNE_RUN_OUTPUTS_H_
#define HEED_TUNE_RUN_OUTPUTS_H_

#include <memory>
#include <string>

#include "runtime/include/heed.h"
#include "tune/npy.h"
#include "tune/run_inputs.h"
#include "tune/run_options.h"

namespace heed {

struct PlanDestroyer {
  void operator()(heed_plan* plan) const { heed_plan_destroy(plan); }
};
using Plan = std::unique_ptr<heed_plan, PlanDestroyer>;

struct RunOutputs {
  Plan plan;
  double seconds = 0;  // the median of the runs
  NpyTensor out, lse;  // lie as q does
  NpyTensor scores, weights;
};

// Plans, and computes what the options ask for. On failure returns false and
// says why in one line.
bool ComputeRun(const RunOptions& options, const RunInputs& inputs,
                RunOutputs* outputs, std::string* why);

// All files or none.
bool WriteRun(const RunOptions& options, const RunOutputs& outputs,
              std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_RUN_OUTPUTS_H_
