// Attention patterns as a picture: a heat map for each head, with labelled
// axes and one scale of colours for all.
#ifndef HEED_TUNE_PATTERN_IMAGE_H_
#define HEED_TUNE_PATTERN_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tune/canvas.h"
#include "tune/pattern_grid.h"

namespace heed {

struct PatternPanel {
  std::string title;
  PatternGrid grid;
};

struct PatternPage {
  std::string title;
  std::vector<PatternPanel> panels;  // 1 or more, of as many cells each
  std::vector<std::string> labels;   // of the tokens
  double most = 1;                   // the weight that has the last colour
};

// Most cells of a panel's side: a pixel each, or in an SVG, where each is an
// object, fewer.
int64_t MaxCells(ImageFormat format, int64_t panels);

// Null, and why, if that fails.
std::unique_ptr<Canvas> DrawPage(const PatternPage& page, ImageFormat format,
                                 std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_PATTERN_IMAGE_H_
