#include "tune/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/record_files.h"
#include "tune/journal.h"
#include "tune/statistics.h"

namespace heed {
namespace {

std::string TextOf(const JournalLine& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_string() ? found->get<std::string>()
                                                   : std::string();
}

double NumberOf(const JournalLine& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : 0;
}

size_t IndexOf(const JournalLine& line, const char* name) {
  const double number = NumberOf(line, name);
  return number >= 0 && number < 1e6 ? static_cast<size_t>(number) : 0;
}

// Arrays of numbers; what is none of that is empty.
std::vector<double> NumbersOf(const JournalLine& line, const char* name) {
  std::vector<double> numbers;
  const auto found = line.find(name);
  if (found == line.end() || !found->is_array()) return numbers;
  for (const JournalLine& number : *found) {
    if (!number.is_number()) return {};
    numbers.push_back(number.get<double>());
  }
  return numbers;
}

// False if the line makes no sense.
bool RoundOf(const JournalLine& line, ReportRound* round) {
  round->phase = TextOf(line, "phase");
  round->time = NumberOf(line, "t");
  round->discarded = TextOf(line, "discarded");
  round->ns = NumbersOf(line, "ns");
  for (const double number : NumbersOf(line, "order")) {
    if (!(number >= 0 && number < 1e6)) return false;
    round->order.push_back(static_cast<size_t>(number));
  }
  for (const double canary : NumbersOf(line, "canary_ps")) {
    round->canary = std::max(round->canary, canary);
  }
  return !round->order.empty() && round->order.size() == round->ns.size();
}

ReportClass ClassOfLine(const JournalLine& line) {
  ReportClass result;
  result.key = TextOf(line, "key");
  result.name = TextOf(line, "name");
  result.problem = TextOf(line, "problem");
  const auto candidates = line.find("candidates");
  if (candidates == line.end() || !candidates->is_array()) return result;
  for (const JournalLine& candidate : *candidates) {
    if (!candidate.is_object()) continue;
    ReportCandidate c;
    c.name = TextOf(candidate, "name");
    c.row_block = IndexOf(candidate, "row_block");
    c.key_tile = IndexOf(candidate, "key_tile");
    result.candidates.push_back(c);
  }
  return result;
}

// Reads one journal into classes by key; what a later run says of a class takes
// the place of what an earlier one said.
class Reader {
 public:
  explicit Reader(ReportData* data) : data_(data) {}

  void Read(const JournalText& text) {
    data_->damaged_lines += text.damaged;
    numbers_.clear();
    for (const JournalLine& line : text.lines) {
      const std::string kind = TextOf(line, "kind");
      if (kind == "class") {
        ReportClass c = ClassOfLine(line);
        numbers_[IndexOf(line, "class")] = c.key;
        classes_[c.key] = c;
      } else if (kind == "round") {
        AddRound(line);
      } else if (kind == "skipped") {
        const auto number = numbers_.find(IndexOf(line, "class"));
        if (number != numbers_.end()) {
          classes_[number->second].skipped = TextOf(line, "why");
        }
      }
    }
  }

  std::map<std::string, ReportClass>& classes() { return classes_; }

 private:
  void AddRound(const JournalLine& line) {
    ReportRound round;
    if (!RoundOf(line, &round)) return;
    if (round.canary > 0 &&
        (data_->best_canary == 0 || round.canary < data_->best_canary)) {
      data_->best_canary = round.canary;
    }
    data_->timeline.push_back(round);
    if (round.phase == "noise") {
      AddNoise(round);
      return;
    }
    const auto number = numbers_.find(IndexOf(line, "class"));
    if (number != numbers_.end()) {
      classes_[number->second].rounds.push_back(round);
    }
  }

  void AddNoise(const ReportRound& round) {
    double of[2] = {0, 0};
    for (size_t i = 0; i < round.order.size(); ++i) {
      if (round.order[i] < 2) of[round.order[i]] = round.ns[i];
    }
    if (round.discarded.empty() && of[0] > 0 && of[1] > 0) {
      data_->aa_ratios.push_back(of[0] / of[1]);
    }
  }

  ReportData* data_;
  std::map<size_t, std::string> numbers_;
  std::map<std::string, ReportClass> classes_;
};

// Medians of what each candidate did in the search.
void FillGains(ReportClass* c) {
  std::vector<std::vector<double>> ratios(c->candidates.size());
  for (const ReportRound& round : c->rounds) {
    if (round.phase != "search" || !round.discarded.empty()) continue;
    double of_default = 0;
    for (size_t i = 0; i < round.order.size(); ++i) {
      if (round.order[i] == 0) of_default = round.ns[i];
    }
    for (size_t i = 0; i < round.order.size(); ++i) {
      if (round.order[i] < ratios.size() && of_default > 0 && round.ns[i] > 0) {
        ratios[round.order[i]].push_back(of_default / round.ns[i]);
      }
    }
  }
  for (size_t i = 0; i < ratios.size(); ++i) {
    c->candidates[i].rounds = ratios[i].size();
    if (!ratios[i].empty()) c->candidates[i].gain = Median(ratios[i]);
  }
}

bool Names(const Record& record, const JournalText& text) {
  if (text.lines.empty()) return false;
  return FindRun(record, TextOf(text.lines.front(), "id")) != nullptr;
}

}  // namespace

double MeanGain(const Record& record) {
  double sum = 0;
  for (const RecordEntry& entry : record.entries) {
    if (entry.decision == Decision::kAdopted && entry.gain.median > 0) {
      sum += std::log(entry.gain.median);
    }
  }
  return record.entries.empty()
             ? 1
             : std::exp(sum / static_cast<double>(record.entries.size()));
}

size_t CountOf(const Record& record, Decision decision) {
  return static_cast<size_t>(std::count_if(
      record.entries.begin(), record.entries.end(),
      [decision](const RecordEntry& e) { return e.decision == decision; }));
}

RecordRun NewestRun(const Record& record) {
  RecordRun newest;
  for (const RecordRun& run : record.runs) {
    if (run.ended >= newest.ended) newest = run;
  }
  return newest;
}

bool LoadReport(const std::string& record_path,
                const std::vector<std::string>& journals, ReportData* data,
                std::string* why) {
  *data = ReportData{};
  data->path = record_path;
  if (!ReadRecordFile(record_path, &data->record, why)) {
    *why = record_path + ": " + *why;
    return false;
  }
  Reader reader(data);
  for (const std::string& path : journals) {
    JournalText text;
    std::string ignored;
    if (ReadJournal(path, &text, &ignored) && Names(data->record, text)) {
      reader.Read(text);
    }
  }
  auto& known = reader.classes();
  for (size_t i = 0; i < data->record.entries.size(); ++i) {
    const RecordEntry& entry = data->record.entries[i];
    const std::string key = heed::ToString(entry.shape_class);
    const auto found = known.find(key);
    ReportClass c;
    if (found != known.end()) {
      c = found->second;
      known.erase(found);
    }
    c.key = key;
    c.problem = entry.problem;
    if (c.name.empty()) c.name = entry.problem;
    c.entry = static_cast<int>(i);
    data->classes.push_back(c);
  }
  for (auto& [key, c] : known) data->classes.push_back(c);
  double first = 0;
  for (ReportRound& round : data->timeline) {
    if (first == 0) first = round.time;
    round.time -= first;
  }
  for (ReportClass& c : data->classes) FillGains(&c);
  return true;
}

std::string CacheText(const Cache& cache) {
  return cache.bytes % (1 << 20) == 0 ? fmt::format("{} MB", cache.bytes >> 20)
                                      : fmt::format("{} KB", cache.bytes >> 10);
}

}  // namespace heed
