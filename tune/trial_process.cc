#include "tune/trial_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "runtime/problem.h"
#include "runtime/tile_text.h"
#include "tune/attention_work.h"
#include "tune/commands.h"

namespace heed {
namespace {

constexpr char kThisProgram[] = "/proc/self/exe";
constexpr int kNotStarted = 127;

std::vector<std::string> Arguments(const TrialWork& work, size_t first) {
  std::vector<std::string> arguments = {"heed",
                                        "tune",
                                        "try",
                                        "--problem",
                                        ToString(work.problem),
                                        "--threads",
                                        std::to_string(work.threads),
                                        "--seed",
                                        std::to_string(work.seed),
                                        "--first",
                                        std::to_string(first),
                                        "--candidates"};
  for (const Candidate& candidate : work.candidates) {
    arguments.push_back(CandidateText(candidate));
  }
  return arguments;
}

// After a fork, where only what is safe in a signal handler may be called.
[[noreturn]] void BecomeTheChild(char* const* argv, int lines, pid_t parent) {
  // Ctrl-C is the parent's to answer, and nothing must outlive the parent.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent && dup2(lines, STDOUT_FILENO) >= 0) {
    execv(kThisProgram, argv);
  }
  _exit(kNotStarted);
}

}  // namespace

std::string CandidateText(const Candidate& candidate) {
  const Config& config = candidate.config;
  return fmt::format(
      "{}:row_block={},key_tile={},pack_k={},pack_v={},prefetch={:d},"
      "tasks_per_thread={},decode_rows={}",
      candidate.target, config.tile.row_block, config.tile.key_tile,
      static_cast<int>(config.tile.pack_k),
      static_cast<int>(config.tile.pack_v), config.tile.prefetch,
      config.cut.tasks_per_worker, config.cut.decode_rows);
}

bool ParseCandidate(const std::string& text, Candidate* candidate,
                    std::string* why) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    *why = "'" + text + "' is no candidate";
    return false;
  }
  heed_tile tile = {};
  if (!ParseTileOption(text.substr(colon + 1), &tile, why)) return false;
  candidate->target = text.substr(0, colon);
  candidate->config = WithPinned(Config{}, tile);
  return true;
}

StartTrials TrialsByExec(const TrialWork& work) {
  return [work](size_t first) {
    std::vector<std::string> arguments = Arguments(work, first);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    TrialChild child;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return child;
    const pid_t parent = getpid();
    child.pid = fork();
    if (child.pid == 0) BecomeTheChild(argv.data(), ends[1], parent);
    const int error = errno;
    close(ends[1]);
    if (child.pid < 0) {
      close(ends[0]);
      errno = error;
      return child;
    }
    child.lines = ends[0];
    return child;
  };
}

int ServeTrialWork(const TrialWork& work, size_t first) {
  std::unique_ptr<AttentionTensors> tensors;
  std::unique_ptr<AttentionWork> run;
  const auto gate = [&](size_t i, std::string* why) {
    if (i == 0) {
      tensors = AttentionTensors::Create(work.problem, work.seed, why);
      if (tensors == nullptr) return false;
      run = std::make_unique<AttentionWork>(
          work.problem, tensors.get(), WorkOptions{work.threads, {}}, nullptr);
    }
    return run->Add(work.candidates[i], why);
  };
  ServeTrials(first, work.candidates.size(), gate, stdout);
  return kDone;
}

}  // namespace heed
