#include "tune/staged_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace heed {

StagedFile::~StagedFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
}

bool StagedFile::Fail(std::string* why) const {
  *why = path_ + ": " + std::strerror(errno);
  return false;
}

bool StagedFile::Open(const std::string& path, std::string* why) {
  path_ = path;
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    *why = path + ": exists and is not a regular file";
    return false;
  }
  const std::string temporary = path + ".tmp." + std::to_string(getpid());
  descriptor_ =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return Fail(why);
  temporary_path_ = temporary;
  return true;
}

bool StagedFile::Append(const void* bytes, size_t count, std::string* why) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    // Linux writes at most 2 GiB at a time.
    const ssize_t written =
        write(descriptor_, next, std::min<size_t>(count, 1 << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Fail(why);
    next += written;
    count -= static_cast<size_t>(written);
  }
  return true;
}

bool StagedFile::Flush(std::string* why) {
  const bool synced = fsync(descriptor_) == 0 || errno == EINVAL;
  if (!synced) return Fail(why);
  const bool closed = close(descriptor_) == 0;
  descriptor_ = -1;
  return closed || Fail(why);
}

bool StagedFile::CommitAll(const std::vector<StagedFile*>& files,
                           std::string* why) {
  for (StagedFile* file : files) {
    if (!file->temporary_path_.empty() && !file->Flush(why)) return false;
  }
  for (StagedFile* file : files) {
    if (file->temporary_path_.empty()) continue;
    if (std::rename(file->temporary_path_.c_str(), file->path_.c_str()) != 0) {
      return file->Fail(why);
    }
    file->temporary_path_.clear();
  }
  return true;
}

}  // namespace heed
