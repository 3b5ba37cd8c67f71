// A std::string handed out through a C function the way snprintf does it.
#ifndef HEED_RUNTIME_SNPRINT_H_
#define HEED_RUNTIME_SNPRINT_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

namespace heed {

// Writes at most `size` bytes of make(), NUL included, and returns the length
// of the whole; 0 and an empty text when make() throws (out of memory).
template <typename Make>
size_t PrintNoThrow(char* text, size_t size, const Make& make) {
  if (text == nullptr) size = 0;
  if (size != 0) text[0] = '\0';
  try {
    const std::string whole = make();
    if (size != 0) {
      const size_t length = std::min(whole.size(), size - 1);
      std::memcpy(text, whole.data(), length);
      text[length] = '\0';
    }
    return whole.size();
  } catch (...) {
    return 0;
  }
}

}  // namespace heed

#endif  // HEED_RUNTIME_SNPRINT_H_
