// Writing records: readers see the old file or the new one, never a part, and
// two writers lose nothing of each other's.
#ifndef HEED_TUNE_PUBLISH_H_
#define HEED_TUNE_PUBLISH_H_

#include <functional>
#include <string>

#include "runtime/record.h"

namespace heed {

// Points at which a writer may die; tests die there.
enum class PublishStage { kLocked, kMidWrite, kAfterTemporary, kBeforeRename };

struct PublishOptions {
  bool force = false;  // newer entries always replace older ones
  std::function<void(PublishStage)> reached;  // may be empty
  // Called where the file system has no locks: the file is whole all the same,
  // but of two writers at once one may lose its entries. May be empty.
  std::function<void()> no_locks;
};

// Merges `record` into <dir>/<record.machine_key>/record.json (MergeRecords()).
// The previous file, if it was good, is kept as record.json.bak. On success
// *path names the file; else *why says what failed, in one line, and the file
// is as it was.
bool WriteRecordFile(const std::string& dir, const Record& record,
                     std::string* path, std::string* why,
                     const PublishOptions& options = {});

// Replaces the record at `path` by this one, without merging.
bool ReplaceRecordFile(const std::string& path, const Record& record,
                       std::string* why, const PublishOptions& options = {});

// The file that WriteRecordFile() writes.
std::string RecordPath(const std::string& dir, const std::string& machine_key);

}  // namespace heed

#endif  // HEED_TUNE_PUBLISH_H_
