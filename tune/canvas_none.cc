// Stands in for canvas.cc where heed is built without cairo.
#include "tune/canvas.h"

namespace heed {
namespace {

constexpr char kWhy[] =
    "heed was built without cairo, and draws no pictures (CMake option "
    "HEED_IMAGES)";

}  // namespace

std::string FindImageFormat(const std::string& path, ImageFormat*) {
  return path + ": " + kWhy;
}

std::unique_ptr<Canvas> MakeCanvas(ImageFormat, int, int, std::string* why) {
  *why = kWhy;
  return nullptr;
}

bool WriteImage(const std::string& path, Canvas*, std::string* why) {
  *why = path + ": " + kWhy;
  return false;
}

}  // namespace heed
