#include "tune/pattern_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed {

bool PatternView::IsHidden(int64_t query, int64_t key) const {
  return scores[query * len + key] == -std::numeric_limits<float>::infinity();
}

float PatternView::Weight(int64_t query, int64_t key) const {
  return weights[query * len + key];
}

PatternGrid MakeGrid(const PatternView& pattern, int64_t max_cells) {
  PatternGrid grid;
  grid.block = (pattern.len + max_cells - 1) / max_cells;
  grid.cells = (pattern.len + grid.block - 1) / grid.block;
  grid.weights.assign(static_cast<size_t>(grid.cells * grid.cells), 0.0f);
  grid.hidden.assign(grid.weights.size(), 1);
  for (int64_t query = 0; query < pattern.len; ++query) {
    for (int64_t key = 0; key < pattern.len; ++key) {
      if (pattern.IsHidden(query, key)) continue;
      const auto cell = static_cast<size_t>(query / grid.block * grid.cells +
                                            key / grid.block);
      grid.hidden[cell] = 0;
      grid.weights[cell] =
          std::max(grid.weights[cell], pattern.Weight(query, key));
    }
  }
  return grid;
}

PatternFigures FiguresOf(const PatternView& pattern) {
  PatternFigures sum;
  int64_t rows = 0;
  for (int64_t query = 0; query < pattern.len; ++query) {
    int64_t visible = 0;
    float peak = 0;
    for (int64_t key = 0; key < pattern.len; ++key) {
      if (pattern.IsHidden(query, key)) continue;
      const double weight = pattern.Weight(query, key);
      ++visible;
      peak = std::max(peak, pattern.Weight(query, key));
      if (weight > 0) sum.entropy -= weight * std::log2(weight);
    }
    if (visible == 0) continue;
    ++rows;
    sum.peak += peak;
    sum.most_entropy += std::log2(static_cast<double>(visible));
  }
  const double count = static_cast<double>(std::max<int64_t>(rows, 1));
  // Weights that are rounded up may take the entropy of one key below 0.
  return {std::max(sum.entropy, 0.0) / count, sum.most_entropy / count,
          sum.peak / count};
}

double ColourPlace(double weight, double most) {
  return most > 0 ? std::sqrt(std::min(std::max(weight / most, 0.0), 1.0)) : 0;
}

double WeightAt(double place, double most) { return place * place * most; }

double ShareAbove(const PatternView& pattern) {
  double sum = 0;
  for (int64_t query = 0; query < pattern.len; ++query) {
    for (int64_t key = query + 1; key < pattern.len; ++key) {
      sum += pattern.Weight(query, key);
    }
  }
  return sum / static_cast<double>(pattern.len);
}

}  // namespace heed
