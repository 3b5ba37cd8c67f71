#include "tune/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace heed {
namespace {

// The one variable that a signal handler may write.
volatile std::sig_atomic_t interrupted = 0;

// Only what is safe in a signal handler.
extern "C" void OnInterrupt(int) {
  if (interrupted == 0) {
    interrupted = 1;
    return;
  }
  static const char kClear[] = "\r\033[K";
  for (const int file : {STDOUT_FILENO, STDERR_FILENO}) {
    if (isatty(file) == 0) continue;
    if (write(file, kClear, sizeof kClear - 1) < 0) break;
  }
  _exit(130);
}

}  // namespace

void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = static_cast<int>(SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

}  // namespace heed
