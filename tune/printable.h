// Text that somebody else chose, fit for a message of one line.
#ifndef HEED_TUNE_PRINTABLE_H_
#define HEED_TUNE_PRINTABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

// The text with everything but printable ASCII as \xNN, and its middle as
// "..." if it is longer than 120 characters: a name out of a file must not send
// a terminal control characters, nor fill a screen.
std::string Printable(const std::string& text);

// "(12, 64, 768)"
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace heed

#endif  // HEED_TUNE_PRINTABLE_H_
