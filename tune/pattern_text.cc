#include "tune/pattern_text.h"

#include <fmt/format.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tune/colour_map.h"
#include "tune/token_labels.h"

namespace heed {
namespace {

// Up to so many cells are two columns wide, which makes them square.
constexpr int64_t kWideCells = 40;
constexpr char kRamp[] = ".:-=+*#%@";
constexpr char kReset[] = "\x1b[0m";

char RampCharacter(double place) {
  const int last = static_cast<int>(sizeof kRamp) - 2;
  return kRamp[static_cast<int>(std::lround(place * last))];
}

// The nearest of the 6 levels that xterm's 256 colours have for each of red,
// green and blue: 0, 95, 135, 175, 215, 255.
int Level(double value) {
  const double byte = value * 255;
  return byte < 48 ? 0 : byte < 115 ? 1 : static_cast<int>((byte - 35) / 40);
}

int ColourIndex(double place) {
  const Rgb c = Viridis(place);
  return 16 + 36 * Level(c.red) + 6 * Level(c.green) + Level(c.blue);
}

// One cell, or what is left of it where it is hidden: the terminal's own
// background.
std::string ColourCell(const PatternGrid& grid, int64_t row, int64_t column,
                       double most) {
  if (grid.IsHidden(row, column)) return "  ";
  return fmt::format("\x1b[48;5;{}m  {}",
                     ColourIndex(ColourPlace(grid.At(row, column), most)),
                     kReset);
}

// Two cells, one above the other, in one character.
std::string HalfBlocks(const PatternGrid& grid, int64_t row, int64_t column,
                       double most) {
  const auto colour = [&](int64_t r) {
    return r >= grid.cells || grid.IsHidden(r, column)
               ? -1
               : ColourIndex(ColourPlace(grid.At(r, column), most));
  };
  const int top = colour(row), bottom = colour(row + 1);
  if (top < 0 && bottom < 0) return " ";
  if (top < 0) return fmt::format("\x1b[38;5;{}m\u2584{}", bottom, kReset);
  if (bottom < 0) return fmt::format("\x1b[38;5;{}m\u2580{}", top, kReset);
  return fmt::format("\x1b[38;5;{};48;5;{}m\u2580{}", top, bottom, kReset);
}

std::string Characters(const PatternGrid& grid, int64_t row, int64_t column,
                       double most, bool is_wide) {
  const char c = grid.IsHidden(row, column)
                     ? ' '
                     : RampCharacter(ColourPlace(grid.At(row, column), most));
  return std::string(is_wide ? 2 : 1, c);
}

// Labels from the left, as many as leave a space between them.
std::string KeyLine(const PatternGrid& grid,
                    const std::vector<std::string>& labels, bool is_wide,
                    bool ascii) {
  std::string line;
  size_t length = 0;
  for (int64_t column = 0; column < grid.cells; ++column) {
    const auto at = static_cast<size_t>(column) * (is_wide ? 2 : 1);
    if (at < length + (length == 0 ? 0 : 1)) continue;
    const std::string label =
        CleanLabel(labels[static_cast<size_t>(column * grid.block)], ascii);
    line += std::string(at - length, ' ') + label;
    length = at + LabelLength(label);
  }
  return line;
}

}  // namespace

TextStyle TerminalStyle() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  std::setlocale(LC_CTYPE, "");
  const bool is_utf8 = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  std::setlocale(LC_CTYPE, "C");
  const bool blocks = isatty(STDOUT_FILENO) == 1 && is_utf8 &&
                      (no_colour == nullptr || no_colour[0] == '\0') &&
                      (term == nullptr || std::strcmp(term, "dumb") != 0);
  return blocks ? TextStyle::kBlocks : TextStyle::kAscii;
}

std::string DrawPattern(const PatternGrid& grid,
                        const std::vector<std::string>& labels, double most,
                        TextStyle style) {
  const bool ascii = style == TextStyle::kAscii;
  const bool is_wide = grid.cells <= kWideCells;
  const int64_t step = ascii || is_wide ? 1 : 2;
  size_t margin = 0;
  for (const std::string& label : labels) {
    margin = std::max(margin, LabelLength(CleanLabel(label, ascii)));
  }
  std::string text;
  for (int64_t row = 0; row < grid.cells; row += step) {
    const std::string label =
        CleanLabel(labels[static_cast<size_t>(row * grid.block)], ascii);
    std::string line =
        std::string(margin - LabelLength(label), ' ') + label + " ";
    for (int64_t column = 0; column < grid.cells; ++column) {
      line += ascii     ? Characters(grid, row, column, most, is_wide)
              : is_wide ? ColourCell(grid, row, column, most)
                        : HalfBlocks(grid, row, column, most);
    }
    while (line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text + std::string(margin + 1, ' ') +
         KeyLine(grid, labels, is_wide, ascii) + "\n";
}

std::string DrawLegend(double most, TextStyle style) {
  std::string ramp;
  if (style == TextStyle::kAscii) {
    ramp = kRamp;
  } else {
    for (int i = 0; i <= 16; ++i) {
      ramp += fmt::format("\x1b[48;5;{}m {}", ColourIndex(i / 16.0), kReset);
    }
  }
  return fmt::format(
      "rows are queries, columns keys; weight 0 {} {:.3g} by its square root, "
      "blank: hidden\n",
      ramp, most);
}

}  // namespace heed
