#include "runtime/record.h"

namespace heed {

const char* DecisionName(Decision decision) {
  switch (decision) {
    case Decision::kAdopted:
      return "adopted";
    case Decision::kKeptDefault:
      return "kept_default";
    case Decision::kQuarantined:
      return "quarantined";
  }
  return "unknown";
}

const RecordRun* FindRun(const Record& record, const std::string& id) {
  for (const RecordRun& run : record.runs) {
    if (run.id == id) return &run;
  }
  return nullptr;
}

}  // namespace heed
