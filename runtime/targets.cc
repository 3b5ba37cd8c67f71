#include "runtime/targets.h"

#include "runtime/error.h"
#include "runtime/snprint.h"

namespace heed {

std::vector<int64_t> RunnableTargets() {
  // Highway numbers its targets by the bits of an int64_t.
  std::vector<int64_t> targets(64);
  targets.resize(SupportedTargets(targets.data(), targets.size()));
  return targets;
}

std::string RunnableTargetNames() {
  std::string names;
  for (int64_t target : RunnableTargets()) {
    if (!names.empty()) names += ' ';
    names += GetKernels(target, DType::kF32).target;
  }
  return names;
}

heed_status FindTarget(const char* name, DType dtype, Kernels* kernels) {
  for (int64_t target : RunnableTargets()) {
    *kernels = GetKernels(target, dtype);
    if (name == nullptr || std::string(name) == kernels->target) return HEED_OK;
  }
  return Fail(HEED_UNSUPPORTED,
              "options.target is \"%.40s\"; expected NULL or one of: %s",
              name == nullptr ? "NULL" : name, RunnableTargetNames().c_str());
}

}  // namespace heed

extern "C" size_t heed_targets(char* text, size_t size) {
  return heed::PrintNoThrow(text, size,
                            [] { return heed::RunnableTargetNames(); });
}
