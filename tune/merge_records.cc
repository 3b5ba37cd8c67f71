#include "tune/merge_records.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace heed {
namespace {

constexpr int64_t kDaySeconds = 24 * 60 * 60;

void KeepNamedRuns(const Record& source, Record* record) {
  for (const RecordRun& run : source.runs) {
    const auto names = [&run](const auto& entry) {
      return entry.run == run.id;
    };
    const bool named =
        std::any_of(record->entries.begin(), record->entries.end(), names) ||
        std::any_of(record->skipped.begin(), record->skipped.end(), names);
    if (named && FindRun(*record, run.id) == nullptr) {
      record->runs.push_back(run);
    }
  }
}

// What both have skipped, of classes that no entry is of.
void KeepSkipped(const Record& older, Record* merged) {
  const auto known = [merged](const ShapeClass& wanted, size_t skipped) {
    const auto same = [&wanted](const auto& other) {
      return other.shape_class == wanted;
    };
    const auto end =
        merged->skipped.begin() + static_cast<std::ptrdiff_t>(skipped);
    return std::any_of(merged->entries.begin(), merged->entries.end(), same) ||
           std::any_of(merged->skipped.begin(), end, same);
  };
  std::vector<SkippedEntry>& all = merged->skipped;
  all.insert(all.end(), older.skipped.begin(), older.skipped.end());
  for (size_t i = 0; i < all.size();) {
    if (known(all[i].shape_class, i)) {
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

// The active record with the other set aside.
Record Retire(const Record& active, const Record& other) {
  Record record = active;
  Record aside = other;
  aside.retired.clear();
  record.retired = ToJson(aside);
  // Better without it than too large to be read.
  if (ToJson(record).size() > kMaxRecordBytes) record.retired.clear();
  return record;
}

}  // namespace

int64_t ParseUtc(const std::string& text) {
  std::tm utc = {};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  if (end == nullptr || *end != 0) return -1;
  return static_cast<int64_t>(timegm(&utc));
}

std::string FormatUtc(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm utc = {};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string UtcNow() {
  return FormatUtc(static_cast<int64_t>(std::time(nullptr)));
}

bool Replaces(const RecordEntry& newer, const RecordEntry& older, bool force) {
  // What was found to be worse than the default is no rival.
  if (force || newer.decision == Decision::kQuarantined ||
      older.decision == Decision::kQuarantined) {
    return true;
  }
  const int64_t new_time = ParseUtc(newer.confirmed);
  const int64_t old_time = ParseUtc(older.confirmed);
  const bool close = new_time >= 0 && old_time >= 0 &&
                     std::llabs(new_time - old_time) < kDaySeconds;
  return !(close && older.gain.low > newer.gain.low);
}

Record MergeRecords(const Record& older, const Record& newer, bool force) {
  if (newer.kernel_abi > older.kernel_abi) return Retire(newer, older);
  if (newer.kernel_abi < older.kernel_abi) return Retire(older, newer);
  Record merged = newer;
  merged.entries.clear();
  merged.runs.clear();
  if (merged.retired.empty()) merged.retired = older.retired;
  const auto find = [](const Record& record, const ShapeClass& wanted) {
    return std::find_if(
        record.entries.begin(), record.entries.end(),
        [&wanted](const RecordEntry& e) { return e.shape_class == wanted; });
  };
  for (const RecordEntry& entry : newer.entries) {
    const auto old = find(older, entry.shape_class);
    const bool replaces =
        old == older.entries.end() || Replaces(entry, *old, force);
    merged.entries.push_back(replaces ? entry : *old);
  }
  for (const RecordEntry& entry : older.entries) {
    if (find(newer, entry.shape_class) == newer.entries.end()) {
      merged.entries.push_back(entry);
    }
  }
  KeepSkipped(older, &merged);
  // Of a run that published before, what it says now.
  KeepNamedRuns(newer, &merged);
  KeepNamedRuns(older, &merged);
  return merged;
}

}  // namespace heed
