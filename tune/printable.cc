#include "tune/printable.h"

#include <cstddef>

namespace heed {

std::string Printable(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  constexpr size_t kMost = 120, kEnd = 40;
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.size() > kMost && i == kMost - kEnd) {
      line += "...";
      i = text.size() - kEnd;
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= ' ' && byte <= '~') {
      line += text[i];
    } else {
      line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return line;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + ")";
}

}  // namespace heed
