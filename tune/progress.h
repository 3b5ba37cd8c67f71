// Shows a person how far a run has come: a bar that redraws itself on a
// terminal, one line per shape elsewhere.
#ifndef HEED_TUNE_PROGRESS_H_
#define HEED_TUNE_PROGRESS_H_

#include <cstddef>
#include <cstdio>
#include <string>

namespace heed {

class Progress {
 public:
  enum class Style { kNone, kLines, kBar };

  // `now` is MonotonicSeconds() at the start of the run.
  Progress(std::FILE* stream, Style style, size_t count, double now);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A bar if the stream is a terminal, else lines.
  static Style StyleFor(std::FILE* stream);

  void Begin(size_t index, const std::string& name, double now,
             double seconds_left);
  // What is being done to the shape, e.g. "racing 24"; only a bar shows it.
  void Phase(const std::string& what) { phase_ = what; }
  // Redraws the bar, at most a few times a second.
  void Tick(double now);
  // The line that stays.
  void End(const std::string& line);
  // Says something that stays, without disturbing the bar.
  void Note(const std::string& line);

 private:
  void Clear();

  std::FILE* stream_;
  Style style_;
  size_t count_;
  double start_, end_ = 0, drawn_ = 0;
  std::string label_, phase_;
};

}  // namespace heed

#endif  // HEED_TUNE_PROGRESS_H_
