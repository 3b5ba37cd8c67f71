// Reading one JSON object member by member, with range checks and a message
// that names the first member that is wrong.
#ifndef HEED_RUNTIME_JSON_READER_H_
#define HEED_RUNTIME_JSON_READER_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace heed {

// Ordered, so that a record reads the way it was written.
using Json = nlohmann::ordered_json;

constexpr size_t kMaxJsonLine = 4096;

// Reads members of one JSON object. The first thing that is missing, of another
// type or out of range fails the whole and is named by `why`.
class JsonReader {
 public:
  JsonReader(const Json& object, std::string place, std::string* why)
      : object_(object), place_(std::move(place)), why_(why) {
    if (!object.is_object()) Failed("", "expected an object");
  }

  bool ok() const { return ok_; }

  // The member, or null after a failure.
  const Json* Member(const char* name) {
    if (!ok_) return nullptr;
    const auto found = object_.find(name);
    if (found == object_.end()) {
      Failed(name, "missing");
      return nullptr;
    }
    return &*found;
  }

  template <typename T>
  void Integer(const char* name, int64_t low, int64_t high, T* value) {
    const Json* member = Member(name);
    if (member == nullptr) return;
    const bool fits =
        member->is_number_integer() &&
        !(member->is_number_unsigned() &&
          member->get<uint64_t>() >
              static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) &&
        member->get<int64_t>() >= low && member->get<int64_t>() <= high;
    if (!fits) {
      Failed(name, "expected an integer from " + std::to_string(low) + " to " +
                       std::to_string(high));
      return;
    }
    *value = static_cast<T>(member->get<int64_t>());
  }

  // A finite number of at least 0.
  void Number(const char* name, double* value) {
    const Json* member = Member(name);
    if (member == nullptr) return;
    if (!member->is_number() || !std::isfinite(member->get<double>()) ||
        member->get<double>() < 0) {
      return Failed(name, "expected a finite number of at least 0");
    }
    *value = member->get<double>();
  }

  void Bool(const char* name, bool* value) {
    const Json* member = Member(name);
    if (member == nullptr) return;
    if (!member->is_boolean()) return Failed(name, "expected true or false");
    *value = member->get<bool>();
  }

  void Text(const char* name, std::string* value) {
    const Json* member = Member(name);
    if (member == nullptr) return;
    if (!member->is_string()) return Failed(name, "expected a string");
    *value = member->get<std::string>();
  }

  // A text that is shown to people: no controls, no novels.
  void Line(const char* name, std::string* value) {
    Text(name, value);
    const bool plain =
        value->size() <= kMaxJsonLine &&
        std::none_of(value->begin(), value->end(), [](char c) {
          return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
        });
    if (!plain) Failed(name, "expected a line of at most 4096 bytes");
  }

  // One of the names of a list, as its position.
  template <size_t kCount>
  void Choice(const char* name, const char* const (&names)[kCount],
              int32_t* value) {
    std::string text;
    Text(name, &text);
    if (!ok_) return;
    std::string expected;
    for (size_t i = 0; i < kCount; ++i) {
      if (text == names[i]) {
        *value = static_cast<int32_t>(i);
        return;
      }
      expected += std::string(expected.empty() ? "" : ", ") + names[i];
    }
    Failed(name, "expected one of " + expected);
  }

  void Failed(const std::string& name, const std::string& expected) {
    if (ok_)
      *why_ = place_ + (name.empty() ? "" : "." + name) + ": " + expected;
    ok_ = false;
  }

 private:
  const Json& object_;
  std::string place_;
  std::string* why_;
  bool ok_ = true;
};

}  // namespace heed

#endif  // HEED_RUNTIME_JSON_READER_H_
