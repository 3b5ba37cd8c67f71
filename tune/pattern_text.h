// An attention pattern in a terminal.
#ifndef HEED_TUNE_PATTERN_TEXT_H_
#define HEED_TUNE_PATTERN_TEXT_H_

#include <string>
#include <vector>

#include "tune/pattern_grid.h"

namespace heed {

enum class TextStyle {
  kBlocks,  // coloured blocks: UTF-8 and 256 colours
  kAscii    // characters that grow darker
};

// kBlocks if standard output is a terminal, NO_COLOR is unset or empty
// (https://no-color.org), TERM is not dumb and the locale's characters are
// UTF-8.
TextStyle TerminalStyle();

// Widest pattern that a terminal of 100 columns takes beside its labels.
constexpr int64_t kMaxTextCells = 80;

// A line per row, or in blocks of more than 40 rows per two, with the label of
// its (first) token, and a line of keys below. `most` is the weight that has
// the last colour; one label per token.
std::string DrawPattern(const PatternGrid& grid,
                        const std::vector<std::string>& labels, double most,
                        TextStyle style);

// What the colours mean, as one line.
std::string DrawLegend(double most, TextStyle style);

}  // namespace heed

#endif  // HEED_TUNE_PATTERN_TEXT_H_
