// A file that appears at its path whole, or not at all.
#ifndef HEED_TUNE_STAGED_FILE_H_
#define HEED_TUNE_STAGED_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace heed {

// Written beside its destination and renamed over it by CommitAll(). Destroyed
// before that, it leaves no trace. Each failure is one line that begins with
// the path.
class StagedFile {
 public:
  StagedFile() = default;
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;
  ~StagedFile();

  bool Open(const std::string& path, std::string* why);
  bool Append(const void* bytes, size_t count, std::string* why);

  // Flushes all files to disk first and renames them afterwards, so that a full
  // disk leaves every old file in place. Those never opened are passed over.
  static bool CommitAll(const std::vector<StagedFile*>& files,
                        std::string* why);

 private:
  bool Flush(std::string* why);
  bool Fail(std::string* why) const;

  std::string path_, temporary_path_;
  int descriptor_ = -1;
};

}  // namespace heed

#endif  // HEED_TUNE_STAGED_FILE_H_
