#include "runtime/cpu_id.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__) || defined(__arm__)
#include <cstdlib>
#include <fstream>
#endif

namespace heed {

#if defined(__x86_64__) || defined(__i386__)

CpuId DetectCpuId() {
  CpuId id;
  uint32_t a, b, c, d;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return id;
  char vendor[12];
  std::memcpy(vendor, &b, 4);
  std::memcpy(vendor + 4, &d, 4);
  std::memcpy(vendor + 8, &c, 4);
  id.vendor.assign(vendor, sizeof vendor);
  if (__get_cpuid(1, &a, &b, &c, &d)) {
    // Intel SDM volume 2A, CPUID: the extended fields count for family 15, and
    // the extended model for family 6 as well.
    const uint32_t family = a >> 8 & 15;
    const uint32_t model = a >> 4 & 15;
    const bool extended = family == 6 || family == 15;
    id.family = static_cast<int>(family + (family == 15 ? a >> 20 & 255 : 0));
    id.model = static_cast<int>(model + (extended ? (a >> 16 & 15) << 4 : 0));
    id.stepping = static_cast<int>(a & 15);
  }
  char brand[49] = {};
  for (uint32_t leaf = 0; leaf < 3; ++leaf) {
    if (!__get_cpuid(0x80000002 + leaf, &a, &b, &c, &d)) break;
    const uint32_t words[] = {a, b, c, d};
    std::memcpy(brand + 16 * leaf, words, sizeof words);
  }
  id.brand = brand;
  const size_t first = id.brand.find_first_not_of(' ');
  const size_t last = id.brand.find_last_not_of(' ');
  id.brand = first == std::string::npos
                 ? std::string()
                 : id.brand.substr(first, last - first + 1);
  return id;
}

#elif defined(__aarch64__) || defined(__arm__)

CpuId DetectCpuId() {
  CpuId id;
  int variant = 0, revision = 0;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key =
        line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string text = line.substr(colon + 1);
    const int number = static_cast<int>(std::strtol(text.c_str(), nullptr, 0));
    if (key == "CPU implementer") {
      id.vendor = number == 0x41   ? "ARM"
                  : number == 0x61 ? "Apple"
                  : number == 0xc0 ? "Ampere"
                                   : "arm" + std::to_string(number);
    } else if (key == "CPU architecture") {
      id.family = number;
    } else if (key == "CPU variant") {
      variant = number;
    } else if (key == "CPU part") {
      id.model = number;
    } else if (key == "CPU revision") {
      revision = number;
      break;  // the first core's block ends here
    }
  }
  id.stepping = variant * 16 + revision;
  return id;
}

#else

CpuId DetectCpuId() { return CpuId(); }

#endif

}  // namespace heed
