#include "tune/checkpoint_index.h"

#include <algorithm>

#include "tune/printable.h"
#include "tune/strict_json.h"

namespace heed {
namespace {

constexpr int kIndexDepth = 8;  // metadata are free to hold anything

bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return c != '/' && c != '\\' && static_cast<unsigned char>(c) >= ' ';
         });
}

}  // namespace

bool ParseCheckpointIndex(const std::string& text, CheckpointIndex* index,
                          std::string* why) {
  index->clear();
  StrictJson json;
  if (!ParseStrictJson(text.data(), text.size(), kIndexDepth, &json, why)) {
    return false;
  }
  const auto files =
      json.is_object() ? json.find("weight_map") : StrictJson::iterator();
  if (!json.is_object() || files == json.end() || !files->is_object()) {
    *why = "weight_map is missing or no object";
    return false;
  }
  for (const auto& [tensor, file] : files->items()) {
    if (!file.is_string() || !IsPlainFileName(file.get<std::string>())) {
      *why = "tensor " + Printable(tensor) + ": its file is " +
             Printable(file.dump(-1, ' ', true)) +
             "; expected the plain name of a file in the same folder";
      return false;
    }
    (*index)[tensor] = file.get<std::string>();
  }
  return true;
}

}  // namespace heed
