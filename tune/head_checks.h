// What a careful reader would try on an attention block, with the figure that
// each trial gives.
#ifndef HEED_TUNE_HEAD_CHECKS_H_
#define HEED_TUNE_HEAD_CHECKS_H_

#include <string>
#include <vector>

#include "tune/head_model.h"
#include "tune/head_run.h"
#include "tune/pattern_grid.h"

namespace heed {

struct HeadCheck {
  enum class Verdict { kHolds, kFails, kNotTried };
  Verdict verdict;
  std::string what;    // "rows sum to 1"
  std::string figure;  // "largest |sum - 1| = 1.2e-07 over 520 rows"
};

// Runs the block up to five times more: on changed rows, and without its scale,
// mask or RoPE, or with what it has not. `base` is what it gives as it is. On
// failure returns false and the library's reason.
bool CheckHead(const HeadModel& model, const HeadTensors& base, int threads,
               std::vector<HeadCheck>* checks, std::string* why);

// "holds", "FAILS" or "not tried"
const char* VerdictName(HeadCheck::Verdict verdict);

// Of one head of a run.
PatternView ViewOf(const HeadTensors& tensors, int64_t head);

}  // namespace heed

#endif  // HEED_TUNE_HEAD_CHECKS_H_
