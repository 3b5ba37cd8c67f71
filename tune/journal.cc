#include "tune/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "tune/peaks.h"

namespace heed {
namespace {

constexpr double kFlushSeconds = 2;
constexpr uintmax_t kMaxJournalBytes = uintmax_t{256} << 20;
constexpr char kHead[] = "{\"crc32\":\"";
constexpr char kMiddle[] = "\",\"line\":";
constexpr size_t kHeadBytes = sizeof kHead - 1;
constexpr size_t kSumBytes = 8;
constexpr size_t kMiddleBytes = sizeof kMiddle - 1;

std::string Sum(const char* text, size_t size) {
  const uLong sum =
      crc32(0, reinterpret_cast<const Bytef*>(text), static_cast<uInt>(size));
  return fmt::format("{:08x}", sum);
}

}  // namespace

std::string SealLine(const JournalLine& line) {
  const std::string text = line.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return kHead + Sum(text.data(), text.size()) + kMiddle + text + "}\n";
}

bool OpenLine(const std::string& sealed, JournalLine* line) {
  const size_t begin = kHeadBytes + kSumBytes + kMiddleBytes;
  if (sealed.size() < begin + 3 || sealed.compare(0, kHeadBytes, kHead) != 0 ||
      sealed.compare(kHeadBytes + kSumBytes, kMiddleBytes, kMiddle) != 0 ||
      sealed.back() != '}') {
    return false;
  }
  const std::string text = sealed.substr(begin, sealed.size() - begin - 1);
  if (sealed.compare(kHeadBytes, kSumBytes, Sum(text.data(), text.size())) !=
      0) {
    return false;
  }
  *line = JournalLine::parse(text, nullptr, /*allow_exceptions=*/false);
  return line->is_object();
}

std::unique_ptr<Journal> Journal::Open(const std::string& path,
                                       std::string* why) {
  const int file =
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) {
    *why = "cannot create " + path + ": " + std::strerror(errno);
    return nullptr;
  }
  // After a torn line the next one must not be taken for its end.
  const off_t size = lseek(file, 0, SEEK_END);
  char last = '\n';
  if (size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n' &&
      write(file, "\n", 1) != 1) {
    *why = "cannot write " + path + ": " + std::strerror(errno);
    close(file);
    return nullptr;
  }
  return std::unique_ptr<Journal>(new Journal(path, file));
}

bool Journal::Write(const JournalLine& line) {
  if (failed_) return false;
  const std::string text = SealLine(line);
  size_t done = 0;
  while (done < text.size() && !failed_) {
    const ssize_t wrote =
        write(file_.get(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      failed_ = true;
    } else {
      done += static_cast<size_t>(wrote);
    }
  }
  const double now = MonotonicSeconds();
  if (!failed_ && now - flushed_ > kFlushSeconds) Flush();
  return !failed_;
}

void Journal::Flush() {
  flushed_ = MonotonicSeconds();
  fdatasync(file_.get());
}

bool ReadJournal(const std::string& path, JournalText* text, std::string* why) {
  *text = JournalText{};
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    *why = path + ": " + std::strerror(errno);
    return false;
  }
  if (!S_ISREG(info.st_mode) ||
      static_cast<uintmax_t>(info.st_size) > kMaxJournalBytes) {
    *why = path + ": expected a regular file of at most 256 MiB";
    return false;
  }
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    JournalLine parsed;
    // A killed run's last line may lack its end, newline or not.
    if (OpenLine(line, &parsed)) {
      text->lines.push_back(std::move(parsed));
    } else {
      ++text->damaged;
    }
  }
  return true;
}

std::vector<std::string> JournalsIn(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = item.path().filename().string();
    if (name.rfind("journal-", 0) == 0 && item.path().extension() == ".jsonl") {
      paths.push_back(item.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace heed
