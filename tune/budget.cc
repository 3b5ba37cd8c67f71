#include "tune/budget.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <numeric>

namespace heed {

bool ParseDuration(const std::string& text, double* seconds, std::string* why) {
  *why = "'" + text + "' is no duration (expected e.g. 120s, 2m or 1h)";
  // strtod also takes signs, spaces, "inf" and hexadecimals.
  if (text.empty() ||
      text.find_first_not_of("0123456789.smh") != std::string::npos) {
    return false;
  }
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  double factor = 0;
  if (unit.empty() || unit == "s") factor = 1;
  if (unit == "m") factor = 60;
  if (unit == "h") factor = 3600;
  *seconds = number * factor;
  return end != text.c_str() && std::isfinite(*seconds) && *seconds > 0;
}

std::string DurationText(double seconds) {
  if (seconds < 59.5) return fmt::format("{:.0f} s", seconds);
  const long whole = std::lround(seconds);
  return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

const std::vector<Effort>& Efforts() {
  static const std::vector<Effort> efforts = {
      {"estimate", 1, 0, {}, "0s"},
      {"quick", 8, 3, {40}, "50s"},
      {"normal", 24, 5, {40, 80}, "120s"},
      {"thorough", 48, 8, {40, 80, 120}, "30m"}};
  return efforts;
}

double Share(double left, const std::vector<double>& wants) {
  const double sum = std::accumulate(wants.begin(), wants.end(), 0.0);
  if (left <= 0 || wants.empty() || sum <= 0) return 0;
  return left * wants[0] / sum;
}

}  // namespace heed
