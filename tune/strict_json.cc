#include "tune/strict_json.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "tune/printable.h"

namespace heed {
namespace {

// Sees the text's pieces one by one, keeps nothing but the keys of objects that
// are open, and stops the parser at the first that is wrong.
class Checker : public nlohmann::json_sax<StrictJson> {
 public:
  Checker(const char* text, size_t size, int max_depth, std::string* why)
      : text_(text), size_(size), max_depth_(max_depth), why_(why) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }

  bool start_object(size_t) override { return Open(); }
  bool start_array(size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& key) override {
    if (open_.back().insert(key).second) return true;
    *why_ = "key \"" + Printable(key) + "\" occurs twice in one object";
    return false;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    constexpr int kOutOfRange = 406;  // nlohmann's number for it
    const size_t end = std::min(position, size_);
    const size_t begin = end > 24 ? end - 24 : 0;
    *why_ =
        std::string(error.id == kOutOfRange ? "a number that no double holds, "
                                            : "not valid JSON ") +
        "at byte " + std::to_string(position) + ", after '" +
        Printable(std::string(text_ + begin, end - begin)) + "'";
    return false;
  }

 private:
  bool Open() {
    if (open_.size() == static_cast<size_t>(max_depth_)) {
      *why_ = "nested deeper than " + std::to_string(max_depth_);
      return false;
    }
    open_.emplace_back();
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  const char* text_;
  const size_t size_;
  const int max_depth_;
  std::string* why_;
  std::vector<std::set<std::string>> open_;
};

}  // namespace

bool ParseStrictJson(const char* text, size_t size, int max_depth,
                     StrictJson* json, std::string* why) {
  if (size == 0) {
    *why = "no JSON: it is empty";
    return false;
  }
  // Twice through the text rather than a tree built by hand: headers are small
  // beside the tensors they describe.
  Checker checker(text, size, max_depth, why);
  if (!StrictJson::sax_parse(text, text + size, &checker)) return false;
  *json = StrictJson::parse(text, text + size);
  return true;
}

bool IsCount(const StrictJson& json, int64_t* value) {
  if (!json.is_number_unsigned() ||
      json.get<uint64_t>() >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return false;
  }
  *value = json.get<int64_t>();
  return true;
}

}  // namespace heed
