// `heed tune install` and `doctor`: getting records to where the library looks,
// and finding out why it does not use them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/record_files.h"
#include "tune/commands.h"
#include "tune/journal.h"
#include "tune/publish.h"
#include "tune/record_option.h"
#include "tune/stale_entries.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

struct InstallOptions {
  std::string from, to;
  std::string output = "results/tuning";
  bool fix = false;
};

int Install(const InstallOptions& options) {
  const std::string source = FindRecordPath(options.from);
  Record record;
  const int code = ReadRecordOrFail("tune install", source, &record);
  if (code != kDone) return code;
  const std::string dir = options.to.empty() ? UserRecordsDir() : options.to;
  if (dir.empty()) {
    return FailCommand("tune install",
                       "neither XDG_CONFIG_HOME nor HOME is an absolute path; "
                       "say --to DIR",
                       kCannotWrite);
  }
  std::string path, why;
  if (!WriteRecordFile(dir, record, &path, &why, TellNoLocks("tune install"))) {
    return FailCommand("tune install", why + ". Use --to DIR", kCannotWrite);
  }
  fmt::print("installed {} entries of {} as {}\n", record.entries.size(),
             source, path);
  if (TierBetween(record, ThisMachine()) != Tier::kExact) {
    fmt::print(
        "note: it was written for {}, this machine is {}. To tune this "
        "machine: heed tune\n",
        record.machine_key, MachineKey(ThisMachine()));
  }
  return kDone;
}

// One folder of a record, file by file.
class Doctor {
 public:
  explicit Doctor(bool fix) : fix_(fix) {}

  void Folder(const fs::path& folder) {
    std::error_code error;
    for (const auto& item : fs::directory_iterator(folder, error)) {
      const std::string name = item.path().filename().string();
      if (name.rfind("record.json.tmp.", 0) == 0 ||
          name.rfind("record.json.bak.", 0) == 0) {
        Leftover(item.path());
      } else if (name.rfind("journal-", 0) == 0) {
        JournalFile(item.path().string());
      }
    }
    const fs::path path = folder / "record.json";
    const fs::file_status status = fs::symlink_status(path, error);
    if (!fs::exists(status)) {
      Say(fmt::format("{}: no record", folder.string()));
      return;
    }
    Record record;
    std::string why;
    if (ReadRecordFile(path.string(), &record, &why)) {
      Healthy(path.string(), record);
    } else {
      Damaged(path, why);
    }
  }

  int code() const { return damaged_ ? kBadData : kDone; }

 private:
  void Say(const std::string& line) { fmt::print("{}\n", line); }

  void Healthy(const std::string& path, const Record& record) {
    const Tier tier = TierBetween(record, ThisMachine());
    const size_t stale =
        tier == Tier::kExact ? StaleEntries(record, ThisMachine()).size() : 0;
    Say(fmt::format("{}: good, {} entries for {} ({})", path,
                    record.entries.size(), record.machine_key,
                    record.kernel_abi != kKernelAbi
                        ? fmt::format("kernel_abi {}, library has {}: not used",
                                      record.kernel_abi, kKernelAbi)
                    : tier == Tier::kAnalytical
                        ? "another machine: not used here"
                        : fmt::format("used here as {}", TierName(tier))));
    for (const std::string& note : record.notes) Say("  " + note);
    if (stale != 0) {
      Say(
          fmt::format("  {} {} of no use to this library. Re-tune with: heed "
                      "tune run --stale",
                      stale, stale == 1 ? "entry is" : "entries are"));
    }
  }

  void Damaged(const fs::path& path, const std::string& why) {
    Say(fmt::format("{}: {}", path.string(), why));
    const std::string backup = path.string() + ".bak";
    Record record;
    std::string reason;
    if (!ReadRecordFile(backup, &record, &reason)) {
      damaged_ = true;
      Say("  no good " + backup +
          " either; move the file away and re-tune: "
          "heed tune");
      return;
    }
    if (!fix_) {
      damaged_ = true;
      Say(
          fmt::format("  {} is good, {} entries: heed tune doctor --fix "
                      "restores it",
                      backup, record.entries.size()));
      return;
    }
    std::error_code error;
    fs::rename(path, path.string() + ".damaged", error);
    if (error || !ReplaceRecordFile(path.string(), record, &reason,
                                    TellNoLocks("tune doctor"))) {
      damaged_ = true;
      Say("  cannot restore it: " + (error ? error.message() : reason));
      return;
    }
    Say(
        fmt::format("  restored {} entries of {}; the damaged file is now {}"
                    ".damaged",
                    record.entries.size(), backup, path.string()));
  }

  void Leftover(const fs::path& path) {
    std::error_code error;
    if (fix_) fs::remove(path, error);
    Say(fmt::format("{}: left by a writer that was killed{}", path.string(),
                    fix_ && !error ? ", removed" : ""));
  }

  void JournalFile(const std::string& path) {
    JournalText text;
    std::string why;
    if (!ReadJournal(path, &text, &why)) {
      Say(why);
    } else {
      Say(fmt::format("{}: {} lines, {} damaged", path, text.lines.size(),
                      text.damaged));
    }
  }

  bool fix_;
  bool damaged_ = false;
};

int RunDoctor(const InstallOptions& options) {
  const RecordSources sources = SourcesFromEnvironment();
  fmt::print("this machine is {}\n", MachineKey(ThisMachine()));
  std::vector<std::string> dirs = sources.dirs;
  if (!sources.file.empty()) {
    fmt::print("HEED_TUNE_FILE: only {} is read\n", sources.file);
  }
  if (sources.off) fmt::print("HEED_TUNE=off: no record is read\n");
  // What the tuner writes, whether the library looks there or not.
  dirs.push_back(options.output);
  Doctor doctor(options.fix);
  for (const std::string& dir : dirs) {
    std::error_code error;
    if (!fs::is_directory(dir, error)) {
      fmt::print("{}: no such folder\n", dir);
      continue;
    }
    for (const auto& item : fs::directory_iterator(dir, error)) {
      if (item.is_directory(error)) doctor.Folder(item.path());
    }
  }
  fmt::print("the library says:\n");
  const RecordSet set = LoadRecords(sources, ThisMachine());
  for (const FoundRecord& found : set.records) {
    fmt::print("  uses {} as {}\n", found.path, TierName(found.tier));
  }
  for (const std::string& note : set.notes) fmt::print("  {}\n", note);
  if (!set.pin_error.empty()) fmt::print("  {}\n", set.pin_error);
  return doctor.code();
}

}  // namespace

void AddTuneInstallCommands(CLI::App* tune, Action* action) {
  const auto options = std::make_shared<InstallOptions>();
  CLI::App* install = tune->add_subcommand(
      "install",
      "Merge a record into the one where the library looks for this user's");
  install
      ->add_option("--from", options->from,
                   "File or folder (default: results/tuning)")
      ->type_name("PATH");
  install
      ->add_option("--to", options->to,
                   "Folder (default: heed/tuning in the user's configuration "
                   "folder)")
      ->type_name("DIR");
  install->callback(
      [options, action] { *action = [options] { return Install(*options); }; });

  CLI::App* doctor = tune->add_subcommand(
      "doctor",
      "Look at every record the library may read: which is used, which is not, "
      "and why. Exit code 65 if one is damaged");
  doctor->add_option("--output", options->output, "The tuner's own folder")
      ->type_name("DIR")
      ->capture_default_str();
  doctor->add_flag("--fix", options->fix,
                   "Restore damaged records from their backups, remove what "
                   "killed writers left");
  doctor->callback([options, action] {
    *action = [options] { return RunDoctor(*options); };
  });
}

}  // namespace heed
