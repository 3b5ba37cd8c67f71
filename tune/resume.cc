#include "tune/resume.h"

#include <algorithm>
#include <vector>

#include "runtime/record_text.h"

namespace heed {
namespace {

// What two runs must have in common for one to go on with the other.
JournalLine Terms(const TuneOptions& options, const std::string& machine_key) {
  return {{"machine", machine_key},       {"kernel_abi", kKernelAbi},
          {"threads", options.threads},   {"effort", options.effort.name},
          {"min_gain", options.min_gain}, {"seed", options.seed}};
}

bool Is(const JournalLine& line, const char* kind) {
  const auto found = line.find("kind");
  return found != line.end() && found->is_string() && *found == kind;
}

Resumed Replay(const std::string& path, const JournalText& text) {
  Resumed resumed;
  resumed.path = path;
  resumed.damaged = text.damaged;
  for (const JournalLine& line : text.lines) {
    if (Is(line, "class") && line.contains("class") &&
        line["class"].is_number_unsigned()) {
      resumed.classes =
          std::max(resumed.classes, line["class"].get<size_t>() + 1);
    }
    if (!Is(line, "entry") || !line.contains("entry")) continue;
    RecordEntry entry;
    std::string note, why;
    if (EntryFromJson(line["entry"], "entry", &entry, &note, &why) &&
        note.empty()) {
      // A class that had more rounds has ended twice.
      const auto same =
          std::find_if(resumed.entries.begin(), resumed.entries.end(),
                       [&entry](const RecordEntry& e) {
                         return e.shape_class == entry.shape_class;
                       });
      if (same == resumed.entries.end()) {
        resumed.entries.push_back(entry);
      } else {
        *same = entry;
      }
    }
  }
  return resumed;
}

}  // namespace

JournalLine RunLine(const TuneOptions& options, const std::string& machine_key,
                    const RecordRun& run) {
  return {{"kind", "run"},          {"id", run.id},
          {"started", run.started}, {"tool", run.tool},
          {"git", run.git},         {"terms", Terms(options, machine_key)}};
}

JournalLine EndLine(bool interrupted) {
  return {{"kind", "end"}, {"interrupted", interrupted}};
}

Resumed FindUnfinished(const std::string& folder, const TuneOptions& options,
                       const std::string& machine_key) {
  std::vector<std::string> paths = JournalsIn(folder);
  std::reverse(paths.begin(), paths.end());
  const JournalLine wanted = Terms(options, machine_key);
  for (const std::string& path : paths) {
    JournalText text;
    std::string why;
    if (!ReadJournal(path, &text, &why) || text.lines.empty()) continue;
    const JournalLine& head = text.lines.front();
    if (!Is(head, "run") || !head.contains("terms") ||
        head["terms"] != wanted || !head.contains("id") ||
        !head["id"].is_string()) {
      continue;
    }
    // The newest that agrees decides: if it has ended well, nothing is left.
    const JournalLine& last = text.lines.back();
    if (Is(last, "end") && last.value("interrupted", false) == false) return {};
    Resumed resumed = Replay(path, text);
    resumed.run_id = head["id"].get<std::string>();
    return resumed;
  }
  return {};
}

std::vector<NamedProblem> NotYetDone(const std::vector<NamedProblem>& shapes,
                                     const std::vector<RecordEntry>& entries,
                                     int threads) {
  std::vector<NamedProblem> rest;
  for (const NamedProblem& shape : shapes) {
    const ShapeClass wanted = ClassOf(shape.problem, threads);
    const bool done = std::any_of(
        entries.begin(), entries.end(),
        [&wanted](const RecordEntry& e) { return e.shape_class == wanted; });
    if (!done) rest.push_back(shape);
  }
  return rest;
}

}  // namespace heed
