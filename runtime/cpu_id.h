// Who made this CPU, and which model it is.
#ifndef HEED_RUNTIME_CPU_ID_H_
#define HEED_RUNTIME_CPU_ID_H_

#include <string>

namespace heed {

struct CpuId {
  std::string vendor = "unknown";
  int family = 0, model = 0, stepping = 0;
  std::string brand;
};

// cpuid on x86; /proc/cpuinfo on ARM, where family is the architecture, model
// the part number and stepping variant * 16 + revision; unknown elsewhere.
CpuId DetectCpuId();

}  // namespace heed

#endif  // HEED_RUNTIME_CPU_ID_H_
