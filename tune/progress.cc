#include "tune/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "tune/budget.h"

namespace heed {
namespace {

constexpr double kRedrawSeconds = 0.2;
constexpr int kBarCells = 24;

}  // namespace

Progress::Progress(std::FILE* stream, Style style, size_t count, double now)
    : stream_(stream), style_(style), count_(count), start_(now) {}

Progress::~Progress() { Clear(); }

Progress::Style Progress::StyleFor(std::FILE* stream) {
  return isatty(fileno(stream)) != 0 ? Style::kBar : Style::kLines;
}

void Progress::Clear() {
  // Carriage return, then erase to the end of the line.
  if (style_ == Style::kBar && drawn_ != 0) fmt::print(stream_, "\r\033[K");
  drawn_ = 0;
}

void Progress::Begin(size_t index, const std::string& name, double now,
                     double seconds_left) {
  label_ = fmt::format("[{:>2}/{}] {}", index + 1, count_, name);
  phase_.clear();
  end_ = now + seconds_left;
  Tick(now);
}

void Progress::Tick(double now) {
  if (style_ != Style::kBar || now - drawn_ < kRedrawSeconds) return;
  drawn_ = now;
  const double left = std::max(end_ - now, 0.0);
  const double done = (now - start_) / std::max(now - start_ + left, 1e-9);
  const int filled = static_cast<int>(done * kBarCells);
  // One line, whatever the width: what does not fit would scroll.
  std::string text =
      fmt::format("{:#<{}}{:.<{}} {}  {}  ETA {}", "", filled, "",
                  kBarCells - filled, label_, phase_, DurationText(left));
  winsize size = {};
  if (ioctl(fileno(stream_), TIOCGWINSZ, &size) == 0 && size.ws_col > 1) {
    text.resize(std::min<size_t>(text.size(), size.ws_col - 1u));
  }
  fmt::print(stream_, "\r\033[K{}", text);
  std::fflush(stream_);
}

void Progress::End(const std::string& line) { Note(label_ + "  " + line); }

void Progress::Note(const std::string& line) {
  if (style_ == Style::kNone) return;
  Clear();
  fmt::print(stream_, "{}\n", line);
  std::fflush(stream_);
}

}  // namespace heed
