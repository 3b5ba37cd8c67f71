#include "tune/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace heed {

std::string Escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

Svg::Svg(double width, double height, const std::string& label)
    : body_(fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
                        "aria-label=\"{}\" style=\"max-width:{:.0f}px\">\n",
                        width, height, Escaped(label), width)) {}

void Svg::Line(double x1, double y1, double x2, double y2, const char* style) {
  body_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
      "class=\"{}\"/>\n",
      x1, y1, x2, y2, style);
}

void Svg::Rect(double x, double y, double width, double height,
               const char* style, double opacity, const std::string& title) {
  body_ += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "class=\"{}\" fill-opacity=\"{:.3f}\">",
      x, y, std::max(width, 0.0), std::max(height, 0.0), style, opacity);
  if (!title.empty()) body_ += "<title>" + Escaped(title) + "</title>";
  body_ += "</rect>\n";
}

void Svg::Circle(double x, double y, double radius, const char* style,
                 const std::string& title) {
  body_ += fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\">", x, y,
      radius, style);
  if (!title.empty()) body_ += "<title>" + Escaped(title) + "</title>";
  body_ += "</circle>\n";
}

void Svg::Path(const std::vector<std::pair<double, double>>& points,
               const char* style) {
  if (points.empty()) return;
  body_ += "<path d=\"";
  for (size_t i = 0; i < points.size(); ++i) {
    body_ += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", points[i].first,
                         points[i].second);
  }
  body_ += fmt::format("\" class=\"{}\"/>\n", style);
}

void Svg::Text(double x, double y, const std::string& text, const char* style,
               const char* anchor) {
  body_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}"
      "</text>\n",
      x, y, style, anchor, Escaped(text));
}

Scale::Scale(double low, double high, double from, double to, bool logarithmic)
    : low_(low), high_(high), from_(from), to_(to), logarithmic_(logarithmic) {
  if (logarithmic_) {
    low_ = std::log10(std::max(low, 1e-12));
    high_ = std::log10(std::max(high, 1e-12));
  }
  if (!(high_ > low_)) high_ = low_ + 1;
}

double Scale::operator()(double value) const {
  const double place =
      logarithmic_ ? std::log10(std::max(value, 1e-12)) : value;
  const double part = std::clamp((place - low_) / (high_ - low_), 0.0, 1.0);
  return from_ + part * (to_ - from_);
}

std::vector<double> Scale::Ticks(int count) const {
  std::vector<double> ticks;
  if (logarithmic_) {
    for (double power = std::floor(low_); power <= high_; ++power) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double at = power + std::log10(digit);
        if (at >= low_ - 1e-9 && at <= high_ + 1e-9) {
          ticks.push_back(digit * std::pow(10.0, power));
        }
      }
    }
    return ticks;
  }
  const double raw = (high_ - low_) / std::max(count, 1);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= raw) {
      step = digit * power;
      break;
    }
  }
  for (double at = std::ceil(low_ / step - 1e-9) * step;
       at <= high_ + 1e-9 * step; at += step) {
    ticks.push_back(std::fabs(at) < step * 1e-6 ? 0 : at);
  }
  return ticks;
}

std::string ShortNumber(double value) { return fmt::format("{:.4g}", value); }

}  // namespace heed
