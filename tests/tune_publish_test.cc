// Publishing: merge rules, and writers that die, are stopped by the disk, or
// meet each other and readers.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/record_files.h"
#include "tests/record_samples.h"
#include "tune/measure_lock.h"
#include "tune/merge_records.h"
#include "tune/publish.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using test::SampleRecord;

class PublishTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (fs::temp_directory_path() / "heed_publish_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string Path() const {
    return RecordPath(dir_, MachineKey(ThisMachine()));
  }
  void Write(const Record& record, const PublishOptions& options = {}) {
    std::string path, why;
    ASSERT_TRUE(WriteRecordFile(dir_, record, &path, &why, options)) << why;
  }
  Record Read() const {
    Record record;
    std::string why;
    EXPECT_TRUE(ReadRecordFile(Path(), &record, &why)) << why;
    return record;
  }

  std::string dir_;
};

Record Newer(int64_t seconds, double gain_low) {
  Record record = SampleRecord();
  RecordEntry& entry = record.entries[0];
  entry.confirmed = FormatUtc(ParseUtc(entry.confirmed) + seconds);
  entry.gain = {gain_low + 0.01, gain_low, gain_low + 0.02};
  entry.config.tile.key_tile = 240;
  record.entries.resize(1);
  return record;
}

TEST(MergeRecords, ANewerEntryReplacesAnOlderOne) {
  const Record merged = MergeRecords(SampleRecord(), Newer(100, 1.04), false);
  ASSERT_EQ(merged.entries.size(), 2u);
  EXPECT_EQ(merged.entries[0].config.tile.key_tile, 240u);
  EXPECT_EQ(merged.runs.size(), 1u);
}

TEST(MergeRecords, ButNotWithinADayIfItPromisesLess) {
  EXPECT_EQ(MergeRecords(SampleRecord(), Newer(100, 1.02), false)
                .entries[0]
                .config.tile.key_tile,
            192u);
  EXPECT_EQ(MergeRecords(SampleRecord(), Newer(100, 1.02), true)
                .entries[0]
                .config.tile.key_tile,
            240u);
  EXPECT_EQ(MergeRecords(SampleRecord(), Newer(25 * 3600, 1.02), false)
                .entries[0]
                .config.tile.key_tile,
            240u);
  Record quarantined = SampleRecord();
  quarantined.entries[0].decision = Decision::kQuarantined;
  EXPECT_EQ(MergeRecords(quarantined, Newer(100, 1.0), false)
                .entries[0]
                .config.tile.key_tile,
            240u);
}

TEST(MergeRecords, AnOlderKernelAbiIsSetAside) {
  Record old = SampleRecord(), now = Newer(100, 1.0);
  old.kernel_abi = 0;
  for (const Record& merged :
       {MergeRecords(old, now, false), MergeRecords(now, old, false)}) {
    EXPECT_EQ(merged.kernel_abi, kKernelAbi);
    EXPECT_EQ(merged.entries.size(), 1u);
    EXPECT_FALSE(merged.retired.empty());
    Record back;
    std::string why;
    ASSERT_TRUE(FromJson(ToJson(merged), &back, &why)) << why;
    EXPECT_FALSE(back.retired.empty());
    EXPECT_NE(ToJson(merged).find("\"retired\""), std::string::npos);
  }
}

TEST(MergeRecords, TimesAreReadAsTheyAreWritten) {
  EXPECT_EQ(FormatUtc(ParseUtc("2026-01-02T03:04:05Z")),
            "2026-01-02T03:04:05Z");
  for (const char* bad :
       {"", "yesterday", "2026-01-02", "2026-01-02T03:04:05"}) {
    EXPECT_EQ(ParseUtc(bad), -1) << bad;
  }
}

TEST_F(PublishTest, AWriterKilledAtAnyPointLeavesTheOldRecordOrTheNewOne) {
  Write(SampleRecord());
  const std::string old = ToJson(Read());
  const std::string after =
      ToJson(MergeRecords(SampleRecord(), Newer(100, 1.2), false));
  for (const PublishStage stage :
       {PublishStage::kLocked, PublishStage::kMidWrite,
        PublishStage::kAfterTemporary, PublishStage::kBeforeRename}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      PublishOptions options;
      options.reached = [stage](PublishStage at) {
        if (at == stage) kill(getpid(), SIGKILL);
      };
      std::string path, why;
      WriteRecordFile(dir_, Newer(100, 1.2), &path, &why, options);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(ToJson(Read()), old);
  }
  // The dead writer's lock is free, and what it left is in nobody's way.
  Write(Newer(100, 1.2));
  EXPECT_EQ(ToJson(Read()), after);
}

TEST_F(PublishTest, AFullDiskLeavesTheOldRecordAndSaysSo) {
  Write(SampleRecord());
  const std::string old = ToJson(Read());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // As near to a full disk as a test gets: no file may grow beyond this.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string path, why;
    const bool written = WriteRecordFile(dir_, Newer(100, 1.2), &path, &why);
    _exit(!written && why.rfind("cannot write ", 0) == 0 &&
                  why.find("File too large") != std::string::npos
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ToJson(Read()), old);
  for (const auto& file :
       fs::directory_iterator(fs::path(Path()).parent_path())) {
    EXPECT_EQ(file.path().string().find(".tmp."), std::string::npos);
  }
}

TEST_F(PublishTest, TheBackupIsTheLastGoodRecordEvenOverADamagedOne) {
  Write(SampleRecord());
  Write(Newer(100, 1.2));
  std::ofstream(Path(), std::ios::trunc) << "{";
  Write(Newer(200, 1.3));
  Record backup;
  std::string why;
  ASSERT_TRUE(ReadRecordFile(Path() + ".bak", &backup, &why)) << why;
  EXPECT_EQ(backup.entries.size(), 2u);
}

TEST_F(PublishTest, AReaderNeverSeesHalfARecord) {
  Write(SampleRecord());
  std::atomic<bool> done{false};
  std::atomic<int> reads{0}, bad{0};
  std::thread reader([&] {
    while (!done) {
      Record record;
      std::string why;
      bad += !ReadRecordFile(Path(), &record, &why);
      ++reads;
    }
  });
  // HEED_FULL_KILLS=1: minutes.
  const int writes = std::getenv("HEED_FULL_KILLS") != nullptr ? 10000 : 300;
  for (int i = 0; i < writes; ++i) Write(Newer(100 + i, 1.2));
  done = true;
  reader.join();
  EXPECT_EQ(bad.load(), 0) << "of " << reads.load();
  EXPECT_GT(reads.load(), 10);
}

TEST_F(PublishTest, TheMeasuringLockIsHeldByOneAndFreedByDeath) {
  std::string holder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    MeasureLock lock;
    std::string nobody;
    const bool taken =
        lock.Take(dir_, false, {}, {}, &nobody) == MeasureLock::Result::kTaken;
    const ssize_t wrote = write(ready[1], taken ? "y" : "n", 1);
    pause();
    _exit(wrote == 1 ? 0 : 1);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  {
    MeasureLock lock;
    EXPECT_EQ(lock.Take(dir_, false, {}, {}, &holder),
              MeasureLock::Result::kBusy);
    EXPECT_EQ(
        holder.rfind(
            "another tuner (pid " + std::to_string(child) + ", started 20", 0),
        0u)
        << holder;
    EXPECT_NE(holder.find(") is measuring on this machine"), std::string::npos);
  }
  {
    MeasureLock lock;
    std::string told;
    EXPECT_EQ(lock.Take(
                  dir_, true, [&](const std::string& line) { told = line; },
                  [] { return true; }, &holder),
              MeasureLock::Result::kGivenUp);
    EXPECT_EQ(told, holder);
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(ready[0]);
  close(ready[1]);
  MeasureLock lock;
  EXPECT_EQ(lock.Take(dir_, false, {}, {}, &holder),
            MeasureLock::Result::kTaken);
}

TEST_F(PublishTest, ALockThatIsALinkOrAFifoIsPassedOver) {
  const std::string own =
      dir_ + "/heed-tune." + std::to_string(getuid()) + ".lock";
  fs::create_symlink("/etc/passwd", own);
  ASSERT_EQ(mkfifo((dir_ + "/heed-tune.lock").c_str(), 0666), 0);
  MeasureLock lock;
  std::string holder;
  EXPECT_EQ(lock.Take(dir_, false, {}, {}, &holder),
            MeasureLock::Result::kTaken);
}

}  // namespace
}  // namespace heed
