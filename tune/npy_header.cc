#include "tune/npy_header.h"

#include <cstring>

namespace heed {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;
constexpr int64_t kMaxElements = int64_t{1} << 62;

// Reads the dict literal {'descr': '<f4', 'fortran_order': False, 'shape':
// (2, 3), } and nothing else of Python. Every method returns false at the first
// character that does not fit and leaves the reason in `why`.
class DictReader {
 public:
  DictReader(const std::string& text, std::string* why)
      : text_(text), why_(why) {}

  bool Read(NpyHeader* header) {
    bool seen_descr = false, seen_order = false, seen_shape = false;
    if (!Expect('{')) return false;
    while (Peek() != '}') {
      std::string key;
      if (!String(&key) || !Expect(':')) return false;
      bool* seen = nullptr;
      bool ok = false;
      if (key == "descr") {
        seen = &seen_descr;
        ok = Descr(&header->descr);
      } else if (key == "fortran_order") {
        seen = &seen_order;
        ok = Bool(&header->fortran_order);
      } else if (key == "shape") {
        seen = &seen_shape;
        ok = Shape(&header->shape);
      } else {
        return Fail("unknown key in the header dictionary");
      }
      if (!ok) return false;
      if (*seen) return Fail("'" + key + "' occurs twice in the header");
      *seen = true;
      if (Peek() != ',') break;
      ++pos_;
    }
    if (!Expect('}')) return false;
    while (pos_ < text_.size()) {
      if (!IsSpace(text_[pos_++])) {
        return Fail("text after the header dictionary");
      }
    }
    if (!seen_descr || !seen_order || !seen_shape) {
      return Fail("the header lacks descr, fortran_order or shape");
    }
    return true;
  }

 private:
  static bool IsSpace(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
  }

  bool Fail(const std::string& why) {
    *why_ = "bad header: " + why;
    return false;
  }

  // The next character that is not a space, without taking it; NUL at the end.
  char Peek() {
    while (pos_ < text_.size() && IsSpace(text_[pos_])) ++pos_;
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }

  bool Expect(char c) {
    if (Peek() != c || pos_ >= text_.size()) {
      return Fail(std::string("expected '") + c + "' at byte " +
                  std::to_string(pos_) + " of the dictionary");
    }
    ++pos_;
    return true;
  }

  bool String(std::string* value) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') {
      return Fail("expected a string at byte " + std::to_string(pos_) +
                  " of the dictionary");
    }
    const size_t end = text_.find(quote, ++pos_);
    if (end == std::string::npos) return Fail("a string does not end");
    *value = text_.substr(pos_, end - pos_);
    for (const char c : *value) {
      // So that a message never carries control characters to a terminal.
      if (c < ' ' || c > '~' || c == '\\') {
        return Fail("a string holds characters that no dtype has");
      }
    }
    pos_ = end + 1;
    return true;
  }

  // A plain dtype is a string. A structured one is a list, which is reported
  // without being read.
  bool Descr(std::string* descr) {
    if (Peek() == '[') return Fail("structured dtypes are not supported");
    return String(descr);
  }

  bool Bool(bool* value) {
    Peek();
    for (const bool b : {true, false}) {
      const char* word = b ? "True" : "False";
      if (text_.compare(pos_, std::strlen(word), word) == 0) {
        pos_ += std::strlen(word);
        *value = b;
        return true;
      }
    }
    return Fail("fortran_order is neither True nor False");
  }

  bool Shape(std::vector<int64_t>* shape) {
    if (!Expect('(')) return false;
    shape->clear();
    while (Peek() != ')') {
      int64_t dim = 0;
      if (!Integer(&dim)) return false;
      shape->push_back(dim);
      if (shape->size() > 32) return Fail("more than 32 dimensions");
      if (Peek() != ',') break;
      ++pos_;
    }
    return Expect(')');
  }

  bool Integer(int64_t* value) {
    if (Peek() == '-') return Fail("a dimension is negative");
    const size_t begin = pos_;
    *value = 0;
    while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') {
      const int64_t digit = text_[pos_++] - '0';
      if (*value > (kMaxElements - digit) / 10) {
        return Fail("a dimension exceeds 2^62");
      }
      *value = *value * 10 + digit;
    }
    if (pos_ == begin) return Fail("a dimension is not a number");
    // Python 2 wrote long integers with an L.
    if (pos_ < text_.size() && text_[pos_] == 'L') ++pos_;
    return true;
  }

  const std::string& text_;
  std::string* why_;
  size_t pos_ = 0;
};

size_t LittleEndian(const std::string& bytes, size_t begin, size_t count) {
  size_t value = 0;
  for (size_t i = count; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[begin + i]);
  }
  return value;
}

}  // namespace

bool ParseNpyHeader(const std::string& bytes, NpyHeader* header,
                    std::string* why) {
  if (bytes.empty()) {
    *why = "the file is empty";
    return false;
  }
  if (bytes.compare(0, kMagicBytes, kMagic, kMagicBytes) != 0) {
    *why = "not a .npy file (bad magic)";
    return false;
  }
  if (bytes.size() < kMagicBytes + 2) {
    *why = "truncated header";
    return false;
  }
  const int major = static_cast<unsigned char>(bytes[kMagicBytes]);
  const int minor = static_cast<unsigned char>(bytes[kMagicBytes + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    *why = "unknown .npy version " + std::to_string(major) + "." +
           std::to_string(minor) + " (1.0, 2.0 and 3.0 are known)";
    return false;
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t dict_begin = kMagicBytes + 2 + length_bytes;
  if (bytes.size() < dict_begin) {
    *why = "truncated header";
    return false;
  }
  const size_t dict_bytes = LittleEndian(bytes, kMagicBytes + 2, length_bytes);
  if (dict_bytes > kMaxNpyHeaderBytes - dict_begin) {
    *why = "the header claims " + std::to_string(dict_bytes) +
           " bytes (at most " +
           std::to_string(kMaxNpyHeaderBytes - dict_begin) + " are read)";
    return false;
  }
  if (bytes.size() - dict_begin < dict_bytes) {
    *why = "truncated header";
    return false;
  }
  *header = NpyHeader();
  header->header_bytes = dict_begin + dict_bytes;
  const std::string dict = bytes.substr(dict_begin, dict_bytes);
  return DictReader(dict, why).Read(header);
}

std::string MakeNpyHeader(const std::string& descr,
                          const std::vector<int64_t>& shape) {
  std::string dims;
  for (const int64_t dim : shape) dims += std::to_string(dim) + ", ";
  // Python writes (3,) for one dimension and (2, 3) for more.
  if (shape.size() == 1) dims.pop_back();
  if (shape.size() > 1) dims.resize(dims.size() - 2);
  std::string dict = "{'descr': '" + descr +
                     "', 'fortran_order': False, 'shape': (" + dims + "), }";
  const size_t prefix_bytes = kMagicBytes + 4;
  while ((prefix_bytes + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string header(kMagic, kMagicBytes);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8 & 0xff);
  return header + dict;
}

int64_t NpyElementCount(const std::vector<int64_t>& shape) {
  for (const int64_t dim : shape) {
    if (dim == 0) return 0;
  }
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (count > kMaxElements / dim) return -1;
    count *= dim;
  }
  return count;
}

}  // namespace heed
