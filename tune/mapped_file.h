// A file's bytes, read-only, without a copy.
#ifndef HEED_TUNE_MAPPED_FILE_H_
#define HEED_TUNE_MAPPED_FILE_H_

#include <cstddef>
#include <string>

namespace heed {

// The bytes stay where they are for as long as the object lives. Nobody may
// shorten the file in that time: reading what is gone ends the process.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Maps a regular file; symbolic links are followed. Never waits, as opening a
  // FIFO would. What was mapped before is given back. On failure returns false
  // and the reason, without the path.
  bool Open(const std::string& path, std::string* why);

  const unsigned char* data() const { return data_; }  // null if it is empty
  size_t size() const { return size_; }                // bytes

 private:
  void Close();

  unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace heed

#endif  // HEED_TUNE_MAPPED_FILE_H_
