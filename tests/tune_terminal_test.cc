// `heed tune` on a terminal: the bar, Ctrl-C typed, and what is left behind.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>

#include "runtime/record_files.h"
#include "tests/cli_fixture.h"
#include "tune/publish.h"

namespace heed {
namespace {

constexpr char kShapes[] =
    "b1_hq2_hkv2_q64_k64_d16_f32,b1_hq2_hkv2_q64_k64_d24_f32,"
    "b1_hq2_hkv2_q64_k64_d32_f32";
constexpr char kCtrlC = 3;

// A command on a terminal of its own.
class Terminal {
 public:
  explicit Terminal(const std::string& command) {
    child_ = forkpty(&master_, nullptr, nullptr, nullptr);
    if (child_ != 0) return;
    execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
    _exit(127);
  }
  ~Terminal() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    if (master_ >= 0) close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool ok() const { return child_ > 0; }
  const std::string& seen() const { return seen_; }

  // Reads until `text` was written, or for the rest of the command if it is
  // empty. False after `seconds`, or if the command ended without it.
  bool ReadUntil(const std::string& text, int seconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    while (text.empty() || seen_.find(text) == std::string::npos) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - Clock::now());
      if (left.count() <= 0) return false;
      pollfd ready = {master_, POLLIN, 0};
      if (poll(&ready, 1, static_cast<int>(left.count())) <= 0) return false;
      char read_now[4096];
      const ssize_t got = read(master_, read_now, sizeof read_now);
      // Once the last writer has gone, Linux says EIO.
      if (got <= 0) return text.empty();
      seen_.append(read_now, static_cast<size_t>(got));
    }
    return true;
  }
  void Type(char key) { ASSERT_EQ(write(master_, &key, 1), 1); }

  termios Settings() const {
    termios settings = {};
    EXPECT_EQ(tcgetattr(master_, &settings), 0);
    return settings;
  }
  // The exit code, or the signal below 0.
  int Wait() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t child_ = -1;
  int master_ = -1;
  std::string seen_;
};

// What stands on the terminal's last line: behind the last line feed, with what
// was erased taken away.
std::string LastLine(const std::string& seen) {
  std::string line = seen.substr(seen.rfind('\n') + 1);
  const char kErase[] = "\r\033[K";
  const size_t erased = line.rfind(kErase);
  return erased == std::string::npos ? line
                                     : line.substr(erased + sizeof kErase - 1);
}

class TuneTerminal : public CliFixture {
 protected:
  std::string Command(const std::string& budget) const {
    return "env TMPDIR=" + folder_.string() + " HEED_TUNE=off " +
           HEED_CLI_PATH + " tune run --effort quick --threads 1 --output " +
           Path("records") + " --budget " + budget + " --shapes " + kShapes;
  }
  // It has ended, with the terminal as it was before.
  static void ExpectInterrupted(Terminal* terminal, const termios& before) {
    EXPECT_EQ(terminal->Wait(), 130) << terminal->seen();
    EXPECT_EQ(LastLine(terminal->seen()), "") << terminal->seen();
    const termios a = terminal->Settings();
    EXPECT_EQ(a.c_iflag, before.c_iflag);
    EXPECT_EQ(a.c_oflag, before.c_oflag);
    EXPECT_EQ(a.c_cflag, before.c_cflag);
    EXPECT_EQ(a.c_lflag, before.c_lflag);
    EXPECT_EQ(std::memcmp(a.c_cc, before.c_cc, sizeof a.c_cc), 0);
  }
};

TEST_F(TuneTerminal, CtrlCFinishesTheShapeAndLeavesTheTerminalAsItWas) {
  Terminal terminal(Command("60s"));
  if (!terminal.ok()) GTEST_SKIP() << "no terminals to be had";
  const termios before = terminal.Settings();
  ASSERT_TRUE(terminal.ReadUntil("ETA", 60)) << terminal.seen();
  terminal.Type(kCtrlC);
  ASSERT_TRUE(terminal.ReadUntil("", 100)) << terminal.seen();
  ExpectInterrupted(&terminal, before);
  Record record;
  std::string why;
  ASSERT_TRUE(ReadRecordFile(
      RecordPath(Path("records"), MachineKey(ThisMachine())), &record, &why))
      << why;
  EXPECT_EQ(record.entries.size(), 1u);
}

TEST_F(TuneTerminal, ASecondCtrlCStopsAtOnceAndErasesTheBar) {
  Terminal terminal(Command("600s"));
  if (!terminal.ok()) GTEST_SKIP() << "no terminals to be had";
  const termios before = terminal.Settings();
  ASSERT_TRUE(terminal.ReadUntil("ETA", 60)) << terminal.seen();
  terminal.Type(kCtrlC);
  ASSERT_TRUE(terminal.ReadUntil("^C", 20)) << terminal.seen();
  terminal.Type(kCtrlC);
  ASSERT_TRUE(terminal.ReadUntil("", 20)) << terminal.seen();
  ExpectInterrupted(&terminal, before);
}

}  // namespace
}  // namespace heed
