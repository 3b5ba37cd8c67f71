// How the subcommands of `heed tune` find the record they are about.
#ifndef HEED_TUNE_RECORD_OPTION_H_
#define HEED_TUNE_RECORD_OPTION_H_

#include <string>

#include "runtime/record.h"

namespace heed {

// The path itself; of a folder, <folder>/<this machine's key>/record.json or
// <folder>/record.json; of nothing, that of results/tuning.
std::string FindRecordPath(const std::string& given);

// Reads it. kDone, or prints why not and returns 65.
int ReadRecordOrFail(const std::string& command, const std::string& path,
                     Record* record);

}  // namespace heed

#endif  // HEED_TUNE_RECORD_OPTION_H_
