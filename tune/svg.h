// Drawing with SVG elements, whose colours are the page's style classes, so
// that one drawing serves light and dark pages.
#ifndef HEED_TUNE_SVG_H_
#define HEED_TUNE_SVG_H_

#include <string>
#include <utility>
#include <vector>

namespace heed {

// Text for HTML and SVG: no markup in it survives.
std::string Escaped(const std::string& text);

class Svg {
 public:
  // In user units, which are pixels at full width. `label` is for those who
  // cannot see it.
  Svg(double width, double height, const std::string& label);

  void Line(double x1, double y1, double x2, double y2, const char* style);
  void Rect(double x, double y, double width, double height, const char* style,
            double opacity = 1, const std::string& title = "");
  void Circle(double x, double y, double radius, const char* style,
              const std::string& title = "");
  void Path(const std::vector<std::pair<double, double>>& points,
            const char* style);
  // `anchor` is start, middle or end; y is the base line.
  void Text(double x, double y, const std::string& text, const char* style,
            const char* anchor = "start");

  // The whole element.
  std::string ToString() const { return body_ + "</svg>\n"; }

 private:
  std::string body_;
};

// From numbers to places, linear or logarithmic.
class Scale {
 public:
  Scale(double low, double high, double from, double to, bool logarithmic);
  // Numbers outside are put on the border.
  double operator()(double value) const;
  // Round numbers within: about `count` of them, or powers of ten with 2 and 5.
  std::vector<double> Ticks(int count) const;

 private:
  double low_, high_, from_, to_;
  bool logarithmic_;
};

// "0.25", "10", "1000": as short as it can be.
std::string ShortNumber(double value);

}  // namespace heed

#endif  // HEED_TUNE_SVG_H_
