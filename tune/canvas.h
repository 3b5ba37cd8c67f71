// A page to draw on, as PNG or SVG. Only its .cc knows the library that draws
// (cairo), and what is built without it has canvas_none.cc.
#ifndef HEED_TUNE_CANVAS_H_
#define HEED_TUNE_CANVAS_H_

#include <memory>
#include <string>

#include "tune/colour_map.h"

namespace heed {

enum class ImageFormat { kPng, kSvg };

// By the end of the file's name. Empty if it is .png or .svg and this build can
// draw, else what is wrong.
std::string FindImageFormat(const std::string& path, ImageFormat* format);

// As CLI11 checks an option: what is wrong, or nothing.
inline std::string CheckImage(const std::string& path) {
  ImageFormat format;
  return FindImageFormat(path, &format);
}

constexpr double kTitleSize = 17;  // of a picture's title, in pixels

// Coordinates are in pixels, from the top left corner. Starts white.
class Canvas {
 public:
  // Where a text stands: (x, y) is the middle of its height, at its ...
  enum class Align { kLeft, kMiddle, kRight };

  virtual ~Canvas() = default;

  virtual void Fill(double x, double y, double width, double height,
                    const Rgb& colour) = 0;
  // `dash` is the length of dashes, 0 for none.
  virtual void Line(double x0, double y0, double x1, double y1, double width,
                    double dash, const Rgb& colour) = 0;
  // A mark of a point: 0 disc, 1 square, 2 triangle.
  virtual void Mark(double x, double y, int shape, const Rgb& colour) = 0;
  // UTF-8; `up`: turned to be read from below.
  virtual void Text(double x, double y, const std::string& text, double size,
                    Align align, bool up) = 0;
  virtual double TextWidth(const std::string& text, double size) = 0;
  // The file's bytes. Nothing is to be drawn afterwards.
  virtual bool Finish(std::string* bytes, std::string* why) = 0;
};

// Null, and why, if there is no such page.
std::unique_ptr<Canvas> MakeCanvas(ImageFormat format, int width, int height,
                                   std::string* why);

// Writes a file whole or not at all.
bool WriteImage(const std::string& path, Canvas* canvas, std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_CANVAS_H_
