// heed_options: how something is computed, whatever it is.
#ifndef HEED_RUNTIME_OPTIONS_H_
#define HEED_RUNTIME_OPTIONS_H_

#include "runtime/include/heed.h"

namespace heed {

// The options given, or those of heed_options_init(), where nothing is said
// with HEED_NUM_THREADS and HEED_TARGET of the environment as it was at the
// first call. HEED_OK, or Fail() naming the field or variable; a target given
// is not looked at.
heed_status ResolveOptions(const heed_options* given, heed_options* options);

// How many threads valid options ask for; at least 1.
int ThreadsFor(const heed_options& options);

}  // namespace heed

#endif  // HEED_RUNTIME_OPTIONS_H_
