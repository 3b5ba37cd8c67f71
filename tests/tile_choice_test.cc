// Which entry of which record a plan gets, and what the user is told.
#include "runtime/tile_choice.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/plan.h"
#include "runtime/problem.h"
#include "runtime/sticky_size.h"
#include "runtime/tile_model.h"
#include "tests/attention_case.h"
#include "tests/record_samples.h"
#include "tune/publish.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

class TileChoiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (fs::temp_directory_path() / "heed_choice_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }

  void Write(const Record& record, const std::string& sub = "") {
    std::string path, why;
    ASSERT_TRUE(WriteRecordFile(dir_ + sub, record, &path, &why)) << why;
  }
  // Sources: the sub folders, in this order.
  RecordSet Load(const std::vector<std::string>& subs = {""},
                 const Machine& machine = ThisMachine()) const {
    RecordSources sources;
    for (const std::string& sub : subs) sources.dirs.push_back(dir_ + sub);
    return LoadRecords(sources, machine);
  }

  std::string dir_;
};

heed_problem Sample(int64_t len = 1024) {
  return MakeProblem(1, 4, 4, len, len, 64, 64, HEED_CAUSAL_TOP_LEFT);
}

Kernels BestKernels(DType dtype = DType::kF32) {
  int64_t best;
  EXPECT_GT(SupportedTargets(&best, 1), 0u);
  return GetKernels(best, dtype);
}

TileChoice Choose(const RecordSet& set, const heed_problem& problem,
                  int threads = 2) {
  return ChooseTile(set, problem, BestKernels(), ThisMachine(), threads);
}

// What the model says for one head or many of a prompt of so many tokens, with
// an L2 of 512 KB.
Tile ModelOf(int64_t heads, int64_t len, int32_t dtype = HEED_F32,
             int64_t dim = 64, size_t l3_megabytes = 32) {
  Machine machine = ThisMachine();
  machine.l2.bytes = size_t{512} << 10;
  machine.l3.bytes = l3_megabytes << 20;
  heed_problem problem = MakeProblem(1, heads, heads, len, len, dim, dim);
  problem.dtype = dtype;
  return ModelTile(problem, BestKernels(KernelDType(dtype)), machine, 1);
}

TEST(ModelTile, ReadsFewKeysWhereTheyLie) {
  EXPECT_EQ(ModelOf(1, 197).pack_v, Pack::kNone);
  EXPECT_EQ(ModelOf(1, 1024).pack_v, Pack::kCall);
  // 16 bits are copied whatever the length.
  EXPECT_NE(ModelOf(1, 197, HEED_BF16).pack_v, Pack::kNone);
}

TEST(ModelTile, TakesAWholeChunkOfKeysAtOnceWhereItIsNear) {
  EXPECT_EQ(ModelOf(1, 197).key_tile, 240u);
  EXPECT_EQ(ModelOf(1, 8192).key_tile, 768u);
  EXPECT_EQ(ModelOf(1, 8192, HEED_BF16).key_tile, 768u);
  EXPECT_EQ(ModelOf(1, 8192, HEED_F32, 128).key_tile, 768u);
  EXPECT_EQ(ModelOf(1, 8192, HEED_F32, 256).key_tile, 384u);
}

TEST(ModelTile, CutsFewRowsIntoLikeBlocks) {
  const size_t multiple = BestKernels().row_multiple;
  EXPECT_EQ(ModelOf(1, 96).row_block, RoundUp(96, multiple));
  EXPECT_EQ(ModelOf(1, 128).row_block, RoundUp(64, multiple));
  EXPECT_EQ(ModelOf(1, 197).row_block, RoundUp(99, multiple));
}

TEST(ModelTile, TouchesAheadWhereFewKeysComeFromFarAway) {
  EXPECT_FALSE(ModelOf(12, 197).prefetch);
  EXPECT_TRUE(ModelOf(96, 197).prefetch);
  EXPECT_FALSE(ModelOf(96, 1024).prefetch);
}

TEST(ModelTile, DoesNotTakeASocketsL3ForOneCores) {
  EXPECT_FALSE(ModelOf(12, 197, HEED_F32, 64, 508).prefetch);
  EXPECT_TRUE(ModelOf(96, 197, HEED_F32, 64, 508).prefetch);
}

TEST(ModelTile, TouchesAheadWhereAHeadsKeysAreFarAway) {
  EXPECT_FALSE(ModelOf(1, 4096, HEED_F32, 128).prefetch);
  EXPECT_TRUE(ModelOf(1, 6144, HEED_F32, 128).prefetch);
  EXPECT_FALSE(ModelOf(1, 8192).prefetch);
  EXPECT_TRUE(ModelOf(1, 16384).prefetch);
}

// As if the record had been written on a machine that differs in this.
template <class Differ>
Record From(const Differ& differ) {
  Record record = SampleRecord();
  differ(&record.machine);
  record.machine_key = MachineKey(record.machine);
  return record;
}

std::string Notes(const RecordSet& set) {
  std::string all;
  for (const std::string& note : set.notes) all += note + "\n";
  return all;
}

TEST_F(TileChoiceTest, TheExactEntryComesFirstAndIsNamed) {
  Write(SampleRecord());
  const RecordSet set = Load();
  const TileChoice choice = Choose(set, Sample());
  EXPECT_EQ(choice.tier, Tier::kExact);
  EXPECT_EQ(choice.tile.row_block, 96u);
  EXPECT_EQ(EntryOf(choice), "f32_d64_dv64_causal_g1_q1024_k1024_many_t2 of " +
                                 RecordPath(dir_, MachineKey(ThisMachine())));
  EXPECT_EQ(ReasonOf(choice), "adopted " + EntryOf(choice));
}

TEST_F(TileChoiceTest, LengthsWithinAFactorOfTwoAreServedAndNoOthers) {
  Write(SampleRecord());
  const RecordSet set = Load();
  EXPECT_EQ(Choose(set, Sample(1000)).tier, Tier::kExact);
  heed_problem longer = Sample();
  longer.causal = HEED_CAUSAL_NONE;
  EXPECT_EQ(Choose(set, longer).tier, Tier::kAnalytical);
  // Both lengths double: a factor of four in all.
  EXPECT_EQ(Choose(set, Sample(2000)).tier, Tier::kAnalytical);
  const heed_problem decode = MakeProblem(1, 32, 8, 1, 8000, 128, 128);
  EXPECT_EQ(Choose(set, decode).cut.tasks_per_worker, 8u);
  EXPECT_EQ(Choose(set, MakeProblem(1, 32, 8, 1, 9000, 128, 128)).tier,
            Tier::kAnalytical);
}

TEST_F(TileChoiceTest, ACopiedRecordOfTheSameCoreIsUsedInPartAndSaysSo) {
  const Record record = From([](Machine* m) { m->l3.bytes *= 2; });
  Write(record);
  const RecordSet set = Load();
  const TileChoice choice = Choose(set, Sample());
  EXPECT_EQ(choice.tier, Tier::kUarch);
  EXPECT_EQ(choice.tile.row_block, 96u);
  EXPECT_EQ(Notes(set),
            RecordPath(dir_, record.machine_key) + " was written for " +
                record.machine_key + ", this machine is " +
                MachineKey(ThisMachine()) +
                ": the same core, so its tiles are used, shared out anew among "
                "threads. To tune this machine: heed tune\n");
}

TEST_F(TileChoiceTest, AnotherCoresRecordGivesItsTargetOnlyAndSaysSo) {
  const Record record = From([](Machine* m) { m->family += 1; });
  Write(record);
  const RecordSet set = Load();
  const TileChoice choice = Choose(set, Sample());
  EXPECT_EQ(choice.tier, Tier::kIsa);
  int64_t best;
  SupportedTargets(&best, 1);
  EXPECT_EQ(choice.tile, ModelTile(Sample(), GetKernels(best, DType::kF32),
                                   ThisMachine(), 2));
  EXPECT_NE(Notes(set).find("only its choice of SIMD target is used. To tune "
                            "this machine: heed tune"),
            std::string::npos)
      << Notes(set);
}

TEST_F(TileChoiceTest, ABetterTierBeatsAnEarlierFolder) {
  Record exact = SampleRecord();
  exact.entries[0].config.tile.key_tile = 240;
  Write(From([](Machine* m) { m->l3.bytes *= 2; }), "/user");
  Write(exact, "/shipped");
  EXPECT_EQ(Choose(Load({"/user", "/shipped"}), Sample()).tile.key_tile, 240u);
  // Of the same tier the earlier one.
  exact.entries[0].config.tile.key_tile = 288;
  Write(exact, "/user2");
  EXPECT_EQ(Choose(Load({"/user2", "/shipped"}), Sample()).tile.key_tile, 288u);
}

TEST_F(TileChoiceTest, OtherThreadsTakeTheTileAndCutAnew) {
  Write(SampleRecord());
  const RecordSet set = Load();
  const TileChoice choice = Choose(set, Sample(), 16);
  EXPECT_EQ(choice.tier, Tier::kUarch);
  EXPECT_LT(choice.tile.row_block, 96u);
  EXPECT_NE(ReasonOf(choice).find("measured on 2 threads"), std::string::npos)
      << ReasonOf(choice);
  const heed_problem decode = MakeProblem(1, 32, 8, 1, 4096, 128, 128);
  EXPECT_EQ(Choose(set, decode, 3).cut.tasks_per_worker, kTasksPerWorker);
}

TEST_F(TileChoiceTest, WhatIsQuarantinedIsTheDefaultAgain) {
  Record record = SampleRecord();
  record.entries[0].decision = Decision::kQuarantined;
  Write(record);
  const RecordSet set = Load();
  const Tile tile = Choose(set, Sample()).tile;
  const Kernels kernels = BestKernels();
  const RecordEntry& entry = record.entries[0];
  EXPECT_TRUE(tile == RoundTile(entry.default_config.tile, Sample(), kernels));
  EXPECT_FALSE(tile == RoundTile(entry.config.tile, Sample(), kernels));
}

TEST_F(TileChoiceTest, ATargetWithOtherBitsIsNotTaken) {
  std::vector<std::string> unfused;
  for (const std::string& name : TargetNames(/*fused_only=*/false)) {
    bool fused = false;
    for (const std::string& other : TargetNames(/*fused_only=*/true)) {
      fused = fused || other == name;
    }
    if (!fused) unfused.push_back(name);
  }
  if (unfused.empty() || TargetNames(true).empty()) {
    GTEST_SKIP() << "every target here has the same bits";
  }
  Record record = SampleRecord();
  for (RecordEntry& entry : record.entries) entry.target = unfused[0];
  Write(record);
  const RecordSet set = Load();
  EXPECT_EQ(Choose(set, Sample()).tier, Tier::kAnalytical);
  EXPECT_NE(Notes(set).find("2 of 2 entries skipped: their SIMD targets do not "
                            "run here, or lack fused multiply-add"),
            std::string::npos)
      << Notes(set);
}

TEST_F(TileChoiceTest, ATileThatLeavesTheCachesIsNotTaken) {
  Record record = SampleRecord();
  record.entries[0].config.tile.row_block = 4096;
  record.entries[0].config.tile.key_tile = 768;
  Machine small = ThisMachine();
  small.l2.bytes = 64 << 10;
  small.l3 = {256 << 10, 8, 4};
  record.machine = small;
  record.machine_key = MachineKey(small);
  record.entries[0].problem = "b1_hq4_hkv4_q8192_k8192_d64_f32";
  record.entries[0].shape_class =
      ClassOf(MakeProblem(1, 4, 4, 8192, 8192, 64, 64), 2);
  Write(record);
  const RecordSet set = Load({""}, small);
  int64_t best;
  SupportedTargets(&best, 1);
  const TileChoice choice =
      ChooseTile(set, MakeProblem(1, 4, 4, 8192, 8192, 64, 64),
                 GetKernels(best, DType::kF32), small, 2);
  EXPECT_EQ(choice.tier, Tier::kAnalytical);
  EXPECT_NE(ReasonOf(choice).find("leaves the caches"), std::string::npos);
}

TEST_F(TileChoiceTest, WithoutARecordTheUserIsToldWhereAndHow) {
  const RecordSet set = Load({"/a", "/b"});
  EXPECT_EQ(Notes(set),
            "no tuning record for " + MachineKey(ThisMachine()) +
                " (looked in: " + dir_ + "/a, " + dir_ +
                "/b); using the analytical default. To tune: heed tune "
                "--budget 5m\n");
}

TEST_F(TileChoiceTest, ADamagedRecordSaysWhatToDo) {
  Write(SampleRecord());
  const std::string path = RecordPath(dir_, MachineKey(ThisMachine()));
  std::string text = ToJson(SampleRecord());
  std::ofstream(path, std::ios::trunc) << text.substr(0, 200);
  EXPECT_NE(
      Notes(Load()).find(
          "ignored " + path +
          ": truncated JSON at byte 200 (keeping the analytical default). "
          "Restore " +
          path + ".bak or run: heed tune doctor"),
      std::string::npos)
      << Notes(Load());
  fs::remove(path);
  fs::create_symlink(dir_ + "/nowhere", path);
  EXPECT_NE(Notes(Load()).find("No such file"), std::string::npos);
}

TEST_F(TileChoiceTest, APinIsTakenOrNamedAsWrong) {
  RecordSources sources;
  sources.pin = "row_block=48,tasks_per_thread=8";
  const RecordSet good = LoadRecords(sources, ThisMachine());
  EXPECT_TRUE(good.pinned);
  EXPECT_EQ(good.pin.row_block, 48);
  EXPECT_EQ(good.pin.tasks_per_thread, 8);
  sources.pin = "row_block=0";
  EXPECT_EQ(LoadRecords(sources, ThisMachine()).pin_error,
            "HEED_TUNE=pin:row_block=0: tile field row_block is '0'; expected "
            "1 to 1048576");
}

// What is committed must be of use, whatever schema it has.
TEST(ShippedRecords, AreAllRead) {
  size_t count = 0;
  for (const auto& item : fs::directory_iterator(HEED_SHIPPED_RECORDS_DIR)) {
    Record record;
    std::string why;
    const std::string path = item.path().string() + "/record.json";
    if (!fs::exists(path)) continue;
    ASSERT_TRUE(ReadRecordFile(path, &record, &why)) << path << ": " << why;
    EXPECT_EQ(record.machine_key, item.path().filename().string());
    EXPECT_EQ(MachineKey(record.machine), record.machine_key);
    EXPECT_GE(record.entries.size(), 5u) << path;
    // The machine that it was made for finds every entry.
    RecordSources sources;
    sources.dirs = {HEED_SHIPPED_RECORDS_DIR};
    const RecordSet set = LoadRecords(sources, record.machine);
    ASSERT_FALSE(set.records.empty());
    EXPECT_EQ(set.records[0].tier, Tier::kExact);
    ++count;
  }
  EXPECT_GE(count, 1u);
}

}  // namespace
}  // namespace heed::test
