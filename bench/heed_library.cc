#include "bench/heed_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <type_traits>

namespace heed {

const HeedLibrary& LinkedHeed() {
  static const HeedLibrary linked;
  return linked;
}

bool LoadHeed(const std::string& path, HeedLibrary* library, std::string* why) {
  // Without a slash dlopen() would look where the system's libraries are.
  std::error_code error;
  const std::string absolute =
      std::filesystem::absolute(path, error).lexically_normal().string();
  void* const handle = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    *why = dlerror();
    return false;
  }
  library->path = path;
  const auto find = [&](const char* name, auto* function) {
    void* const found = dlsym(handle, name);
    if (found == nullptr) *why = path + " has no " + name + "; is it libheed?";
    *function =
        reinterpret_cast<std::remove_pointer_t<decltype(function)>>(found);
    return found != nullptr;
  };
  return find("heed_options_init", &library->options_init) &&
         find("heed_plan_create", &library->plan_create) &&
         find("heed_plan_destroy", &library->plan_destroy) &&
         find("heed_plan_workspace_size", &library->workspace_size) &&
         find("heed_plan_run", &library->plan_run) &&
         find("heed_last_error", &library->last_error);
}

}  // namespace heed
