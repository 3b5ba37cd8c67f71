// A tuner that is killed anywhere leaves an old or a new record, whole, and the
// next one goes on. HEED_FULL_KILLS=1 kills 200 times (half an hour).
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/record_files.h"
#include "tests/cli_fixture.h"
#include "tune/journal.h"
#include "tune/publish.h"

namespace heed {
namespace {

class TuneKill : public CliFixture {};

TEST_F(TuneKill, AnywhereLeavesAWholeRecordAndLosesAClassAtMost) {
  const int kills = std::getenv("HEED_FULL_KILLS") != nullptr ? 200 : 6;
  const std::string folder = Path("records/") + MachineKey(ThisMachine());
  const std::string record_path = folder + "/record.json";
  const std::vector<std::string> arguments = {
      "tune",
      "run",
      "--resume",
      "--effort",
      "quick",
      "--budget",
      "60s",
      "--output",
      "records",
      "--threads",
      "1",
      "--force",
      "--shapes",
      "b1_hq1_hkv1_q32_k32_d16_f32,b1_hq1_hkv1_q32_k32_d24_f32,"
      "b1_hq1_hkv1_q32_k32_d32_f32"};
  std::mt19937_64 random(4);
  size_t before = 0;
  for (int i = 0; i < kills; ++i) {
    const pid_t child = Start(arguments);
    ASSERT_GT(child, 0);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 9000000));
    kill(child, SIGKILL);
    const int code = Wait(child);
    ASSERT_TRUE(code == -SIGKILL || code == 0) << code << Slurp("output.txt");
    if (!std::filesystem::exists(record_path)) {
      ASSERT_EQ(before, 0u) << "the record has gone";
      continue;
    }
    Record record;
    std::string why;
    ASSERT_TRUE(ReadRecordFile(record_path, &record, &why)) << why;
    ASSERT_GE(record.entries.size(), before) << "entries were lost";
    before = record.entries.size();
    for (const std::string& path : JournalsIn(folder)) {
      JournalText text;
      ASSERT_TRUE(ReadJournal(path, &text, &why)) << why;
      // One torn line for each time it was killed, at the most.
      ASSERT_LE(text.damaged, static_cast<size_t>(kills));
    }
  }
  // Somebody who is left in peace finishes it.
  EXPECT_EQ(Wait(Start(arguments)), 0) << Slurp("output.txt");
  Record record;
  std::string why;
  ASSERT_TRUE(ReadRecordFile(record_path, &record, &why)) << why;
  EXPECT_EQ(record.entries.size(), 3u);
}

}  // namespace
}  // namespace heed
