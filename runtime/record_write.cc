// WriteRecordFile(): readers see the old file or the new one, never a part.
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

namespace heed {
namespace {

bool Failed(const std::string& what, std::string* why) {
  *why = what + ": " + std::strerror(errno);
  return false;
}

bool SameSlot(const RecordEntry& a, const RecordEntry& b) {
  return a.shape_class == b.shape_class && a.target == b.target;
}

// `newer` with the entries of `older` that it does not replace.
Record Merge(const Record& older, const Record& newer) {
  Record merged = newer;
  for (const RecordEntry& entry : older.entries) {
    bool replaced = false;
    for (const RecordEntry& other : newer.entries) {
      replaced = replaced || SameSlot(entry, other);
    }
    if (!replaced) merged.entries.push_back(entry);
  }
  return merged;
}

bool WriteAll(int descriptor, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote =
        write(descriptor, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return fsync(descriptor) == 0;
}

// Replaces `path` in `folder` by `text`: a file of another name is completed
// on disk first, then renamed, which is atomic within a folder.
bool Replace(const std::string& folder, const std::string& path,
             const std::string& text, std::string* why) {
  std::random_device random;
  const std::string temporary = path + ".tmp." + std::to_string(getpid()) +
                                "." + std::to_string(random());
  bool written = false;
  {
    const FileHandle file(
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.ok()) return Failed("cannot create " + temporary, why);
    written = WriteAll(file.get(), text);
  }
  if (!written) {
    Failed("cannot write " + temporary, why);
    unlink(temporary.c_str());
    return false;
  }
  // The last good record stays reachable. That there was none, or that the
  // file system has no hard links, is no reason to fail.
  const std::string backup = path + ".bak";
  unlink(backup.c_str());
  if (link(path.c_str(), backup.c_str()) != 0) errno = 0;
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    Failed("cannot rename " + temporary + " to " + path, why);
    unlink(temporary.c_str());
    return false;
  }
  const FileHandle directory(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.ok()) fsync(directory.get());
  return true;
}

}  // namespace

bool WriteRecordFile(const std::string& dir, const Record& record,
                     std::string* path, std::string* why) {
  // The key names a folder: only what MachineKey() can have made.
  if (record.machine_key.empty() || record.machine_key[0] == '.' ||
      record.machine_key.find('/') != std::string::npos) {
    *why = "\"" + record.machine_key + "\" is not a machine key";
    return false;
  }
  const std::string folder = dir + "/" + record.machine_key;
  *path = folder + "/record.json";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    *why = "cannot create " + folder + ": " + error.message();
    return false;
  }
  // A file of its own, because the record's is replaced while it is held.
  const std::string lock_path = *path + ".lock";
  const FileHandle lock(
      open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.ok()) return Failed("cannot create " + lock_path, why);
  // Some network file systems have no locks. The rename is atomic all the same;
  // what two writers could then lose is each other's entries.
  while (flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  Record older;
  std::string ignored;
  const bool merges = ReadRecordFile(*path, &older, &ignored) &&
                      older.machine_key == record.machine_key &&
                      older.kernel_abi == record.kernel_abi;
  const std::string text = ToJson(merges ? Merge(older, record) : record);
  Record check;
  if (!FromJson(text, &check, why)) {
    *why = "the record cannot be read back: " + *why;
    return false;
  }
  return Replace(folder, *path, text, why);
}

}  // namespace heed
