// What tokens are called in a picture.
#ifndef HEED_TUNE_TOKEN_LABELS_H_
#define HEED_TUNE_TOKEN_LABELS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heed {

// At most so many characters of a label are shown.
constexpr size_t kMaxLabel = 12;

// A text as valid UTF-8 without control characters, cut to kMaxLabel
// characters, the last then "…" (or ~ if `ascii`, where every other character
// beyond ASCII is a ?).
std::string CleanLabel(const std::string& text, bool ascii);

// Characters of valid UTF-8.
size_t LabelLength(const std::string& label);

// The lines of a text file, one for each of `len` tokens. On failure returns
// false and says why in one line that begins with the path.
bool ReadLabels(const std::string& path, int64_t len,
                std::vector<std::string>* labels, std::string* why);

// The ids, or the places from 0 if there are none.
std::vector<std::string> DefaultLabels(const std::vector<int64_t>& ids,
                                       int64_t len);

}  // namespace heed

#endif  // HEED_TUNE_TOKEN_LABELS_H_
