// What may go wrong around `heed tune`, and what the user then sees.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "runtime/record_files.h"
#include "tests/cli_fixture.h"
#include "tests/record_samples.h"
#include "tune/publish.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using test::SampleRecord;

// Small enough for the slowest build; each a class of its own.
const char* const kShapes[] = {
    "b1_hq2_hkv2_q64_k64_d16_f32", "b1_hq2_hkv2_q64_k64_d24_f32",
    "b1_hq2_hkv2_q64_k64_d32_f32", "b1_hq2_hkv2_q64_k64_d40_f32",
    "b1_hq2_hkv2_q64_k64_d48_f32", "b1_hq2_hkv2_q64_k64_d56_f32"};

std::string Shapes(size_t first, size_t count) {
  std::string list;
  for (size_t i = first; i < first + count; ++i) {
    list += (list.empty() ? "" : ",") + std::string(kShapes[i]);
  }
  return list;
}

class TuneFaults : public CliFixture {
 protected:
  std::string RecordFile() const {
    return RecordPath(Path("records"), MachineKey(ThisMachine()));
  }
  std::vector<std::string> RunArguments(size_t first, size_t count) const {
    return {"tune",      "run",  "--effort", "quick",
            "--budget",  "120s", "--output", "records",
            "--threads", "1",    "--shapes", Shapes(first, count)};
  }
  size_t EntriesThere() const {
    Record record;
    std::string why;
    return ReadRecordFile(RecordFile(), &record, &why) ? record.entries.size()
                                                       : 0;
  }
  bool WaitForEntries(size_t count, double seconds) const {
    for (int i = 0; i < seconds * 50; ++i) {
      if (EntriesThere() >= count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
};

TEST_F(TuneFaults, TheFirstSignalFinishesTheClassAndPublishes) {
  const pid_t child = Start(RunArguments(0, 6));
  ASSERT_TRUE(WaitForEntries(1, 250)) << Slurp("output.txt");
  kill(child, SIGINT);
  EXPECT_EQ(Wait(child), 130) << Slurp("output.txt");
  const std::string output = Slurp("output.txt");
  EXPECT_NE(output.find("heed tune run --resume"), std::string::npos) << output;
  const size_t done = EntriesThere();
  EXPECT_GE(done, 1u);
  EXPECT_LT(done, 6u);
  // Unless the signal came just between two classes.
  if (done > 1) {
    EXPECT_NE(output.find("finishing this shape; Ctrl-C again to stop at once"),
              std::string::npos)
        << output;
  }
  // The rest, and only the rest, in a second run.
  std::vector<std::string> resume = RunArguments(0, 6);
  resume.push_back("--resume");
  EXPECT_EQ(Wait(Start(resume)), 0) << Slurp("output.txt");
  EXPECT_NE(Slurp("output.txt")
                .find(": " + std::to_string(done) + " of 6 classes are done"),
            std::string::npos)
      << Slurp("output.txt");
  EXPECT_EQ(EntriesThere(), 6u);
}

TEST_F(TuneFaults, TheSecondSignalStopsAtOnce) {
  const pid_t child = Start(RunArguments(0, 6));
  ASSERT_TRUE(WaitForEntries(1, 250)) << Slurp("output.txt");
  kill(child, SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  kill(child, SIGTERM);
  EXPECT_EQ(Wait(child), 130);
  EXPECT_GE(EntriesThere(), 1u);
}

TEST_F(TuneFaults, TwoTunersAtOnceLoseNothing) {
  const pid_t first = Start(RunArguments(0, 2), "first.txt");
  const pid_t second = Start(RunArguments(2, 2), "second.txt");
  EXPECT_EQ(Wait(first), 0) << Slurp("first.txt");
  EXPECT_EQ(Wait(second), 0) << Slurp("second.txt");
  EXPECT_EQ(EntriesThere(), 4u);
  // One of them has waited.
  const std::string both = Slurp("first.txt") + Slurp("second.txt");
  EXPECT_NE(both.find("heed tune: another tuner (pid "), std::string::npos)
      << both;
  EXPECT_NE(both.find("is measuring on this machine; waiting... (--no-wait "
                      "exits 75)"),
            std::string::npos)
      << both;
}

TEST_F(TuneFaults, ATunerThatMayNotWaitExitsWith75) {
  const pid_t first = Start(RunArguments(0, 2), "first.txt");
  ASSERT_TRUE(WaitForEntries(1, 250)) << Slurp("first.txt");
  std::vector<std::string> arguments = RunArguments(2, 1);
  arguments.push_back("--no-wait");
  const int code = Wait(Start(arguments, "second.txt"));
  const bool still_there = EntriesThere() < 2;
  kill(first, SIGKILL);
  Wait(first);
  if (!still_there) GTEST_SKIP() << "the first tuner was too fast";
  EXPECT_EQ(code, 75) << Slurp("second.txt");
  EXPECT_EQ(Slurp("second.txt").rfind("heed tune: another tuner (pid ", 0), 0u)
      << Slurp("second.txt");
}

TEST_F(TuneFaults, AFolderThatCannotBeWrittenIsFoundBeforeMeasuring) {
  const auto start = std::chrono::steady_clock::now();
  ExpectFailure("tune --output /proc/heed", 73, "cannot write /proc/heed (");
  ExpectFailure("tune run --output /proc/heed", 73, "Use --output DIR");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(TuneFaults, ARecordThatNobodyCanReadIsAMissForInfo) {
  fs::create_directories(fs::path(RecordFile()).parent_path());
  const auto note_of = [&] {
    const Result info = Heed("info --json", "HEED_TUNE_PATH=records");
    EXPECT_EQ(info.code, 0) << info.err;
    const Json json = Json::parse(info.out);
    EXPECT_EQ(json["shapes"][0]["tier"], "analytical");
    std::string notes;
    for (const auto& note : json["record_notes"]) {
      notes += note.get<std::string>();
    }
    return notes;
  };
  const auto write = [&](const std::string& text) {
    std::ofstream(RecordFile(), std::ios::trunc) << text;
  };
  write("");
  EXPECT_NE(note_of().find("truncated JSON at byte 0"), std::string::npos);
  write("no JSON");
  EXPECT_NE(note_of().find("not valid JSON at byte"), std::string::npos);
  write(std::string(5 << 20, ' '));
  EXPECT_NE(note_of().find("larger than 4 MiB"), std::string::npos);
  write(std::string(100, '['));
  EXPECT_NE(note_of().find("nested deeper than 16"), std::string::npos);
  fs::remove(RecordFile());
  fs::create_directory(RecordFile());
  EXPECT_NE(note_of().find("not a regular file"), std::string::npos);
  fs::remove(RecordFile());
  ASSERT_EQ(mkfifo(RecordFile().c_str(), 0644), 0);
  EXPECT_NE(note_of().find("not a regular file"), std::string::npos);
  fs::remove(RecordFile());
  fs::create_symlink("nowhere", RecordFile());
  EXPECT_NE(note_of().find("No such file"), std::string::npos);
  fs::remove(RecordFile());
  write(ToJson(SampleRecord()));
  if (geteuid() != 0) {
    fs::permissions(RecordFile(), fs::perms::none);
    EXPECT_NE(note_of().find("Permission denied"), std::string::npos);
  }
}

TEST_F(TuneFaults, FewerProcessorsThanWereTunedForTakeTheSameCoresTile) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  int first = 0;
  while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &set)) ++first;
  if (CPU_COUNT(&set) < 2 || !fs::exists("/usr/bin/taskset")) {
    GTEST_SKIP() << "one processor, or no taskset";
  }
  // An entry for a shape that `heed info` lists.
  Record record = SampleRecord();
  record.entries.resize(1);
  heed_problem problem;
  ASSERT_EQ(
      heed_problem_parse("b1_hq12_hkv12_q1024_k1024_d64_causal_f32", &problem),
      HEED_OK);
  record.entries[0].shape_class = ClassOf(problem, ThisMachine().threads);
  std::string path, why;
  ASSERT_TRUE(WriteRecordFile(Path("records"), record, &path, &why)) << why;
  const auto tier = [&](const std::string& prefix) {
    const Json json = Json::parse(
        Heed("info --json", "HEED_TUNE_PATH=records " + prefix).out);
    for (const auto& shape : json["shapes"]) {
      if (shape["name"] == "gpt2_prefill")
        return shape["tier"].get<std::string>();
    }
    return std::string();
  };
  EXPECT_EQ(tier(""), "exact");
  EXPECT_EQ(tier("taskset -c " + std::to_string(first)), "uarch");
}

TEST_F(TuneFaults, ALocaleWithDecimalCommasChangesNoRecord) {
  const std::string plain = ToJson(SampleRecord());
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) {
    GTEST_SKIP() << "no locale de_DE.UTF-8";
  }
  const std::string german = ToJson(SampleRecord());
  Record back;
  std::string why;
  const bool read = FromJson(german, &back, &why);
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(german, plain);
  EXPECT_TRUE(read) << why;
}

TEST_F(TuneFaults, APinIsUsedOrRefused) {
  const Result pinned =
      Heed("info --json", "HEED_TUNE=pin:row_block=48,key_tile=96");
  ASSERT_EQ(pinned.code, 0) << pinned.err;
  EXPECT_EQ(Json::parse(pinned.out)["shapes"][0]["tier"], "pinned");
  const Result refused = Heed("info", "HEED_TUNE=pin:warp=9");
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("HEED_TUNE=pin:warp=9: unknown tile field 'warp'"),
            std::string::npos)
      << refused.err;
}

TEST_F(TuneFaults, EstimateMeasuresAndWritesNothing) {
  const Result estimate = Heed("tune --effort estimate --output records");
  EXPECT_EQ(estimate.code, 0) << estimate.err;
  EXPECT_NE(estimate.out.find("nothing was measured or written"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "records"));
}

}  // namespace
}  // namespace heed
