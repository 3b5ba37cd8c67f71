#include "tune/commands.h"

#include <fmt/format.h>

#include <cstdio>

namespace heed {

int FailCommand(const std::string& command, const std::string& why, int code) {
  fmt::print(stderr, "heed {}: {}\n", command, why);
  return code;
}

}  // namespace heed
