// How many threads the operating system lets this process use.
#ifndef HEED_RUNTIME_THREADS_H_
#define HEED_RUNTIME_THREADS_H_

#include <string>

namespace heed {

// Processors the calling thread may run on; 0 if the system does not say.
int AffinityCount();

// The smallest cgroup CPU quota that holds for this process, in processors
// (1.5 = one and a half); 0 if there is none. `proc_cgroup` is the text of
// /proc/self/cgroup and `mount` the folder cgroups are mounted at.
double CgroupQuota(const std::string& proc_cgroup, const std::string& mount);

}  // namespace heed

#endif  // HEED_RUNTIME_THREADS_H_
