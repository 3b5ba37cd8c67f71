#include "tune/token_labels.h"

#include "tune/checkpoint.h"

namespace heed {
namespace {

constexpr size_t kMaxLabelsBytes = size_t{16} << 20;

// Bytes of the UTF-8 character at `at`; 0 if there is none. RFC 3629, section
// 4.
size_t CharacterBytes(const std::string& text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const size_t bytes = first < 0x80                    ? 1
                       : first >= 0xC2 && first < 0xE0 ? 2
                       : first >= 0xE0 && first < 0xF0 ? 3
                       : first >= 0xF0 && first < 0xF5 ? 4
                                                       : 0;
  if (bytes == 0 || at + bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xC0) != 0x80) return 0;
  }
  if (bytes < 3) return bytes;
  const auto second = static_cast<unsigned char>(text[at + 1]);
  const bool is_wrong =
      (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return is_wrong ? 0 : bytes;
}

}  // namespace

std::string CleanLabel(const std::string& text, bool ascii) {
  std::vector<std::string> characters;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = CharacterBytes(text, at);
    const std::string character = text.substr(at, bytes == 0 ? 1 : bytes);
    at += character.size();
    if (bytes == 1) {
      const bool is_control = character[0] < ' ' || character[0] == 0x7F;
      characters.push_back(is_control ? " " : character);
    } else {
      // U+0080 to U+009F are control characters too.
      const bool is_shown = bytes != 0 && !ascii &&
                            !(character[0] == '\xC2' && character[1] < '\xA0');
      characters.push_back(is_shown ? character : "?");
    }
  }
  if (characters.size() > kMaxLabel) {
    characters.resize(kMaxLabel);
    characters.back() = ascii ? "~" : "\u2026";
  }
  std::string label;
  for (const std::string& character : characters) label += character;
  return label;
}

size_t LabelLength(const std::string& label) {
  size_t length = 0;
  for (const char c : label) {
    length += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }
  return length;
}

bool ReadLabels(const std::string& path, int64_t len,
                std::vector<std::string>* labels, std::string* why) {
  std::string text;
  if (!ReadSmallFile(path, kMaxLabelsBytes, &text, why)) return false;
  labels->clear();
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    labels->push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (static_cast<int64_t>(labels->size()) == len) return true;
  *why = path + ": " + std::to_string(labels->size()) + " lines; expected " +
         std::to_string(len) + ", one for each token";
  return false;
}

std::vector<std::string> DefaultLabels(const std::vector<int64_t>& ids,
                                       int64_t len) {
  std::vector<std::string> labels;
  for (int64_t t = 0; t < len; ++t) {
    labels.push_back(
        std::to_string(ids.empty() ? t : ids[static_cast<size_t>(t)]));
  }
  return labels;
}

}  // namespace heed
