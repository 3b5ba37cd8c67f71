#include "tune/colour_map.h"

#include <cmath>
#include <cstdint>
#include <iterator>

namespace heed {
namespace {

// Every 13th or 14th of the map's 256 entries. Between them it is close to
// straight: a line is within 0.02 of it.
constexpr uint32_t kViridis[] = {
    0x440154, 0x481567, 0x482677, 0x453781, 0x404788, 0x39568C, 0x33638D,
    0x2D708E, 0x287D8E, 0x238A8D, 0x1F968B, 0x20A387, 0x29AF7F, 0x3CBB75,
    0x55C667, 0x73D055, 0x95D840, 0xB8DE29, 0xDCE319, 0xFDE725};

// Vermilion, blue, bluish green.
constexpr uint32_t kLines[] = {0xD55E00, 0x0072B2, 0x009E73};

Rgb FromHex(uint32_t hex) {
  return {(hex >> 16 & 255) / 255.0, (hex >> 8 & 255) / 255.0,
          (hex & 255) / 255.0};
}

}  // namespace

Rgb Viridis(double t) {
  constexpr int kLast = static_cast<int>(std::size(kViridis)) - 1;
  const double place =
      std::isnan(t) ? 0 : std::fmin(std::fmax(t, 0), 1) * kLast;
  const int low = static_cast<int>(place) - (place == kLast ? 1 : 0);
  const double share = place - low;
  const Rgb a = FromHex(kViridis[low]), b = FromHex(kViridis[low + 1]);
  return {a.red + share * (b.red - a.red),
          a.green + share * (b.green - a.green),
          a.blue + share * (b.blue - a.blue)};
}

Rgb LineColour(int index) { return FromHex(kLines[index]); }

}  // namespace heed
