// The functions that a measurement calls: those this program is linked with, or
// those of a libheed that is loaded beside it.
#ifndef HEED_BENCH_HEED_LIBRARY_H_
#define HEED_BENCH_HEED_LIBRARY_H_

#include <heed.h>

#include <string>

namespace heed {

struct HeedLibrary {
  std::string path;  // empty: linked with this program
  decltype(&heed_options_init) options_init = heed_options_init;
  decltype(&heed_plan_create) plan_create = heed_plan_create;
  decltype(&heed_plan_destroy) plan_destroy = heed_plan_destroy;
  decltype(&heed_plan_workspace_size) workspace_size = heed_plan_workspace_size;
  decltype(&heed_plan_run) plan_run = heed_plan_run;
  decltype(&heed_last_error) last_error = heed_last_error;
};

const HeedLibrary& LinkedHeed();

// Loads a libheed.so and keeps it. On failure returns false and says why in one
// line. Two libraries loaded so know nothing of each other; one file loaded
// twice is one library.
bool LoadHeed(const std::string& path, HeedLibrary* library, std::string* why);

}  // namespace heed

#endif  // HEED_BENCH_HEED_LIBRARY_H_
