#include "tune/trials.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tune/peaks.h"

namespace heed {
namespace {

// What a child says: "ready <seconds>" after trial 0, "ok" after another one,
// "no <reason>" after either.
constexpr char kReady[] = "ready ";
constexpr char kOk[] = "ok";
constexpr char kNo[] = "no ";
constexpr size_t kMaxLine = 1000;
constexpr int kTickMilliseconds = 200;
// Inputs are filled before trial 0.
constexpr double kStartFactor = 6;

bool Begins(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

// One child, killed and buried at the end.
class Child {
 public:
  explicit Child(const TrialChild& child) : child_(child) {}
  ~Child() {
    if (child_.lines >= 0) close(child_.lines);
    if (child_.pid <= 0) return;
    kill(child_.pid, SIGKILL);
    Bury();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next line. False and one line of reason if the child has died, or said
  // nothing for so long.
  bool Read(double seconds, const std::function<void()>& tick,
            std::string* line, std::string* why) {
    const double end = MonotonicSeconds() + seconds;
    for (;;) {
      const size_t newline = text_.find('\n');
      if (newline != std::string::npos) {
        *line = text_.substr(0, newline);
        text_.erase(0, newline + 1);
        return true;
      }
      if (MonotonicSeconds() >= end || text_.size() > kMaxLine) {
        *why = fmt::format("took longer than {:g} s", seconds);
        return false;
      }
      if (tick) tick();
      pollfd wait = {child_.lines, POLLIN, 0};
      const double left = 1e3 * (end - MonotonicSeconds()) + 1;
      poll(&wait, 1,
           static_cast<int>(
               std::clamp(left, 1.0, static_cast<double>(kTickMilliseconds))));
      if (wait.revents == 0) continue;
      char some[256];
      const ssize_t got = read(child_.lines, some, sizeof some);
      if (got > 0) {
        text_.append(some, static_cast<size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        *why = HowItDied();
        return false;
      }
    }
  }

 private:
  int Bury() {
    int status = 0;
    while (waitpid(child_.pid, &status, 0) < 0 && errno == EINTR) {
    }
    child_.pid = -1;
    return status;
  }
  std::string HowItDied() {
    const int status = Bury();
    return WIFSIGNALED(status)
               ? fmt::format("crashed with signal {}", WTERMSIG(status))
               : fmt::format("ended with exit code {}", WEXITSTATUS(status));
  }

  TrialChild child_;
  std::string text_;
};

// Trial 0 in a new child, and how long each of the others may take.
bool Begin(Child* child, const TrialOptions& options, double* seconds,
           std::string* why) {
  std::string line;
  if (!child->Read(kStartFactor * options.seconds, options.tick, &line, why)) {
    return false;
  }
  if (!Begins(line, kReady)) {
    *why = Begins(line, kNo) ? line.substr(std::strlen(kNo)) : line;
    return false;
  }
  const double took = std::atof(line.c_str() + std::strlen(kReady));
  *seconds = std::max(options.seconds, kTrialFactor * took);
  return true;
}

}  // namespace

Trials RunTrials(size_t count, const TrialOptions& options,
                 const StartTrials& start) {
  Trials trials;
  trials.results.emplace_back();
  while (trials.results.size() < count &&
         MonotonicSeconds() < options.deadline) {
    const TrialChild started = start(trials.results.size());
    if (started.pid < 0) {
      trials.failed =
          std::string("cannot start a process: ") + std::strerror(errno);
      return trials;
    }
    Child child(started);
    double seconds = 0;
    if (!Begin(&child, options, &seconds, &trials.failed)) return trials;
    while (trials.results.size() < count &&
           MonotonicSeconds() < options.deadline) {
      std::string line, why;
      const bool alive = child.Read(seconds, options.tick, &line, &why);
      if (alive && line != kOk) {
        why = Begins(line, kNo) ? line.substr(std::strlen(kNo)) : line;
      }
      trials.results.push_back(why);
      if (!alive) break;
    }
  }
  return trials;
}

void ServeTrials(size_t first, size_t count,
                 const std::function<bool(size_t, std::string*)>& gate,
                 std::FILE* lines) {
  std::string why;
  const auto say = [lines](const std::string& line) {
    fmt::print(lines, "{}\n", line);
    std::fflush(lines);
  };
  const double start = MonotonicSeconds();
  if (!gate(0, &why)) {
    say(kNo + why);
    return;
  }
  say(fmt::format("{}{:.6f}", kReady, MonotonicSeconds() - start));
  for (size_t i = first; i < count; ++i) {
    say(gate(i, &why) ? std::string(kOk) : kNo + why);
  }
}

}  // namespace heed
