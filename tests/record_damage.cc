#include "tests/record_damage.h"

#include <cstdint>
#include <iterator>
#include <vector>

namespace heed::test {

void ChangeSomething(Json* json, std::mt19937_64* random) {
  Json* at = json;
  while (at->is_structured() && !at->empty() && (*random)() % 8 != 0) {
    auto item = at->begin();
    std::advance(item, static_cast<std::ptrdiff_t>((*random)() % at->size()));
    at = &*item;
  }
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    1,
                                    2,
                                    48,
                                    48.5,
                                    768,
                                    4096,
                                    1e9,
                                    INT64_MIN,
                                    UINT64_MAX,
                                    "",
                                    "bf16",
                                    "AVX2",
                                    "schema-1",
                                    "\x1b[2J",
                                    std::string(5000, 'x'),
                                    Json::array(),
                                    Json::array({1}),
                                    Json::object()};
  const Json value = values[(*random)() % values.size()];
  *at = value;
}

std::string Seal(Json json) {
  if (json.is_object()) {
    json["integrity"] = {{"algo", "fnv1a64"}, {"value", IntegrityOf(json)}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace heed::test
