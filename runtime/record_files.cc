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

#include "kernels/kernels.h"
#include "runtime/file_handle.h"
#include "runtime/targets.h"
#include "runtime/tile_text.h"

namespace heed {
namespace {

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

std::string KeyOf(const Record& record) {
  return record.machine_key.substr(0, 120);
}

// What to do about entries that were skipped: of this machine's own record they
// can be measured again one for one.
std::string Retune(Tier tier) {
  return tier == Tier::kExact ? ". Re-tune with: heed tune run --stale"
                              : ". Re-tune with: heed tune";
}

// A record that is to be kept, with what has to be said about it.
void Keep(FoundRecord found, const std::string& key, RecordSet* set) {
  const std::string written = found.path + " was written for " +
                              KeyOf(found.record) + ", this machine is " + key +
                              ": ";
  if (found.tier == Tier::kUarch) {
    set->notes.push_back(written +
                         "the same core, so its tiles are used, shared out "
                         "anew among threads. To tune this machine: heed tune");
  } else if (found.tier == Tier::kIsa) {
    set->notes.push_back(written +
                         "another core, so only its choice of SIMD target is "
                         "used. To tune this machine: heed tune");
  }
  for (const std::string& note : found.record.notes) {
    set->notes.push_back(found.path + ": " + note + Retune(found.tier));
  }
  set->records.push_back(std::move(found));
}

// Reads one file and keeps it if it is of use on this machine, whose key is
// `key`. A file that the user `named` is worth a word when it is not; of those
// found in a folder, missing ones and other machines' are passed over.
void Consider(const std::string& path, const std::string& key,
              const Machine& machine, bool named, RecordSet* set) {
  struct stat info;
  if (!named && stat(path.c_str(), &info) != 0 &&
      (errno == ENOENT || errno == ENOTDIR)) {
    // A link that leads nowhere was meant to lead somewhere.
    if (lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return;
  }
  FoundRecord found;
  found.path = path;
  std::string why;
  if (!ReadRecordFile(path, &found.record, &why)) {
    set->seen.push_back({path, ""});
    set->notes.push_back("ignored " + path + ": " + why +
                         " (keeping the analytical default). Restore " + path +
                         ".bak or run: heed tune doctor");
    return;
  }
  set->seen.push_back({path, KeyOf(found.record)});
  found.tier = TierBetween(found.record, machine);
  if (found.tier == Tier::kAnalytical) {
    if (named) {
      set->notes.push_back("ignored " + path + ": written for " +
                           KeyOf(found.record) + " (this machine: " + key +
                           "). To tune this machine: heed tune");
    }
    return;
  }
  if (found.record.kernel_abi != kKernelAbi) {
    set->notes.push_back(
        path + ": " + std::to_string(found.record.entries.size()) + " of " +
        std::to_string(found.record.entries.size()) +
        " entries skipped: kernel_abi " +
        std::to_string(found.record.kernel_abi) + ", library has " +
        std::to_string(kKernelAbi) + Retune(found.tier));
    return;
  }
  Keep(std::move(found), key, set);
}

// Of a target's name: it runs here, and gives the bits that the best one gives.
class UsableTargets {
 public:
  UsableTargets() {
    for (const int64_t target : RunnableTargets()) {
      const Kernels kernels = GetKernels(target, DType::kF32);
      if (names_.empty()) fused_ = kernels.fused;
      if (kernels.fused == fused_) names_.push_back(kernels.target);
    }
  }
  bool operator()(const std::string& name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }

 private:
  bool fused_ = true;
  std::vector<std::string> names_;
};

void BuildIndex(RecordSet* set) {
  std::stable_sort(set->records.begin(), set->records.end(),
                   [](const FoundRecord& a, const FoundRecord& b) {
                     return a.tier < b.tier;
                   });
  const UsableTargets usable;
  for (const FoundRecord& found : set->records) {
    const size_t unusable = set->index.Add(found, usable);
    if (unusable == 0) continue;
    set->notes.push_back(
        found.path + ": " + std::to_string(unusable) + " of " +
        std::to_string(found.record.entries.size()) +
        " entries skipped: their SIMD targets do not run here, or lack fused "
        "multiply-add" +
        Retune(found.tier));
  }
}

// What is to be said where no record was of use.
std::string NoRecord(const RecordSources& sources, const std::string& key,
                     const std::vector<SeenRecord>& seen) {
  std::string looked;
  for (const std::string& dir : sources.dirs) {
    looked += (looked.empty() ? "" : ", ") + dir;
  }
  std::string others;
  for (const SeenRecord& record : seen) {
    if (record.machine_key.empty()) continue;
    others = "; the record for " + record.machine_key + " there is of no use";
    break;
  }
  return "no tuning record for " + key +
         " (looked in: " + (looked.empty() ? "no folder" : looked) + others +
         "); using the analytical default. To tune: heed tune --budget 5m";
}

void ParsePin(const std::string& pin, RecordSet* set) {
  std::string why;
  set->pinned = ParseTileOption(pin, &set->pin, &why);
  if (!set->pinned) {
    set->pin_error = "HEED_TUNE=pin:" + pin.substr(0, 80) + ": " + why;
  }
}

#ifdef HEED_RECORDS_BESIDE
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
#endif

}  // namespace

Tier TierBetween(const Record& a, const Machine& b) {
  if (a.machine_key == MachineKey(b)) return Tier::kExact;
  if (SameCore(a.machine, b)) return Tier::kUarch;
  const bool same_isa = !a.machine.targets.empty() && !b.targets.empty() &&
                        a.machine.targets[0] == b.targets[0];
  return same_isa ? Tier::kIsa : Tier::kAnalytical;
}

std::string UserRecordsDir() {
  const std::string config = Variable("XDG_CONFIG_HOME");
  const std::string home = Variable("HOME");
  if (IsAbsolute(config)) return config + "/heed/tuning";
  return IsAbsolute(home) ? home + "/.config/heed/tuning" : "";
}

RecordSources SourcesFromEnvironment() {
  RecordSources sources;
  const std::string tune = Variable("HEED_TUNE");
  sources.off = tune == "off";
  if (tune.rfind("pin:", 0) == 0) sources.pin = tune.substr(4);
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
  const std::string user = UserRecordsDir();
  if (!user.empty()) sources.dirs.push_back(user);
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
  std::string text(
      std::min(static_cast<size_t>(info.st_size), kMaxRecordBytes) + 1, '\0');
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
  if (!sources.pin.empty()) ParsePin(sources.pin, &set);
  if (sources.off || !sources.pin.empty()) {
    set.off = sources.off;
    return set;
  }
  if (!sources.file.empty()) {
    Consider(sources.file, key, machine, /*named=*/true, &set);
  } else {
    for (const std::string& dir : sources.dirs) {
      for (const std::string& name : FolderNames(dir)) {
        Consider(dir + "/" + name + "/record.json", key, machine,
                 /*named=*/false, &set);
      }
    }
    if (set.records.empty()) {
      set.notes.push_back(NoRecord(sources, key, set.seen));
    }
  }
  BuildIndex(&set);
  return set;
}

const RecordSet& ProcessRecords() {
  static const RecordSet set = [] {
    RecordSet loaded = LoadRecords(SourcesFromEnvironment(), ThisMachine());
    if (Variable("HEED_TUNE_VERBOSE") == "1") {
      for (const std::string& note : loaded.notes) {
        std::fprintf(stderr, "heed: %s\n", note.c_str());
      }
    }
    return loaded;
  }();
  return set;
}

}  // namespace heed
