// What heed knows of the CPU it runs on, and the key that names its kind in
// tuning records.
#ifndef HEED_RUNTIME_MACHINE_H_
#define HEED_RUNTIME_MACHINE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace heed {

struct Cache {
  size_t bytes = 0;       // 0 = unknown
  int ways = 0;           // 0 = unknown
  int cores_sharing = 1;  // processing units that share one instance
};

struct Machine {
  std::string
      vendor;  // "AuthenticAMD", "GenuineIntel", "ARM", ... or "unknown"
  int family = 0, model = 0, stepping = 0;
  std::string brand;  // free text, for people only; never part of the key
  std::vector<std::string> targets;  // SIMD targets, best first
  Cache l1d, l2,
      l3;  // sane values always (clamped or assumed, see cache_source)
  std::string cache_source;  // "hwloc", "HEED_L1D ...", "assumed"
  int cores = 1;             // processing units of the machine that hwloc sees
  int threads = 1;           // min(CPU affinity, cgroup quota): what we may use
};

// Asks the operating system each time it is called (milliseconds).
Machine DetectMachine();
// The same, asked once per process and kept.
const Machine& ThisMachine();

// min(CPU affinity, cgroup CPU quota rounded up) of the calling thread's
// process, at least 1; asked once per process and kept.
int EffectiveThreads();

// e.g. "amd-f25m1s1.avx2.l1d32k8.l2-512k8.l3-32m16x2.t2-3fa9c1d2": everything a
// kernel can see, then 8 hex digits of a hash of it. The same function names
// the folder, the record and the bench.
std::string MachineKey(const Machine& machine);

}  // namespace heed

#endif  // HEED_RUNTIME_MACHINE_H_
