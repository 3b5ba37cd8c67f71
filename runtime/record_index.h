// From a class of shapes to the best entry of all records that were read: one
// hash look-up, no allocation, no I/O.
#ifndef HEED_RUNTIME_RECORD_INDEX_H_
#define HEED_RUNTIME_RECORD_INDEX_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/machine.h"
#include "runtime/record.h"
#include "runtime/shape_class.h"

namespace heed {

// How a plan's configuration came about, best first.
enum class Tier {
  kPinned,     // the caller's, or HEED_TUNE=pin:
  kExact,      // measured on this kind of machine
  kUarch,      // on the same core in another machine, or with another number of
               // threads
  kIsa,        // on another core: only which SIMD target was the fastest
  kAnalytical  // the model's
};
const char* TierName(Tier tier);

struct FoundRecord {
  std::string path;
  Tier tier = Tier::kExact;  // what its machine has in common with this one
  Record record;
};

// An entry that may serve a class.
struct Hit {
  const RecordEntry* entry = nullptr;
  const FoundRecord* found = nullptr;
  Tier tier = Tier::kExact;
  int doublings = 0;  // between the entry's lengths and the class's
};

class RecordIndex {
 public:
  // Adds a record's entries; those added first win among equals. `found` must
  // stay where it is. `usable` says of a SIMD target's name that it runs here
  // and gives the same bits. Returns how many entries were not usable.
  template <class Usable>
  size_t Add(const FoundRecord& found, const Usable& usable) {
    size_t unusable = 0;
    for (const RecordEntry& entry : found.record.entries) {
      if (usable(entry.target) && usable(entry.default_target)) {
        AddEntry(found, entry);
      } else {
        ++unusable;
      }
    }
    return unusable;
  }

  // The entry for a class: of the best tier its own, else one whose lengths are
  // within a factor of two of it in all; else one for another number of
  // threads, whose tier is then kUarch at best. Null if there is none.
  const Hit* Find(const ShapeClass& wanted) const;

 private:
  void AddEntry(const FoundRecord& found, const RecordEntry& entry);

  // What serves a class, whatever its threads: for each number of threads and
  // pieces, the entry as it is, and as it serves other threads.
  struct Serving {
    int32_t threads, pieces;
    Hit same, other;
  };
  std::unordered_map<ShapeClass, std::vector<Serving>, ShapeClassHash> table_;
};

}  // namespace heed

#endif  // HEED_RUNTIME_RECORD_INDEX_H_
