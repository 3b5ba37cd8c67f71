// A result of `heed run` against the reference in double precision.
#ifndef HEED_TUNE_RUN_CHECK_H_
#define HEED_TUNE_RUN_CHECK_H_

#include "tune/npy.h"
#include "tune/reference.h"
#include "tune/run_inputs.h"
#include "tune/run_options.h"

namespace heed {

// `out` and `lse` lie as the inputs do: packed, or with the batch as an axis.
ReferenceError CheckRun(const RunOptions& options, const RunInputs& inputs,
                        const NpyTensor& out, const NpyTensor& lse);

}  // namespace heed

#endif  // HEED_TUNE_RUN_CHECK_H_
