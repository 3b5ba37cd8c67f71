#include "tune/measure_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tune/merge_records.h"

namespace heed {
namespace {

// -1 if it cannot be had. A link is not followed: the folder belongs to
// everybody. What another user has made is opened for reading, which is enough
// to lock it.
int OpenLock(const std::string& path, mode_t mode) {
  const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int file = open(path.c_str(), O_RDWR | flags);
  if (file < 0 && errno == ENOENT) {
    file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | flags, mode);
    if (file < 0 && errno == EEXIST) file = open(path.c_str(), O_RDWR | flags);
    // Past the umask, for other users.
    if (file >= 0) static_cast<void>(fchmod(file, mode));
  }
  if (file < 0) file = open(path.c_str(), O_RDONLY | flags);
  struct stat info;
  if (file >= 0 && (fstat(file, &info) != 0 || !S_ISREG(info.st_mode))) {
    close(file);
    return -1;
  }
  return file;
}

// "another tuner (pid 4242, started 10:11) ...", as far as the file says.
std::string HolderOf(int file) {
  char text[128] = {};
  const ssize_t got = pread(file, text, sizeof text - 1, 0);
  long pid = 0;
  char since[32] = {};
  std::string who;
  if (got > 0 && std::sscanf(text, "pid %ld since %31s", &pid, since) == 2) {
    who = " (pid " + std::to_string(pid) + ", started " + since + ")";
  }
  return "another tuner" + who + " is measuring on this machine";
}

void Sign(int file) {
  const std::string text =
      "pid " + std::to_string(getpid()) + " since " + UtcNow() + "\n";
  if (ftruncate(file, 0) == 0) {
    static_cast<void>(!pwrite(file, text.data(), text.size(), 0));
  }
}

}  // namespace

MeasureLock::~MeasureLock() {
  for (const int file : files_) close(file);
}

// Takes one lock or says who has it.
bool MeasureLock::TryLock(int file, std::string* holder) {
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK) {
    // No locks on this file system: then nobody has it.
    has_locks_ = false;
    return true;
  }
  *holder = HolderOf(file);
  return false;
}

MeasureLock::Result MeasureLock::Take(
    const std::string& folder, bool wait,
    const std::function<void(const std::string&)>& waiting,
    const std::function<bool()>& give_up, std::string* holder) {
  std::string at = folder;
  if (at.empty()) {
    const char* temporary = std::getenv("TMPDIR");
    at = temporary != nullptr && temporary[0] == '/' ? temporary : "/tmp";
  }
  const std::string own =
      at + "/heed-tune." + std::to_string(getuid()) + ".lock";
  for (const auto& [path, mode] :
       {std::pair<std::string, mode_t>{own, 0600},
        std::pair<std::string, mode_t>{at + "/heed-tune.lock", 0666}}) {
    const int file = OpenLock(path, mode);
    if (file >= 0) files_.push_back(file);
  }
  bool told = false;
  for (const int file : files_) {
    while (!TryLock(file, holder)) {
      if (!wait) return Result::kBusy;
      if (!told && waiting) waiting(*holder);
      told = true;
      if (give_up && give_up()) return Result::kGivenUp;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    Sign(file);
  }
  return Result::kTaken;
}

}  // namespace heed
