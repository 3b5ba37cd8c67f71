// Two records of one machine, and what both know. Pure.
#ifndef HEED_TUNE_MERGE_RECORDS_H_
#define HEED_TUNE_MERGE_RECORDS_H_

#include <cstdint>
#include <string>

#include "runtime/record.h"

namespace heed {

// Seconds since 1970 of "2026-01-02T03:04:05Z"; -1 if it is none.
int64_t ParseUtc(const std::string& text);
std::string FormatUtc(int64_t seconds);
std::string UtcNow();

// Of one class: `newer` replaces `older`, unless the older one's interval
// begins higher and both were confirmed within 24 hours of each other, when the
// difference is more likely to be noise than age. `force` always replaces.
bool Replaces(const RecordEntry& newer, const RecordEntry& older, bool force);

// All classes of both, each by Replaces(). Of two kernel ABIs only the newer
// one's entries stay in use; the other record is kept as `retired`, one of them
// at most. Presumes the same machine key. Runs that no entry names are dropped,
// and skipped entries of classes that now have one.
Record MergeRecords(const Record& older, const Record& newer, bool force);

}  // namespace heed

#endif  // HEED_TUNE_MERGE_RECORDS_H_
