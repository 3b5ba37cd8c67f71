// A file descriptor that closes itself.
#ifndef HEED_RUNTIME_FILE_HANDLE_H_
#define HEED_RUNTIME_FILE_HANDLE_H_

#include <unistd.h>

namespace heed {

class FileHandle {
 public:
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  ~FileHandle() {
    if (ok()) close(descriptor_);
  }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;

  bool ok() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace heed

#endif  // HEED_RUNTIME_FILE_HANDLE_H_
