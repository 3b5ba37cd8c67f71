// JSON that somebody else wrote, read strictly: a checkpoint's header, its
// index, its configuration.
#ifndef HEED_TUNE_STRICT_JSON_H_
#define HEED_TUNE_STRICT_JSON_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace heed {

// A key is found in logarithmic time, however many an object has.
using StrictJson = nlohmann::json;

// Parses `size` bytes. Refuses, beside what is no JSON or no UTF-8: an object
// that has a key twice (parsers differ in which of the two they take), nesting
// deeper than `max_depth`, and numbers beyond a double's range. On failure
// returns false and says why in one line.
bool ParseStrictJson(const char* text, size_t size, int max_depth,
                     StrictJson* json, std::string* why);

// Whether `json` is an integer from 0 to 2^63 - 1, which *value then is.
bool IsCount(const StrictJson& json, int64_t* value);

}  // namespace heed

#endif  // HEED_TUNE_STRICT_JSON_H_
