#include "tune/pattern_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tune/canvas.h"
#include "tune/colour_map.h"
#include "tune/token_labels.h"

namespace heed {
namespace {

// Pixels.
constexpr double kPanelSide = 340;
constexpr double kPanelTitleSize = 14, kLabelSize = 12;
constexpr double kLabelStep =
    14;  // labels of an axis are at least so far apart
constexpr double kGap = 14, kScaleWidth = 18, kBarHeight = 220;
constexpr Rgb kHidden = {0.87, 0.87, 0.87}, kBlack = {0.1, 0.1, 0.1};

struct Layout {
  double cell, side;      // of a cell, of a panel
  double margin;          // of the labels of an axis
  double step_x, step_y;  // from panel to panel
  double left, top;
  int64_t columns, rows;
};

Layout MakeLayout(const PatternPage& page, Canvas* ruler) {
  Layout layout;
  const auto panels = static_cast<double>(page.panels.size());
  layout.columns = static_cast<int64_t>(std::ceil(std::sqrt(panels)));
  layout.rows = static_cast<int64_t>(
      std::ceil(panels / static_cast<double>(layout.columns)));
  const auto cells = static_cast<double>(page.panels[0].grid.cells);
  layout.cell = std::max(1.0, std::round(kPanelSide / cells));
  layout.side = layout.cell * cells;
  layout.margin = 0;
  for (const std::string& label : page.labels) {
    layout.margin = std::max(
        layout.margin, ruler->TextWidth(CleanLabel(label, false), kLabelSize));
  }
  layout.margin += 8;
  // A panel: title above, labels and the axis' name left and below.
  layout.step_x = layout.side + layout.margin + kLabelSize + 2.5 * kGap;
  layout.step_y = layout.side + layout.margin + kLabelSize + 3 * kGap;
  layout.left = layout.margin + kLabelSize + 1.5 * kGap;
  layout.top = kTitleSize + 4 * kGap;
  return layout;
}

void DrawAxes(const PatternPage& page, const PatternGrid& grid,
              const Layout& layout, double x, double y, Canvas* canvas) {
  const auto step = static_cast<int64_t>(std::ceil(kLabelStep / layout.cell));
  for (int64_t cell = 0; cell < grid.cells; cell += step) {
    const std::string label =
        CleanLabel(page.labels[static_cast<size_t>(cell * grid.block)], false);
    const double at = (static_cast<double>(cell) + 0.5) * layout.cell;
    const double edge = y + layout.side;
    canvas->Line(x - 4, y + at, x, y + at, 1, 0, kBlack);
    canvas->Text(x - 6, y + at, label, kLabelSize, Canvas::Align::kRight,
                 false);
    canvas->Line(x + at, edge, x + at, edge + 4, 1, 0, kBlack);
    canvas->Text(x + at, edge + 6, label, kLabelSize, Canvas::Align::kRight,
                 true);
  }
  const double middle = layout.side / 2;
  canvas->Text(x - layout.margin - kGap, y + middle, "query", kLabelSize,
               Canvas::Align::kMiddle, true);
  canvas->Text(x + middle, y + layout.side + layout.margin + kGap, "key",
               kLabelSize, Canvas::Align::kMiddle, false);
}

void DrawPanel(const PatternPage& page, const PatternPanel& panel,
               const Layout& layout, double x, double y, Canvas* canvas) {
  const PatternGrid& grid = panel.grid;
  canvas->Fill(x, y, layout.side, layout.side, kHidden);
  for (int64_t row = 0; row < grid.cells; ++row) {
    for (int64_t column = 0; column < grid.cells; ++column) {
      if (grid.IsHidden(row, column)) continue;
      // Half a pixel into the next cell, which is drawn later: an SVG that is
      // scaled would show seams.
      const double wide =
          column + 1 < grid.cells && !grid.IsHidden(row, column + 1) ? 0.5 : 0;
      const double high =
          row + 1 < grid.cells && !grid.IsHidden(row + 1, column) ? 0.5 : 0;
      canvas->Fill(x + static_cast<double>(column) * layout.cell,
                   y + static_cast<double>(row) * layout.cell,
                   layout.cell + wide, layout.cell + high,
                   Viridis(ColourPlace(grid.At(row, column), page.most)));
    }
  }
  canvas->Text(x + layout.side / 2, y - kGap, panel.title, kPanelTitleSize,
               Canvas::Align::kMiddle, false);
  DrawAxes(page, grid, layout, x, y, canvas);
}

void DrawColourBar(const PatternPage& page, bool is_hidden_used, double x,
                   double y, Canvas* canvas) {
  canvas->Text(x, y - 1.6 * kGap, "weight", kPanelTitleSize,
               Canvas::Align::kLeft, false);
  constexpr int kSteps = static_cast<int>(kBarHeight);
  for (int i = 0; i < kSteps; ++i) {
    canvas->Fill(x, y + i, kScaleWidth, 1, Viridis(1 - (i + 0.5) / kSteps));
  }
  for (int tick = 0; tick <= 4; ++tick) {
    const double place = tick / 4.0, at = y + kBarHeight * (1 - place);
    canvas->Line(x + kScaleWidth, at, x + kScaleWidth + 4, at, 1, 0, kBlack);
    canvas->Text(x + kScaleWidth + 7, at,
                 fmt::format("{:.3g}", WeightAt(place, page.most)), kLabelSize,
                 Canvas::Align::kLeft, false);
  }
  if (!is_hidden_used) return;
  const double below = y + kBarHeight + 2 * kGap;
  canvas->Fill(x, below, kScaleWidth, kScaleWidth, kHidden);
  canvas->Text(x + kScaleWidth + 7, below + kScaleWidth / 2, "hidden",
               kLabelSize, Canvas::Align::kLeft, false);
}

}  // namespace

int64_t MaxCells(ImageFormat format, int64_t panels) {
  if (format == ImageFormat::kPng) return static_cast<int64_t>(kPanelSide);
  constexpr double kMostObjects = 150000;
  const double side = std::sqrt(
      kMostObjects / static_cast<double>(std::max<int64_t>(panels, 1)));
  return std::clamp<int64_t>(static_cast<int64_t>(side), 16,
                             static_cast<int64_t>(kPanelSide));
}

std::unique_ptr<Canvas> DrawPage(const PatternPage& page, ImageFormat format,
                                 std::string* why) {
  // Widths of texts are known to a page only, so a small one comes first.
  const std::unique_ptr<Canvas> ruler = MakeCanvas(format, 8, 8, why);
  if (ruler == nullptr) return nullptr;
  const Layout layout = MakeLayout(page, ruler.get());
  const double bar_x = layout.left +
                       static_cast<double>(layout.columns) * layout.step_x -
                       layout.margin;
  const double width =
      std::max(bar_x + kScaleWidth + 5 * kLabelSize,
               ruler->TextWidth(page.title, kTitleSize) + 2 * kGap);
  const double height =
      std::max(layout.top + static_cast<double>(layout.rows) * layout.step_y,
               layout.top + kBarHeight + 5 * kGap);
  std::unique_ptr<Canvas> canvas =
      MakeCanvas(format, static_cast<int>(std::ceil(width)),
                 static_cast<int>(std::ceil(height)), why);
  if (canvas == nullptr) return nullptr;
  canvas->Text(kGap, kTitleSize, page.title, kTitleSize, Canvas::Align::kLeft,
               false);
  bool is_hidden_used = false;
  for (size_t i = 0; i < page.panels.size(); ++i) {
    const auto column =
        static_cast<double>(static_cast<int64_t>(i) % layout.columns);
    const auto row =
        static_cast<double>(static_cast<int64_t>(i) / layout.columns);
    DrawPanel(page, page.panels[i], layout,
              std::round(layout.left + column * layout.step_x),
              std::round(layout.top + row * layout.step_y), canvas.get());
    const std::vector<uint8_t>& hidden = page.panels[i].grid.hidden;
    is_hidden_used = is_hidden_used ||
                     std::find(hidden.begin(), hidden.end(), 1) != hidden.end();
  }
  DrawColourBar(page, is_hidden_used, std::round(bar_x), layout.top,
                canvas.get());
  return canvas;
}

}  // namespace heed
