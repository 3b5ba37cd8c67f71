#include "runtime/threads.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "runtime/machine.h"

namespace heed {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Quota and period as numbers; "max" or -1 and everything unreadable: no limit.
double Ratio(const std::string& quota, const std::string& period) {
  std::istringstream quota_stream(quota), period_stream(period);
  quota_stream.imbue(std::locale::classic());
  period_stream.imbue(std::locale::classic());
  double q = 0, p = 0;
  if (!(quota_stream >> q) || !(period_stream >> p) || q <= 0 || p <= 0) {
    return 0;
  }
  return q / p;
}

double QuotaV2(const std::string& folder) {
  std::istringstream text(ReadText(folder + "/cpu.max"));
  std::string quota, period;
  text >> quota >> period;
  return Ratio(quota, period);
}

double QuotaV1(const std::string& folder) {
  return Ratio(ReadText(folder + "/cpu.cfs_quota_us"),
               ReadText(folder + "/cpu.cfs_period_us"));
}

// The smallest quota of `path` and all folders above it up to `root`. Inside a
// container `path` is often one of the host's that does not exist here; the
// root is then the container's own group.
double SmallestUpwards(const std::string& root, std::string path,
                       double (*quota)(const std::string&)) {
  double smallest = 0;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    const double here = quota(root + path);
    if (here > 0) smallest = smallest > 0 ? std::min(smallest, here) : here;
    if (path.empty()) return smallest;
    const size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

bool HasController(const std::string& list, const std::string& wanted) {
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

int QuotaThreads() {
  const double quota =
      CgroupQuota(ReadText("/proc/self/cgroup"), "/sys/fs/cgroup");
  // Rounded up: half a processor still needs one thread.
  return quota > 0 && quota < 1e6 ? static_cast<int>(std::ceil(quota)) : 0;
}

}  // namespace

int AffinityCount() {
  // The kernel refuses a set smaller than its own; 2^20 processors are enough.
  for (int processors = 1024; processors <= 1 << 20; processors *= 4) {
    cpu_set_t* set = CPU_ALLOC(processors);
    if (set == nullptr) return 0;
    const size_t bytes = CPU_ALLOC_SIZE(processors);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return count;
  }
  return 0;
}

double CgroupQuota(const std::string& proc_cgroup, const std::string& mount) {
  double smallest = 0;
  const auto take = [&smallest](double quota) {
    if (quota > 0) smallest = smallest > 0 ? std::min(smallest, quota) : quota;
  };
  // Lines are "hierarchy:controllers:path"; version 2 has no controllers.
  std::istringstream lines(proc_cgroup);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    if (first == std::string::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      take(SmallestUpwards(mount, path, QuotaV2));
    } else if (HasController(controllers, "cpu")) {
      take(SmallestUpwards(mount + "/" + controllers, path, QuotaV1));
      take(SmallestUpwards(mount + "/cpu", path, QuotaV1));
    }
  }
  return smallest;
}

int EffectiveThreads() {
  // Asked once: plans are made without a system call.
  static const int threads = [] {
    const int affinity = std::max(1, AffinityCount());
    const int quota = QuotaThreads();
    return quota > 0 ? std::min(affinity, quota) : affinity;
  }();
  return threads;
}

}  // namespace heed
