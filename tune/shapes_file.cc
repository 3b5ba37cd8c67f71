#include "tune/shapes_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

namespace heed {
namespace {

constexpr uintmax_t kMaxShapesBytes = uintmax_t{1} << 20;

bool IsPath(const std::string& text) {
  const std::string end = ".json";
  return text.find('/') != std::string::npos ||
         (text.size() > end.size() &&
          text.compare(text.size() - end.size(), end.size(), end) == 0);
}

// One item: its shapes are parsed like a list, its name is its own.
bool ReadItem(const nlohmann::json& item, std::vector<NamedProblem>* shapes,
              std::string* why) {
  if (item.is_string()) {
    return ParseShapeList(item.get<std::string>(), shapes, why);
  }
  const bool named = item.is_object() && item.contains("problem") &&
                     item["problem"].is_string() &&
                     (!item.contains("name") || item["name"].is_string());
  if (!named) {
    *why = "expected a string, or an object of \"name\" and \"problem\"";
    return false;
  }
  if (!ParseShapeList(item["problem"].get<std::string>(), shapes, why)) {
    return false;
  }
  if (shapes->size() == 1 && item.contains("name")) {
    shapes->front().name = item["name"].get<std::string>();
  }
  return true;
}

}  // namespace

bool ReadShapes(const std::string& list_or_path,
                std::vector<NamedProblem>* shapes, std::string* why) {
  if (!IsPath(list_or_path)) {
    return ParseShapeList(list_or_path, shapes, why);
  }
  const std::string place = list_or_path + ": ";
  std::error_code error;
  if (!std::filesystem::is_regular_file(list_or_path, error) ||
      std::filesystem::file_size(list_or_path, error) > kMaxShapesBytes) {
    *why = place + (error ? error.message()
                          : "expected a regular file of at most 1 MiB");
    return false;
  }
  std::ifstream file(list_or_path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // A hostile file is refused before the parser recurses into it.
  const auto brackets = std::count(text.begin(), text.end(), '[');
  nlohmann::json json = brackets > 64
                            ? nlohmann::json()
                            : nlohmann::json::parse(text, nullptr,
                                                    /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("shapes")) json = json["shapes"];
  if (!json.is_array() || json.empty()) {
    *why = place +
           "expected a JSON array of shapes, or an object with one "
           "named \"shapes\"";
    return false;
  }
  shapes->clear();
  for (size_t i = 0; i < json.size(); ++i) {
    std::vector<NamedProblem> some;
    std::string reason;
    if (!ReadItem(json[i], &some, &reason)) {
      *why = place + "shapes[" + std::to_string(i) + "]: " + reason;
      return false;
    }
    for (const NamedProblem& shape : some) {
      const auto same = [&shape](const NamedProblem& s) {
        return s.text == shape.text;
      };
      if (std::none_of(shapes->begin(), shapes->end(), same)) {
        shapes->push_back(shape);
      }
    }
  }
  return true;
}

}  // namespace heed
