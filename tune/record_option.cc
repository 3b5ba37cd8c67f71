#include "tune/record_option.h"

#include <filesystem>
#include <system_error>

#include "runtime/machine.h"
#include "runtime/record_files.h"
#include "tune/commands.h"
#include "tune/publish.h"

namespace heed {

namespace fs = std::filesystem;

std::string FindRecordPath(const std::string& given) {
  const std::string where = given.empty() ? "results/tuning" : given;
  std::error_code error;
  if (!given.empty() && !fs::is_directory(where, error)) return where;
  const std::string own = RecordPath(where, MachineKey(ThisMachine()));
  const std::string flat = where + "/record.json";
  return !fs::exists(own, error) && fs::exists(flat, error) ? flat : own;
}

int ReadRecordOrFail(const std::string& command, const std::string& path,
                     Record* record) {
  std::string why;
  if (ReadRecordFile(path, record, &why)) return kDone;
  return FailCommand(command, path + ": " + why, kBadData);
}

}  // namespace heed
