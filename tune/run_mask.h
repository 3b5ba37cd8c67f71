// The mask of `heed run`: its file's axes onto the problem's.
#ifndef HEED_TUNE_RUN_MASK_H_
#define HEED_TUNE_RUN_MASK_H_

#include <string>

#include "tune/run_inputs.h"
#include "tune/run_options.h"

namespace heed {

// Reads options.mask into `inputs`, whose problem has its sizes and dtype.
bool ReadRunMask(const RunOptions& options, RunInputs* inputs,
                 std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_RUN_MASK_H_
