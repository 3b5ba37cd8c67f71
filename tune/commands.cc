#include "tune/commands.h"

#include <fmt/format.h>

#include <cstdio>

namespace heed {

int FailCommand(const std::string& command, const std::string& why) {
  fmt::print(stderr, "heed {}: {}\n", command, why);
  return kFailed;
}

}  // namespace heed
