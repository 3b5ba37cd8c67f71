#include "runtime/record_files.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/file_handle.h"

namespace heed {
namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;
// Machine folders looked at per source: more is not a folder of records.
constexpr size_t kMaxFolders = 4096;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

bool IsAbsolute(const std::string& path) {
  return !path.empty() && path[0] == '/';
}

std::vector<std::string> FolderNames(const std::string& dir) {
  std::vector<std::string> names;
  DIR* handle = opendir(dir.c_str());
  if (handle == nullptr) return names;
  while (const dirent* item = readdir(handle)) {
    const std::string name = item->d_name;
    if (name != "." && name != ".." && names.size() < kMaxFolders) {
      names.push_back(name);
    }
  }
  closedir(handle);
  // The order of readdir() is the file system's; ours must not be.
  std::sort(names.begin(), names.end());
  return names;
}

bool SameCore(const Machine& a, const Machine& b) {
  return a.vendor == b.vendor && a.family == b.family && a.model == b.model &&
         !a.targets.empty() && !b.targets.empty() &&
         a.targets[0] == b.targets[0] && a.l1d.bytes == b.l1d.bytes &&
         a.l2.bytes == b.l2.bytes;
}

void AddMiss(const std::string& line, RecordSet* set) {
  if (!set->misses.empty()) set->misses += "; ";
  set->misses += line;
}

// Reads one file and keeps it if it is of use on this machine, whose key is
// `key`. A file that the user `named` is worth a word when it is not; of those
// found in a folder, missing ones and other machines' are passed over.
void Consider(const std::string& path, const std::string& key,
              const Machine& machine, bool named, RecordSet* set) {
  struct stat info;
  if (!named && stat(path.c_str(), &info) != 0 &&
      (errno == ENOENT || errno == ENOTDIR)) {
    return;
  }
  FoundRecord found;
  found.path = path;
  std::string why;
  if (!ReadRecordFile(path, &found.record, &why)) {
    return AddMiss("ignored " + path + ": " + why, set);
  }
  if (found.record.kernel_abi != kKernelAbi) {
    return AddMiss("ignored " + path + ": measured with kernel ABI " +
                       std::to_string(found.record.kernel_abi) +
                       ", the library has " + std::to_string(kKernelAbi),
                   set);
  }
  found.same_machine = found.record.machine_key == key;
  if (!found.same_machine && !SameCore(found.record.machine, machine)) {
    if (named) {
      AddMiss("ignored " + path + ": written for " + found.record.machine_key +
                  ", this machine is " + key,
              set);
    }
    return;
  }
  set->records.push_back(std::move(found));
}

// The folder of the file that this code was loaded from; "" if unknown.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&LoadRecords), &info) == 0 ||
      info.dli_fname == nullptr || !IsAbsolute(info.dli_fname)) {
    return "";
  }
  const std::string file = info.dli_fname;
  return file.substr(0, file.rfind('/'));
}

}  // namespace

RecordSources SourcesFromEnvironment() {
  RecordSources sources;
  sources.off = Variable("HEED_TUNE") == "off";
  sources.file = Variable("HEED_TUNE_FILE");
  if (const char* list = std::getenv("HEED_TUNE_PATH")) {
    std::string rest = list;
    while (!rest.empty()) {
      const size_t colon = std::min(rest.find(':'), rest.size());
      // An empty item would mean the current directory, which may belong to
      // somebody else.
      if (colon != 0) sources.dirs.push_back(rest.substr(0, colon));
      rest.erase(0, colon + 1);
    }
    return sources;
  }
  const std::string config = Variable("XDG_CONFIG_HOME");
  const std::string home = Variable("HOME");
  if (IsAbsolute(config)) {
    sources.dirs.push_back(config + "/heed/tuning");
  } else if (IsAbsolute(home)) {
    sources.dirs.push_back(home + "/.config/heed/tuning");
  }
  sources.dirs.push_back("/etc/heed/tuning");
#ifdef HEED_RECORDS_DIR
  sources.dirs.push_back(HEED_RECORDS_DIR);
#endif
#ifdef HEED_RECORDS_BESIDE
  // Moved since its installation, or never installed where it was to be.
  struct stat info;
  const std::string folder = OwnFolder();
  if (!folder.empty() && stat(sources.dirs.back().c_str(), &info) != 0) {
    sources.dirs.push_back(folder + "/" + HEED_RECORDS_BESIDE);
  }
#endif
  return sources;
}

bool ReadRecordFile(const std::string& path, Record* record, std::string* why) {
  // O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever.
  const FileHandle file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.ok()) {
    *why = std::strerror(errno);
    return false;
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    *why = "not a regular file";
    return false;
  }
  // One byte more than is allowed shows a file that is too large.
  std::string text(std::min(static_cast<size_t>(info.st_size), kMaxBytes) + 1,
                   '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), &text[size], text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      *why = std::strerror(errno);
      return false;
    }
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return FromJson(text, record, why);
}

RecordSet LoadRecords(const RecordSources& sources, const Machine& machine) {
  RecordSet set;
  const std::string key = MachineKey(machine);
  if (sources.off) {
    set.misses = "HEED_TUNE=off";
    return set;
  }
  if (!sources.file.empty()) {
    Consider(sources.file, key, machine, /*named=*/true, &set);
    return set;
  }
  for (const std::string& dir : sources.dirs) {
    for (const std::string& name : FolderNames(dir)) {
      Consider(dir + "/" + name + "/record.json", key, machine,
               /*named=*/false, &set);
    }
  }
  std::stable_sort(set.records.begin(), set.records.end(),
                   [](const FoundRecord& a, const FoundRecord& b) {
                     return a.same_machine && !b.same_machine;
                   });
  if (set.records.empty()) {
    std::string looked;
    for (const std::string& dir : sources.dirs) looked += " " + dir;
    AddMiss("no tuning record for " + key + " in" +
                (looked.empty() ? " any folder" : looked),
            &set);
  }
  return set;
}

const RecordSet& ProcessRecords() {
  static const RecordSet set =
      LoadRecords(SourcesFromEnvironment(), ThisMachine());
  return set;
}

}  // namespace heed
