// heed_options: how something is computed, whatever it is.
#ifndef HEED_RUNTIME_OPTIONS_H_
#define HEED_RUNTIME_OPTIONS_H_

#include "runtime/include/heed.h"

namespace heed {

// HEED_OK, or Fail() naming the field. The target is not looked at.
heed_status ValidateOptions(const heed_options& options);

// How many threads valid options ask for; at least 1.
int ThreadsFor(const heed_options& options);

}  // namespace heed

#endif  // HEED_RUNTIME_OPTIONS_H_
