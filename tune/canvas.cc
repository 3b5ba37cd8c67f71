#include "tune/canvas.h"

#include <cairo-svg.h>
#include <cairo.h>

#include <cmath>

#include "tune/staged_file.h"

namespace heed {
namespace {

constexpr double kPi = 3.14159265358979323846;

cairo_status_t Append(void* bytes, const unsigned char* data,
                      unsigned int length) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data),
                                           length);
  return CAIRO_STATUS_SUCCESS;
}

class CairoCanvas final : public Canvas {
 public:
  CairoCanvas(ImageFormat format, int width, int height) : format_(format) {
    surface_ =
        format == ImageFormat::kPng
            ? cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height)
            : cairo_svg_surface_create_for_stream(Append, &bytes_, width,
                                                  height);
    cairo_ = cairo_create(surface_);
    Fill(0, 0, width, height, {1, 1, 1});
    cairo_select_font_face(cairo_, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           CAIRO_FONT_WEIGHT_NORMAL);
  }
  ~CairoCanvas() override {
    cairo_destroy(cairo_);
    cairo_surface_destroy(surface_);
  }

  bool IsGood(std::string* why) const {
    const cairo_status_t status = cairo_status(cairo_);
    if (status == CAIRO_STATUS_SUCCESS) return true;
    *why = std::string("cairo: ") + cairo_status_to_string(status);
    return false;
  }

  // Areas end at whole pixels, so that neighbours leave no gap.
  void Fill(double x, double y, double width, double height,
            const Rgb& colour) override {
    Use(colour);
    cairo_set_antialias(cairo_, CAIRO_ANTIALIAS_NONE);
    cairo_rectangle(cairo_, x, y, width, height);
    cairo_fill(cairo_);
    cairo_set_antialias(cairo_, CAIRO_ANTIALIAS_DEFAULT);
  }

  void Line(double x0, double y0, double x1, double y1, double width,
            double dash, const Rgb& colour) override {
    Use(colour);
    cairo_set_line_width(cairo_, width);
    cairo_set_dash(cairo_, &dash, dash > 0 ? 1 : 0, 0);
    cairo_move_to(cairo_, x0, y0);
    cairo_line_to(cairo_, x1, y1);
    cairo_stroke(cairo_);
  }

  void Mark(double x, double y, int shape, const Rgb& colour) override {
    Use(colour);
    const double r = 4.5;
    if (shape == 0) {
      cairo_arc(cairo_, x, y, r, 0, 2 * kPi);
    } else if (shape == 1) {
      cairo_rectangle(cairo_, x - r, y - r, 2 * r, 2 * r);
    } else {
      cairo_move_to(cairo_, x, y - 1.3 * r);
      cairo_line_to(cairo_, x + 1.2 * r, y + r);
      cairo_line_to(cairo_, x - 1.2 * r, y + r);
      cairo_close_path(cairo_);
    }
    cairo_fill(cairo_);
  }

  void Text(double x, double y, const std::string& text, double size,
            Align align, bool up) override {
    Use({0.1, 0.1, 0.1});
    const double width = TextWidth(text, size);
    const double back = align == Align::kLeft     ? 0
                        : align == Align::kMiddle ? width / 2
                                                  : width;
    cairo_save(cairo_);
    cairo_translate(cairo_, x, y);
    if (up) cairo_rotate(cairo_, -kPi / 2);
    // The middle of letters is about a third of the size above their foot.
    cairo_move_to(cairo_, -back, size * 0.35);
    cairo_show_text(cairo_, text.c_str());
    cairo_restore(cairo_);
  }

  double TextWidth(const std::string& text, double size) override {
    cairo_text_extents_t extents;
    cairo_set_font_size(cairo_, size);
    cairo_text_extents(cairo_, text.c_str(), &extents);
    return extents.x_advance;
  }

  bool Finish(std::string* bytes, std::string* why) override {
    if (!IsGood(why)) return false;
    cairo_surface_flush(surface_);
    cairo_status_t status = CAIRO_STATUS_SUCCESS;
    if (format_ == ImageFormat::kPng) {
      status = cairo_surface_write_to_png_stream(surface_, Append, &bytes_);
    } else {
      cairo_surface_finish(surface_);
      status = cairo_surface_status(surface_);
    }
    if (status != CAIRO_STATUS_SUCCESS) {
      *why = std::string("cairo: ") + cairo_status_to_string(status);
      return false;
    }
    *bytes = bytes_;
    return true;
  }

 private:
  void Use(const Rgb& colour) {
    cairo_set_source_rgb(cairo_, colour.red, colour.green, colour.blue);
  }

  const ImageFormat format_;
  std::string bytes_;
  cairo_surface_t* surface_;
  cairo_t* cairo_;
};

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() > end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::string FindImageFormat(const std::string& path, ImageFormat* format) {
  const bool is_svg = EndsWith(path, ".svg");
  *format = is_svg ? ImageFormat::kSvg : ImageFormat::kPng;
  if (is_svg || EndsWith(path, ".png")) return "";
  return path + "; expected a name that ends in .png or .svg";
}

std::unique_ptr<Canvas> MakeCanvas(ImageFormat format, int width, int height,
                                   std::string* why) {
  auto canvas = std::make_unique<CairoCanvas>(format, width, height);
  if (!canvas->IsGood(why)) return nullptr;
  return canvas;
}

bool WriteImage(const std::string& path, Canvas* canvas, std::string* why) {
  std::string bytes;
  StagedFile file;
  if (!canvas->Finish(&bytes, why)) {
    *why = path + ": " + *why;
    return false;
  }
  return file.Open(path, why) && file.Append(bytes.data(), bytes.size(), why) &&
         StagedFile::CommitAll({&file}, why);
}

}  // namespace heed
