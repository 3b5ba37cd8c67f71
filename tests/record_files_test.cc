// Tuning records as files: whatever lies where a record should, heed finds a
// reason to ignore it and computes the same bits.
#include "runtime/record_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/tile_choice.h"
#include "runtime/tile_model.h"
#include "tests/attention_case.h"
#include "tests/input_families.h"
#include "tests/record_samples.h"
#include "tune/publish.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

class RecordFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (fs::temp_directory_path() / "heed_record_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }

  // Where the record of this machine lies.
  std::string RecordPath() const {
    return dir_ + "/" + MachineKey(ThisMachine()) + "/record.json";
  }
  void WriteText(const std::string& text) {
    fs::create_directories(fs::path(RecordPath()).parent_path());
    std::ofstream(RecordPath(), std::ios::binary) << text;
  }
  RecordSet Load(const Machine& machine = ThisMachine()) const {
    RecordSources sources;
    sources.dirs = {dir_};
    return LoadRecords(sources, machine);
  }

  std::string dir_;
};

std::string JoinNotes(const RecordSet& set) {
  std::string all;
  for (const std::string& note : set.notes) {
    EXPECT_EQ(note.find('\n'), std::string::npos) << note;
    all += note + "\n";
  }
  return all;
}

heed_problem SampleProblem() {
  return MakeProblem(1, 4, 4, 1024, 1024, 64, 64, HEED_CAUSAL_TOP_LEFT);
}

TileChoice ChooseOn(const RecordSet& set, int threads) {
  int64_t best;
  EXPECT_GT(SupportedTargets(&best, 1), 0u);
  const Kernels kernels = GetKernels(best, DType::kF32);
  const TileChoice choice =
      ChooseTile(set, SampleProblem(), kernels, ThisMachine(), threads);
  EXPECT_TRUE(FeasibleTile(choice.tile, SampleProblem(), kernels))
      << ToString(choice.tile);
  return choice;
}

// A whole call in a process of its own with this environment: the bits must be
// the row program's.
void ExpectRightBitsWith(const std::string& variable,
                         const std::string& value) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv(variable.c_str(), value.c_str(), 1);
    Case c = MakeCase(
        MakeProblem(1, 2, 1, 9, 100, 16, 16, HEED_CAUSAL_BOTTOM_RIGHT));
    Random random(1);
    Families().front().fill(&random, &c);
    heed_options options;
    heed_options_init(&options);
    options.threads = 1;
    options.tuning = HEED_TUNING_AUTO;
    Result got;
    const heed_call call = DenseCall(c, &got);
    got.status = heed_attention(&c.problem, &options, &call);
    _exit(got.status == HEED_OK && SameBits(got, RunRowProgram(c)) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << variable << "=" << value;
}

TEST_F(RecordFiles, WhatIsWrittenIsFoundForThisMachine) {
  std::string path, why;
  ASSERT_TRUE(WriteRecordFile(dir_, SampleRecord(), &path, &why)) << why;
  EXPECT_EQ(path, RecordPath());
  const RecordSet set = Load();
  ASSERT_EQ(set.records.size(), 1u) << JoinNotes(set);
  EXPECT_EQ(set.records[0].tier, Tier::kExact);
  const TileChoice choice = ChooseOn(set, 2);
  EXPECT_EQ(choice.tier, Tier::kExact) << ReasonOf(choice);
  EXPECT_EQ(choice.tile.key_tile, 192u);
  EXPECT_NE(ChooseOn(set, 3).tier, Tier::kExact);
  ExpectRightBitsWith("HEED_TUNE_PATH", dir_);
}

TEST_F(RecordFiles, ASecondWriteMergesAndKeepsTheOldFileAside) {
  Record record = SampleRecord();
  std::string path, why;
  ASSERT_TRUE(WriteRecordFile(dir_, record, &path, &why)) << why;
  record.entries.resize(1);
  record.entries[0].config.tile.key_tile = 240;
  ASSERT_TRUE(WriteRecordFile(dir_, record, &path, &why)) << why;
  Record back;
  ASSERT_TRUE(ReadRecordFile(path, &back, &why)) << why;
  EXPECT_EQ(back.entries.size(), 2u);
  EXPECT_EQ(back.entries[0].config.tile.key_tile, 240u);
  EXPECT_TRUE(fs::exists(path + ".bak"));
  for (const auto& item :
       fs::directory_iterator(fs::path(path).parent_path())) {
    EXPECT_EQ(item.path().string().find(".tmp"), std::string::npos)
        << item.path();
  }
}

TEST_F(RecordFiles, GarbageIsAMissWithAReason) {
  const std::string good = ToJson(SampleRecord());
  for (const std::string& text :
       {std::string(), std::string("garbage"), good.substr(0, good.size() / 2),
        std::string("{}"), std::string(1 << 20, '{')}) {
    WriteText(text);
    const RecordSet set = Load();
    EXPECT_TRUE(set.records.empty());
    EXPECT_NE(JoinNotes(set).find("ignored"), std::string::npos);
    EXPECT_EQ(ChooseOn(set, 2).tier, Tier::kAnalytical);
    ExpectRightBitsWith("HEED_TUNE_PATH", dir_);
  }
}

TEST_F(RecordFiles, AFolderInPlaceOfTheFileIsAMiss) {
  fs::create_directories(RecordPath());
  EXPECT_TRUE(Load().records.empty());
  EXPECT_NE(JoinNotes(Load()).find("ignored"), std::string::npos);
  ExpectRightBitsWith("HEED_TUNE_PATH", dir_);
}

TEST_F(RecordFiles, AFifoInPlaceOfTheFileIsAMissAndDoesNotBlock) {
  fs::create_directories(fs::path(RecordPath()).parent_path());
  ASSERT_EQ(mkfifo(RecordPath().c_str(), 0644), 0);
  EXPECT_TRUE(Load().records.empty());
  ExpectRightBitsWith("HEED_TUNE_PATH", dir_);
  ExpectRightBitsWith("HEED_TUNE_FILE", RecordPath());
}

TEST_F(RecordFiles, AnotherMachinesRecordIsNotTaken) {
  Record record = SampleRecord();
  record.machine.vendor = "SomebodyElse";
  record.machine.targets = {"ANOTHER"};
  record.machine_key = MachineKey(record.machine);
  std::string path, why;
  ASSERT_TRUE(WriteRecordFile(dir_, record, &path, &why)) << why;
  EXPECT_TRUE(Load().records.empty());
  EXPECT_EQ(ChooseOn(Load(), 2).tier, Tier::kAnalytical);
}

TEST_F(RecordFiles, TheSameCoreInAnotherMachineIsTakenAsSuch) {
  Record record = SampleRecord();
  record.machine.l3.bytes = record.machine.l3.bytes * 2 + (1 << 20);
  record.machine_key = MachineKey(record.machine);
  ASSERT_NE(record.machine_key, MachineKey(ThisMachine()));
  std::string path, why;
  ASSERT_TRUE(WriteRecordFile(dir_, record, &path, &why)) << why;
  const RecordSet set = Load();
  ASSERT_EQ(set.records.size(), 1u) << JoinNotes(set);
  EXPECT_EQ(set.records[0].tier, Tier::kUarch);
  EXPECT_EQ(ChooseOn(set, 2).tier, Tier::kUarch);
}

TEST_F(RecordFiles, ARecordOfOtherKernelsIsNotTaken) {
  Record record = SampleRecord();
  record.kernel_abi = kKernelAbi + 1;
  std::string path, why;
  ASSERT_TRUE(WriteRecordFile(dir_, record, &path, &why)) << why;
  EXPECT_TRUE(Load().records.empty());
  EXPECT_NE(JoinNotes(Load()).find(
                fmt::format("kernel_abi {}, library has {}. Re-tune with: "
                            "heed tune run --stale",
                            kKernelAbi + 1, kKernelAbi)),
            std::string::npos)
      << JoinNotes(Load());
}

TEST_F(RecordFiles, AFolderThatCannotBeWrittenIsAnErrorWithAReason) {
  std::ofstream(dir_ + "/file") << "in the way";
  std::string path, why;
  EXPECT_FALSE(WriteRecordFile(dir_ + "/file", SampleRecord(), &path, &why));
  EXPECT_FALSE(why.empty());
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
}

TEST_F(RecordFiles, HostileVariablesChangeNoBit) {
  for (const char* value :
       {"", ":::", "relative", "/nonexistent", "/proc", "/dev/null", "off"}) {
    ExpectRightBitsWith("HEED_TUNE_PATH", value);
    ExpectRightBitsWith("HEED_TUNE_FILE", value);
    ExpectRightBitsWith("HEED_TUNE", value);
  }
}

TEST_F(RecordFiles, WritersAtOnceLeaveAWholeRecord) {
  std::vector<pid_t> children;
  for (int writer = 0; writer < 8; ++writer) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Record record = SampleRecord();
      record.entries.resize(1);
      bool written = true;
      for (int i = 0; i < 10; ++i) {
        record.entries[0].shape_class.group = 1 + writer;
        std::string path, why;
        written = WriteRecordFile(dir_, record, &path, &why) && written;
      }
      _exit(written ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  Record back;
  std::string why;
  ASSERT_TRUE(ReadRecordFile(RecordPath(), &back, &why)) << why;
  EXPECT_EQ(back.entries.size(), 8u);
}

}  // namespace
}  // namespace heed::test
