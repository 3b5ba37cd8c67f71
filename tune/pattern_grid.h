// An attention pattern as the cells of a picture, and what it says in figures.
#ifndef HEED_TUNE_PATTERN_GRID_H_
#define HEED_TUNE_PATTERN_GRID_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heed {

// One head's weights, [queries, keys] of `len` each, and its scores, which are
// -inf where a key is hidden.
struct PatternView {
  const float* weights;
  const float* scores;
  int64_t len;

  bool IsHidden(int64_t query, int64_t key) const;
  float Weight(int64_t query, int64_t key) const;
};

struct PatternGrid {
  int64_t cells = 0;  // of each side
  int64_t block = 1;  // a cell stands for block x block weights: the largest
  std::vector<float> weights;   // [cells, cells]
  std::vector<uint8_t> hidden;  // 1: all of its keys are
  float At(int64_t row, int64_t column) const {
    return weights[static_cast<size_t>(row * cells + column)];
  }
  bool IsHidden(int64_t row, int64_t column) const {
    return hidden[static_cast<size_t>(row * cells + column)] != 0;
  }
};

// At most `max_cells` a side, by larger blocks where there are more tokens.
PatternGrid MakeGrid(const PatternView& pattern, int64_t max_cells);

// Means over the rows that see a key.
struct PatternFigures {
  double entropy = 0;       // of a row's weights, in bits
  double most_entropy = 0;  // if all that it sees had the same weight
  double peak = 0;          // of a row's largest weight
};
PatternFigures FiguresOf(const PatternView& pattern);

// Where a weight stands on the scale of colours that ends with `most`, 0 to 1,
// and the other way round: the square root, since most weights are much smaller
// than the largest, and would all look alike.
double ColourPlace(double weight, double most);
double WeightAt(double place, double most);

// The mean over rows of the weight on keys that come later.
double ShareAbove(const PatternView& pattern);

}  // namespace heed

#endif  // HEED_TUNE_PATTERN_GRID_H_
