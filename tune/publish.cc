#include "tune/publish.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include "runtime/file_handle.h"
#include "runtime/record_files.h"
#include "tune/merge_records.h"

namespace heed {
namespace {

bool Failed(const std::string& what, std::string* why) {
  *why = what + ": " + std::strerror(errno);
  return false;
}

void Reached(const PublishOptions& options, PublishStage stage) {
  if (options.reached) options.reached(stage);
}

bool WriteSome(int descriptor, const char* text, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t wrote = write(descriptor, text + done, size - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

bool WriteAll(int descriptor, const std::string& text,
              const PublishOptions& options) {
  const size_t half = text.size() / 2;
  if (!WriteSome(descriptor, text.data(), half)) return false;
  Reached(options, PublishStage::kMidWrite);
  return WriteSome(descriptor, text.data() + half, text.size() - half) &&
         fsync(descriptor) == 0;
}

std::string Unique(const std::string& path, const char* what) {
  std::random_device random;
  return path + "." + what + "." + std::to_string(getpid()) + "." +
         std::to_string(random());
}

// The last good record stays reachable. That there was none, or that the file
// system has no hard links, is no reason to fail.
void KeepBackup(const std::string& path) {
  Record old;
  std::string why;
  if (!ReadRecordFile(path, &old, &why)) return;
  const std::string temporary = Unique(path, "bak");
  if (link(path.c_str(), temporary.c_str()) != 0) return;
  if (rename(temporary.c_str(), (path + ".bak").c_str()) != 0) {
    unlink(temporary.c_str());
  }
  // Renaming a link over another one of the same file does nothing at all.
  unlink(temporary.c_str());
}

// A file of another name is completed on disk first, then renamed, which is
// atomic within a folder.
bool Replace(const std::string& path, const std::string& text,
             const PublishOptions& options, std::string* why) {
  const std::string temporary = Unique(path, "tmp");
  bool written = false;
  {
    const FileHandle file(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.ok()) return Failed("cannot create " + temporary, why);
    written = WriteAll(file.get(), text, options);
  }
  if (!written) {
    Failed("cannot write " + temporary, why);
    unlink(temporary.c_str());
    return false;
  }
  Reached(options, PublishStage::kAfterTemporary);
  KeepBackup(path);
  Reached(options, PublishStage::kBeforeRename);
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    Failed("cannot rename " + temporary + " to " + path, why);
    unlink(temporary.c_str());
    return false;
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const FileHandle directory(open(folder.empty() ? "." : folder.c_str(),
                                  O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.ok()) fsync(directory.get());
  return true;
}

// What is written must be what can be read.
bool ReadsBack(const std::string& text, std::string* why) {
  Record check;
  if (FromJson(text, &check, why)) return true;
  *why = "the record cannot be read back: " + *why;
  return false;
}

// Held while the record is read, merged and replaced. A file of its own,
// because the record's is replaced meanwhile.
class WriterLock {
 public:
  explicit WriterLock(const std::string& path)
      : path_(path + ".lock"),
        file_(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {}

  bool Take(const PublishOptions& options, std::string* why) {
    if (!file_.ok()) return Failed("cannot create " + path_, why);
    while (flock(file_.get(), LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      // Some network file systems have none. The rename is atomic all the same.
      if (options.no_locks) options.no_locks();
      break;
    }
    // For people who wonder; nobody reads it to decide.
    const std::string text =
        "pid " + std::to_string(getpid()) + " since " + UtcNow() + "\n";
    if (ftruncate(file_.get(), 0) == 0) {
      static_cast<void>(WriteSome(file_.get(), text.data(), text.size()));
    }
    return true;
  }

 private:
  std::string path_;
  FileHandle file_;
};

}  // namespace

std::string RecordPath(const std::string& dir, const std::string& machine_key) {
  return dir + "/" + machine_key + "/record.json";
}

bool WriteRecordFile(const std::string& dir, const Record& record,
                     std::string* path, std::string* why,
                     const PublishOptions& options) {
  // The key names a folder: only what MachineKey() can have made.
  if (record.machine_key.empty() || record.machine_key[0] == '.' ||
      record.machine_key.find('/') != std::string::npos) {
    *why = "\"" + record.machine_key + "\" is not a machine key";
    return false;
  }
  *path = RecordPath(dir, record.machine_key);
  const std::string folder = dir + "/" + record.machine_key;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    *why = "cannot create " + folder + ": " + error.message();
    return false;
  }
  WriterLock lock(*path);
  if (!lock.Take(options, why)) return false;
  Reached(options, PublishStage::kLocked);
  Record older;
  std::string ignored;
  const bool merges = ReadRecordFile(*path, &older, &ignored) &&
                      older.machine_key == record.machine_key;
  const std::string text =
      ToJson(merges ? MergeRecords(older, record, options.force) : record);
  return ReadsBack(text, why) && Replace(*path, text, options, why);
}

bool ReplaceRecordFile(const std::string& path, const Record& record,
                       std::string* why, const PublishOptions& options) {
  WriterLock lock(path);
  if (!lock.Take(options, why)) return false;
  const std::string text = ToJson(record);
  return ReadsBack(text, why) && Replace(path, text, options, why);
}

}  // namespace heed
