#include "tune/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "runtime/file_handle.h"

namespace heed {

MappedFile::~MappedFile() { Close(); }

void MappedFile::Close() {
  if (data_ != nullptr) munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

bool MappedFile::Open(const std::string& path, std::string* why) {
  Close();
  const FileHandle file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (!file.ok() || fstat(file.get(), &status) != 0) {
    *why = std::strerror(errno);
    return false;
  }
  if (!S_ISREG(status.st_mode)) {
    *why =
        S_ISDIR(status.st_mode) ? "a folder, not a file" : "not a regular file";
    return false;
  }
  if (status.st_size == 0) return true;
  const auto size = static_cast<size_t>(status.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    *why = std::strerror(errno);
    return false;
  }
  data_ = static_cast<unsigned char*>(data);
  size_ = size;
  return true;
}

}  // namespace heed
