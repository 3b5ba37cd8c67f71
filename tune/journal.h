// The journal of a run: one JSON line per event, each with its checksum, so
// that a run that was killed can go on, and so that a report can be drawn of
// every round later.
#ifndef HEED_TUNE_JOURNAL_H_
#define HEED_TUNE_JOURNAL_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/file_handle.h"

namespace heed {

using JournalLine = nlohmann::ordered_json;

// Appends lines {"crc32":"0a1b2c3d","line":{...}}; the sum is of the inner
// object's text as it stands there.
class Journal {
 public:
  // Opens or creates the file. Null and one line of reason on failure.
  static std::unique_ptr<Journal> Open(const std::string& path,
                                       std::string* why);

  // False, once and for all, if the disk is full: the run goes on without.
  bool Write(const JournalLine& line);
  // Puts it on disk. Called by itself every two seconds.
  void Flush();

  const std::string& path() const { return path_; }

 private:
  Journal(std::string path, int descriptor)
      : path_(std::move(path)), file_(descriptor) {}

  std::string path_;
  FileHandle file_;
  double flushed_ = 0;
  bool failed_ = false;
};

struct JournalText {
  std::vector<JournalLine> lines;
  size_t damaged = 0;  // lines that are cut or whose sum is wrong: left out
};

// Reads what is good of a journal of at most 256 MiB. False and one line of
// reason if it cannot be opened at all.
bool ReadJournal(const std::string& path, JournalText* text, std::string* why);

// The text of one line, newline included, and its reverse.
std::string SealLine(const JournalLine& line);
bool OpenLine(const std::string& sealed, JournalLine* line);

// Paths of the journals in a folder, oldest first by name.
std::vector<std::string> JournalsIn(const std::string& folder);

}  // namespace heed

#endif  // HEED_TUNE_JOURNAL_H_
