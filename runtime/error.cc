#include "runtime/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace heed {
namespace {

// Fixed in size and constant-initialised, so that reporting "out of memory"
// needs no memory.
thread_local char last_error[512] = "";

}  // namespace

heed_status Fail(heed_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  return status;
}

}  // namespace heed

extern "C" const char* heed_last_error(void) { return heed::last_error; }

extern "C" const char* heed_status_name(heed_status status) {
  // A C caller may pass any int, and C++ may not even load such an enum.
  int value;
  static_assert(sizeof value == sizeof status);
  std::memcpy(&value, &status, sizeof value);
  switch (value) {
    case HEED_OK:
      return "ok";
    case HEED_INVALID_ARGUMENT:
      return "invalid argument";
    case HEED_UNSUPPORTED:
      return "unsupported";
    case HEED_OUT_OF_MEMORY:
      return "out of memory";
    case HEED_INTERNAL:
      return "internal error";
  }
  return "unknown status";
}
