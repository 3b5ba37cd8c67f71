// The picture of scale_demo.h.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "tune/canvas.h"
#include "tune/colour_map.h"
#include "tune/scale_demo.h"

namespace heed {
namespace {

// Pixels.
constexpr int kWidth = 760, kHeight = 480;
constexpr double kLeft = 80, kRight = 600, kTop = 60, kBottom = 410;
constexpr double kTextSize = 14;
constexpr Rgb kAxis = {0.1, 0.1, 0.1}, kGrid = {0.88, 0.88, 0.88};

struct Point {
  double x, y;
};

Point Place(const std::vector<ScaleDemoRow>& rows, size_t i, double peak) {
  const double share =
      static_cast<double>(i) / static_cast<double>(rows.size() - 1);
  return {kLeft + share * (kRight - kLeft), kBottom - peak * (kBottom - kTop)};
}

void DrawFrame(const std::vector<ScaleDemoRow>& rows, Canvas* canvas) {
  for (int tick = 0; tick <= 5; ++tick) {
    const double y = kBottom - (kBottom - kTop) * tick / 5;
    canvas->Line(kLeft, y, kRight, y, 1, 0, kGrid);
    canvas->Text(kLeft - 10, y, fmt::format("{:.1f}", tick / 5.0), kTextSize,
                 Canvas::Align::kRight, false);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const double x = Place(rows, i, 0).x;
    canvas->Line(x, kBottom, x, kBottom + 5, 1, 0, kAxis);
    canvas->Text(x, kBottom + 18, std::to_string(rows[i].dim), kTextSize,
                 Canvas::Align::kMiddle, false);
  }
  canvas->Line(kLeft, kTop, kLeft, kBottom, 1, 0, kAxis);
  canvas->Line(kLeft, kBottom, kRight, kBottom, 1, 0, kAxis);
  canvas->Text((kLeft + kRight) / 2, kBottom + 46, "head width d", kTextSize,
               Canvas::Align::kMiddle, false);
  canvas->Text(24, (kTop + kBottom) / 2, "largest weight of a row, mean",
               kTextSize, Canvas::Align::kMiddle, true);
}

}  // namespace

bool WriteScaleImage(const ScaleDemoOptions& options,
                     const std::vector<ScaleDemoRow>& rows,
                     const std::string& path, std::string* why) {
  ImageFormat format;
  *why = FindImageFormat(path, &format);
  if (!why->empty()) return false;
  const std::unique_ptr<Canvas> canvas =
      MakeCanvas(format, kWidth, kHeight, why);
  if (canvas == nullptr) return false;
  canvas->Text(24, 26,
               fmt::format("Peak attention weight of N(0, 1) queries and {} "
                           "keys, by what scores are divided by",
                           options.tokens),
               kTitleSize, Canvas::Align::kLeft, false);
  DrawFrame(rows, canvas.get());
  constexpr const char* kNames[] = {"not divided", "divided by \u221ad",
                                    "divided by d"};
  constexpr double kDashes[] = {0, 9, 3};
  for (int series = 0; series < 3; ++series) {
    const Rgb colour = LineColour(series);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Point point = Place(rows, i, rows[i].peak[series]);
      if (i + 1 < rows.size()) {
        const Point next = Place(rows, i + 1, rows[i + 1].peak[series]);
        canvas->Line(point.x, point.y, next.x, next.y, 2, kDashes[series],
                     colour);
      }
      canvas->Mark(point.x, point.y, series, colour);
    }
    const Point end = Place(rows, rows.size() - 1, rows.back().peak[series]);
    canvas->Text(end.x + 14, end.y, kNames[series], kTextSize,
                 Canvas::Align::kLeft, false);
  }
  return WriteImage(path, canvas.get(), why);
}

}  // namespace heed
