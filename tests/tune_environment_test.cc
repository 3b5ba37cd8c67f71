// `heed tune` where the surroundings are against it: no home, a disk that is
// full, folders of others, a clock that is not to be trusted, busy neighbours.
// What needs a program or a right that is missing here says so and is skipped.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/machine.h"
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
constexpr char kOneShape[] = "b1_hq2_hkv2_q64_k64_d16_f32";
constexpr char kThreeShapes[] =
    "b1_hq2_hkv2_q64_k64_d16_f32,b1_hq2_hkv2_q64_k64_d24_f32,"
    "b1_hq2_hkv2_q64_k64_d32_f32";
// An id that owns nothing; nobody's.
constexpr char kNobody[] =
    "setpriv --reuid=65534 --regid=65534 --clear-groups ";

bool Succeeds(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// Somebody who keeps two processors busy, on and off, a second each, until this
// goes out of scope.
class Neighbour {
 public:
  Neighbour() : child_(fork()) {
    if (child_ != 0) return;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl("/bin/sh", "sh", "-c",
          "exec >/dev/null 2>&1; for i in $(seq 100); do "
          "stress-ng --quiet --cpu 2 --timeout 1; sleep 1; done",
          nullptr);
    _exit(127);
  }
  ~Neighbour() {
    if (child_ <= 0) return;
    kill(-child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  const pid_t child_;
};

class TuneEnvironment : public CliFixture {
 protected:
  std::string RecordFile() const {
    return RecordPath(Path("records"), MachineKey(ThisMachine()));
  }
  bool Read(Record* record) const {
    std::string why;
    return ReadRecordFile(RecordFile(), record, &why);
  }
  void WriteSample() const {
    std::string path, why;
    ASSERT_TRUE(WriteRecordFile(Path("records"), SampleRecord(), &path, &why))
        << why;
  }
  static std::string Run(const std::string& shapes, const std::string& budget) {
    return "tune run --effort quick --threads 1 --output records --budget " +
           budget + " --shapes " + shapes;
  }
  // What was adopted lies surely above what had to be gained, and nothing in
  // the record is out of this world.
  void ExpectNoFalseAdoption(const Record& record) const {
    for (const RecordEntry& entry : record.entries) {
      const RecordRun* run = FindRun(record, entry.run);
      ASSERT_NE(run, nullptr);
      EXPECT_TRUE(std::isfinite(entry.default_us) && entry.default_us > 0);
      if (entry.decision != Decision::kAdopted) continue;
      EXPECT_GT(entry.gain.low, 1 + run->min_gain_pct / 100) << entry.problem;
      EXPECT_GE(entry.rounds, 7) << entry.problem;
    }
  }
};

TEST_F(TuneEnvironment, WithoutAHomeEverythingWorksButInstallingForTheUser) {
  const std::string bare =
      "env -u HOME -u XDG_CONFIG_HOME -u HEED_TUNE_PATH LANG=de_DE.UTF-8 "
      "LC_ALL=de_DE.UTF-8 ";
  const Result info = Heed("info --json", bare);
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_TRUE(Json::parse(info.out).contains("shapes"));
  WriteSample();
  const Result install = Heed("tune install --from records", bare);
  EXPECT_EQ(install.code, 73);
  EXPECT_EQ(install.err,
            "heed tune install: neither XDG_CONFIG_HOME nor HOME is an "
            "absolute path; say --to DIR\n");
  const Result tuned = Heed(Run(kOneShape, "20s"), bare);
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  Record record;
  EXPECT_TRUE(Read(&record));
  EXPECT_EQ(record.entries.size(), 3u);
}

TEST_F(TuneEnvironment, AHundredMegabytesAreRefusedUnread) {
  fs::create_directories(fs::path(RecordFile()).parent_path());
  std::ofstream(RecordFile()) << "{";
  fs::resize_file(RecordFile(), uintmax_t{100} << 20);
  const auto start = std::chrono::steady_clock::now();
  const Result info = Heed("info --json", "HEED_TUNE_PATH=records");
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_NE(info.out.find("larger than 4 MiB"), std::string::npos) << info.out;
  ExpectFailure("tune show records", 65, "larger than 4 MiB");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(TuneEnvironment, WhoMayNotReadOrWriteIsToldAndHarmsNothing) {
  // Root may do everything, so it steps down.
  const std::string as = geteuid() == 0 ? kNobody : "";
  if (!as.empty() && !Succeeds(as + HEED_CLI_PATH + " --version")) {
    GTEST_SKIP() << "root, and no setpriv or no way for others to the command";
  }
  WriteSample();
  const std::string before = ToJson(SampleRecord());
  fs::permissions(RecordFile(), fs::perms::none);
  const Result info = Heed("info --json", "HEED_TUNE_PATH=records " + as);
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_NE(info.out.find("record.json: Permission denied"), std::string::npos)
      << info.out;
  const fs::path folder = fs::path(RecordFile()).parent_path();
  fs::permissions(RecordFile(), fs::perms(0644));
  fs::permissions(folder, fs::perms(0555));
  const auto start = std::chrono::steady_clock::now();
  const Result tune = Heed(Run(kOneShape, "600s"), as);
  EXPECT_EQ(tune.code, 73) << tune.err;
  EXPECT_NE(tune.err.find("cannot write records ("), std::string::npos)
      << tune.err;
  EXPECT_NE(tune.err.find("Use --output DIR"), std::string::npos) << tune.err;
  EXPECT_EQ(tune.out, "");
  // Before measuring.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  fs::permissions(folder, fs::perms(0755));
  EXPECT_EQ(Slurp("records/" + MachineKey(ThisMachine()) + "/record.json"),
            before);
}

TEST_F(TuneEnvironment, AFullDiskKeepsTheOldRecord) {
  // A disk of 64 KB in a mount namespace of our own.
  const std::string shell =
      "unshare -m sh -c 'mount -t tmpfs -o size=64k tmpfs disk && ";
  fs::create_directories(folder_ / "disk");
  if (!Succeeds("cd " + folder_.string() + " && " + shell + "true'")) {
    GTEST_SKIP() << "no unshare, or no right to mount";
  }
  const std::string key = MachineKey(ThisMachine());
  WriteSample();
  const std::string command =
      "cd " + folder_.string() + " && " + shell + "cp -r records/* disk/ && " +
      "head -c 1000000 /dev/zero >disk/filler 2>/dev/null; TMPDIR=" +
      folder_.string() + " HEED_TUNE=off " + HEED_CLI_PATH +
      " tune install --from records --to disk >out.txt 2>err.txt; echo $? "
      ">code.txt; cp disk/" +
      key + "/record.json left.json; ls disk/" + key + " >ls.txt'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(Slurp("code.txt"), "73\n") << Slurp("err.txt");
  EXPECT_NE(Slurp("err.txt").find("No space left on device"), std::string::npos)
      << Slurp("err.txt");
  EXPECT_EQ(Slurp("left.json"), ToJson(SampleRecord()));
  EXPECT_EQ(Slurp("ls.txt").find(".tmp."), std::string::npos);
}

TEST_F(TuneEnvironment, TunersThatDoNotSeeEachOthersLockLoseNothing) {
  // Locks are in the temporary folder, and these have one each.
  fs::create_directories(folder_ / "a");
  fs::create_directories(folder_ / "b");
  const auto command = [this](const std::string& name,
                              const std::string& shape) {
    return "(cd " + folder_.string() + " && TMPDIR=" + Path(name) +
           " HEED_TUNE=off " + HEED_CLI_PATH + " " + Run(shape, "20s") + " >" +
           name + ".txt 2>&1; echo $? >" + name + ".code) & ";
  };
  const std::string both = command("a", kOneShape) +
                           command("b", "b1_hq2_hkv2_q64_k64_d24_f32") + "wait";
  ASSERT_EQ(std::system(both.c_str()), 0);
  EXPECT_EQ(Slurp("a.code"), "0\n") << Slurp("a.txt");
  EXPECT_EQ(Slurp("b.code"), "0\n") << Slurp("b.txt");
  Record record;
  ASSERT_TRUE(Read(&record));
  EXPECT_EQ(record.entries.size(), 2u);
}

TEST_F(TuneEnvironment, WhereNothingCanBeLockedItSaysSoAndGoesOn) {
  // As on a network file system without locks. A sanitizer wants to be loaded
  // before all else, and is told that it need not.
  const std::string without =
      "env ASAN_OPTIONS=verify_asan_link_order=0 HEED_TUNE=off "
      "LD_PRELOAD=" HEED_NO_LOCKS_PATH;
  const Result tuned = Heed(Run(kOneShape, "20s"), without);
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.err.find("heed tune: no file locks in the temporary folder; "
                           "another tuner at work would not be noticed\n"),
            std::string::npos)
      << tuned.err;
  EXPECT_NE(tuned.err.find("heed tune: no file locks where the record is; do "
                           "not write it from elsewhere at the same time\n"),
            std::string::npos)
      << tuned.err;
  Record record;
  ASSERT_TRUE(Read(&record));
  EXPECT_EQ(record.entries.size(), 1u);

  const Result installed =
      Heed("tune install --from records --to elsewhere", without);
  EXPECT_EQ(installed.code, 0) << installed.err;
  EXPECT_EQ(installed.err.find("heed tune install: no file locks"), 0u)
      << installed.err;
}

TEST_F(TuneEnvironment, UnderAQuotaItIsAMachineOfFewerThreads) {
  if (EffectiveThreads() < 2) GTEST_SKIP() << "one thread is all there is";
  // The files of both versions of control groups say one processor, in a mount
  // namespace of our own.
  const std::string shell =
      "unshare -m sh -c 'mount -t tmpfs tmpfs /sys/fs/cgroup && "
      "mkdir /sys/fs/cgroup/cpu && cd /sys/fs/cgroup && "
      "echo 90000 100000 >cpu.max && echo 90000 >cpu/cpu.cfs_quota_us && "
      "echo 100000 >cpu/cpu.cfs_period_us && ";
  if (!Succeeds(shell + "true'")) {
    GTEST_SKIP() << "no unshare, or no right to mount";
  }
  // Measured without the quota, looked up with it.
  ASSERT_EQ(Heed("tune run --effort quick --output records --budget 20s "
                 "--shapes " +
                 std::string(kOneShape))
                .code,
            0);
  const std::string command = shell + "cd " + folder_.string() +
                              " && HEED_TUNE_PATH=records " + HEED_CLI_PATH +
                              " info --json >out.txt 2>err.txt'";
  ASSERT_EQ(std::system(command.c_str()), 0) << Slurp("err.txt");
  const Json info = Json::parse(Slurp("out.txt"));
  EXPECT_EQ(info["threads"], 1);
  Machine quota = ThisMachine();
  quota.threads = 1;
  EXPECT_EQ(info["machine_key"], MachineKey(quota));
}

TEST_F(TuneEnvironment, UnderAFakedClockNothingIsAdoptedWrongly) {
  if (!Succeeds("faketime -f '@2020-01-01 00:00:00' true")) {
    GTEST_SKIP() << "no faketime";
  }
  // Ten times as fast, then one that jumps by a second at every call.
  const struct {
    const char *clock, *says;
  } clocks[] = {{"@2020-01-01 00:00:00 x10", "2020-01-01T0"},
                {"@2020-01-01 00:00:00 i1.0", "2020-01-0"}};
  for (const auto& clock : clocks) {
    fs::remove_all(folder_ / "records");
    const Result tuned =
        Heed(Run(kOneShape, "100s"), "timeout 200 faketime -f '" +
                                         std::string(clock.clock) +
                                         "' env HEED_TUNE=off");
    EXPECT_TRUE(tuned.code == 0 || tuned.code == 1)
        << clock.clock << " " << tuned.code << tuned.err;
    Record record;
    if (!Read(&record)) continue;
    ExpectNoFalseAdoption(record);
    for (const RecordEntry& entry : record.entries) {
      EXPECT_EQ(entry.confirmed.rfind(clock.says, 0), 0u) << entry.confirmed;
    }
  }
}

TEST_F(TuneEnvironment, NoisyNeighboursWidenIntervalsAndFalsifyNothing) {
  if (!Succeeds("stress-ng --version")) GTEST_SKIP() << "no stress-ng";
  const Neighbour neighbour;
  const Result tuned = Heed(Run(kThreeShapes, "45s") + " --json");
  ASSERT_TRUE(tuned.code == 0) << tuned.code << tuned.err;
  Record record;
  ASSERT_TRUE(Read(&record));
  EXPECT_FALSE(record.entries.empty());
  ExpectNoFalseAdoption(record);
  // The run says how noisy it was, and asks for more the noisier that is.
  const Json json = Json::parse(tuned.out);
  const Json& run = json["record"]["runs"][0];
  EXPECT_GE(run["demand_pct"].get<double>(), run["min_gain_pct"].get<double>());
  EXPECT_NE(tuned.err.find("A/A p95 = "), std::string::npos) << tuned.err;
}

}  // namespace
}  // namespace heed
