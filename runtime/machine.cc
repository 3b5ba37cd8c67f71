#include "runtime/machine.h"

#include <hwloc.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "kernels/kernels.h"
#include "runtime/cpu_id.h"
#include "runtime/fnv.h"
#include "runtime/targets.h"

namespace heed {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

// One cache level: what hwloc calls it, what overrides it, which sizes are
// believed, and what is assumed where nothing is known.
struct Level {
  hwloc_obj_type_t type;
  const char* variable;
  size_t low, high, assumed;
};

constexpr Level kL1d = {HWLOC_OBJ_L1CACHE, "HEED_L1D", 8 * kKiB, kMiB,
                        32 * kKiB};
constexpr Level kL2 = {HWLOC_OBJ_L2CACHE, "HEED_L2", 64 * kKiB, 64 * kMiB,
                       512 * kKiB};
constexpr Level kL3 = {HWLOC_OBJ_L3CACHE, "HEED_L3", 256 * kKiB, 2048 * kMiB,
                       4 * kMiB};

bool Sane(const Level& level, size_t bytes) {
  return bytes >= level.low && bytes <= level.high;
}

// "48K", "2M", "49152"; 0 if it is none of these.
size_t ParseBytes(const char* text) {
  if (text == nullptr || !std::isdigit(static_cast<unsigned char>(*text))) {
    return 0;
  }
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (number > kMiB * kMiB) return 0;
  const std::string unit = end;
  if (unit.empty()) return static_cast<size_t>(number);
  if (unit == "K" || unit == "k") return static_cast<size_t>(number) * kKiB;
  if (unit == "M" || unit == "m") return static_cast<size_t>(number) * kMiB;
  return 0;
}

// The first processing unit's cache of one level; 0 bytes if hwloc has none.
// On hybrid CPUs the first is a fast core's, which the tiles are made for.
Cache HwlocCache(hwloc_topology_t topology, hwloc_obj_type_t type) {
  Cache cache;
  const hwloc_obj_t object = hwloc_get_obj_by_type(topology, type, 0);
  if (object == nullptr || object->attr == nullptr) return cache;
  cache.bytes = static_cast<size_t>(object->attr->cache.size);
  // hwloc: 0 = unknown, -1 = fully associative, which no key needs to tell.
  cache.ways = std::max(0, object->attr->cache.associativity);
  cache.cores_sharing = std::max(1, hwloc_bitmap_weight(object->cpuset));
  return cache;
}

// Fills the caches and the number of processing units as far as hwloc knows.
void AskHwloc(Machine* machine) {
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return;
  // Caches and processing units only: no devices, which can take seconds.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(topology) == 0) {
    machine->l1d = HwlocCache(topology, kL1d.type);
    machine->l2 = HwlocCache(topology, kL2.type);
    machine->l3 = HwlocCache(topology, kL3.type);
    machine->cores =
        std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
  }
  hwloc_topology_destroy(topology);
}

// Overrides and clamps one level; adds to *source what did not come from hwloc.
void Settle(const Level& level, const char* name, Cache* cache,
            std::string* source) {
  const size_t wanted = ParseBytes(std::getenv(level.variable));
  if (Sane(level, wanted)) {
    *cache = {wanted, 0, cache->cores_sharing};
    *source += std::string(" ") + level.variable + "=" + std::to_string(wanted);
  } else if (!Sane(level, cache->bytes)) {
    *cache = {level.assumed, 0, 1};
    *source += std::string(" ") + name + " assumed";
  }
}

std::string ShortVendor(const std::string& vendor) {
  if (vendor == "AuthenticAMD") return "amd";
  if (vendor == "GenuineIntel") return "intel";
  std::string plain;
  for (unsigned char c : vendor) {
    if (std::isalnum(c)) plain += static_cast<char>(std::tolower(c));
  }
  return plain.empty() ? "unknown" : plain;
}

std::string ShortBytes(size_t bytes) {
  if (bytes % kMiB == 0) return std::to_string(bytes / kMiB) + "m";
  if (bytes % kKiB == 0) return std::to_string(bytes / kKiB) + "k";
  return std::to_string(bytes) + "b";
}

std::string ShortCache(const Cache& cache) {
  return ShortBytes(cache.bytes) +
         (cache.ways > 0 ? std::to_string(cache.ways) : "");
}

// Lower case letters and digits only: the key is a folder's name.
std::string Plain(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    c = std::isalnum(byte) ? static_cast<char>(std::tolower(byte)) : '_';
  }
  return text;
}

// All that a kernel can see of the machine, as text.
std::string Canonical(const Machine& m) {
  std::string text = m.vendor;
  for (int number : {m.family, m.model, m.stepping}) {
    text += '|' + std::to_string(number);
  }
  for (const std::string& target : m.targets) text += '|' + target;
  for (const Cache* cache : {&m.l1d, &m.l2, &m.l3}) {
    text += '|' + std::to_string(cache->bytes) + ',' +
            std::to_string(cache->ways) + ',' +
            std::to_string(cache->cores_sharing);
  }
  return text + '|' + std::to_string(m.threads);
}

}  // namespace

Machine DetectMachine() {
  Machine machine;
  CpuId id = DetectCpuId();
  machine.vendor = std::move(id.vendor);
  machine.family = id.family;
  machine.model = id.model;
  machine.stepping = id.stepping;
  machine.brand = std::move(id.brand);
  for (int64_t target : RunnableTargets()) {
    machine.targets.push_back(GetKernels(target, DType::kF32).target);
  }
  machine.threads = EffectiveThreads();
  machine.cores = machine.threads;
  AskHwloc(&machine);

  const bool knows = Sane(kL1d, machine.l1d.bytes);
  // A machine without an L3: the L2 is its last level.
  if (machine.l3.bytes == 0 && Sane(kL2, machine.l2.bytes)) {
    machine.l3 = machine.l2;
    machine.l3.bytes = std::max(machine.l3.bytes, kL3.low);
  }
  std::string rest;
  Settle(kL1d, "l1d", &machine.l1d, &rest);
  Settle(kL2, "l2", &machine.l2, &rest);
  Settle(kL3, "l3", &machine.l3, &rest);
  machine.cache_source = (knows ? "hwloc" : "assumed") + rest;
  return machine;
}

const Machine& ThisMachine() {
  static const Machine machine = DetectMachine();
  return machine;
}

std::string MachineKey(const Machine& m) {
  const uint64_t whole = Fnv1a(Canonical(m));
  char hash[16];
  std::snprintf(hash, sizeof hash, "%08x",
                static_cast<unsigned>((whole ^ whole >> 32) & 0xffffffffu));
  return ShortVendor(m.vendor) + "-f" + std::to_string(m.family) + "m" +
         std::to_string(m.model) + "s" + std::to_string(m.stepping) + "." +
         Plain(m.targets.empty() ? "none" : m.targets[0]) + ".l1d" +
         ShortCache(m.l1d) + ".l2-" + ShortCache(m.l2) + ".l3-" +
         ShortCache(m.l3) + "x" + std::to_string(m.l3.cores_sharing) + ".t" +
         std::to_string(m.threads) + "-" + hash;
}

}  // namespace heed
