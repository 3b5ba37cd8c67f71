#include "tune/weather.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <locale>
#include <sstream>

#include "runtime/file_handle.h"

namespace heed {
namespace {

// The first 4 KiB: the lines wanted are the files' first.
std::string Head(const char* path) {
  const FileHandle file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return "";
  char text[4096];
  const ssize_t got = read(file.get(), text, sizeof text);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : "";
}

}  // namespace

Disturbance ParseDisturbance(const std::string& stat,
                             const std::string& pressure,
                             long ticks_per_second) {
  Disturbance result;
  // proc(5): user nice system idle iowait irq softirq steal.
  std::istringstream line(stat);
  line.imbue(std::locale::classic());
  std::string name;
  double ticks = 0;
  bool complete = static_cast<bool>(line >> name) && name == "cpu";
  for (int i = 0; i < 8 && complete; ++i) {
    complete = static_cast<bool>(line >> ticks);
  }
  if (complete && ticks_per_second > 0) {
    result.steal = ticks / static_cast<double>(ticks_per_second);
  }
  // "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", in microseconds.
  const size_t at = pressure.find("total=");
  if (pressure.rfind("some", 0) == 0 && at != std::string::npos) {
    result.pressure = 1e-6 * static_cast<double>(std::strtoull(
                                 pressure.c_str() + at + 6, nullptr, 10));
  }
  return result;
}

Disturbance ReadDisturbance() {
  return ParseDisturbance(Head("/proc/stat"), Head("/proc/pressure/cpu"),
                          sysconf(_SC_CLK_TCK));
}

double LoadAverage() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace heed
