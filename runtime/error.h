// The message behind heed_last_error(): one line per thread, kept without
// allocating.
#ifndef HEED_RUNTIME_ERROR_H_
#define HEED_RUNTIME_ERROR_H_

#include "runtime/include/heed.h"

namespace heed {

// Keeps the formatted line for heed_last_error() on this thread and returns
// `status`. A line longer than the buffer is cut.
[[gnu::format(printf, 2, 3)]] heed_status Fail(heed_status status,
                                               const char* format, ...);

}  // namespace heed

#endif  // HEED_RUNTIME_ERROR_H_
