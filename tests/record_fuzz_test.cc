// Records that somebody damaged or forged: they never crash, never change a
// result, and never make a plan run a tile that it could not.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/tile_choice.h"
#include "runtime/tile_model.h"
#include "tests/attention_case.h"
#include "tests/input_families.h"
#include "tests/record_damage.h"
#include "tests/record_samples.h"

namespace heed::test {
namespace {

heed_problem SmallProblem() {
  return MakeProblem(1, 2, 1, 40, 120, 16, 16, HEED_CAUSAL_BOTTOM_RIGHT);
}

// A record with an entry that the small problem would take.
Record SmallRecord() {
  Record record = SampleRecord();
  record.entries[0].shape_class = ClassOf(SmallProblem(), 1);
  record.entries[0].problem = "b1_hq2_hkv1_q40_k120_d16_causalbr_f32";
  return record;
}

std::string Damaged(const std::string& good, std::mt19937_64* random) {
  std::string text = good;
  switch ((*random)() % 5) {
    case 0:  // bits
      for (int i = 0; i < 3; ++i) {
        text[(*random)() % text.size()] ^=
            static_cast<char>(1 << (*random)() % 8);
      }
      return text;
    case 1:  // cut
      return text.substr(0, (*random)() % text.size());
    case 2: {  // forged: changed and sealed again
      Json json = Json::parse(text);
      for (uint64_t i = 0; i <= (*random)() % 4; ++i) {
        ChangeSomething(&json, random);
      }
      return Seal(json);
    }
    case 3: {  // foreign or from the future
      Json json = Json::parse(text);
      if ((*random)() % 2 == 0) {
        json["schema_version"] = 3 + (*random)() % 1000;
        json["min_reader"] = (*random)() % 5;
      } else {
        json["machine"]["key"] = "intel-f6m143s8";
        json["machine"]["family"] = 6;
      }
      return Seal(json);
    }
    default: {  // hostile sizes
      Json json = Json::parse(text);
      Json& config = json["entries"][0]["config"];
      config["row_block"] = 1 + (*random)() % 4096;
      config["key_tile"] = 48 * (1 + (*random)() % 16);
      config["pack_k"] = (*random)() % 3;
      config["pack_v"] = (*random)() % 3;
      config["tasks_per_worker"] = 1 + (*random)() % 64;
      config["decode_rows"] = (*random)() % 65;
      return Seal(json);
    }
  }
}

TEST(RecordFuzz, AThousandDamagedRecordsDoNoHarm) {
  const std::string good = ToJson(SmallRecord());
  std::mt19937_64 random(20260102);
  Case c = MakeCase(SmallProblem());
  Random inputs(1);
  Families().front().fill(&inputs, &c);
  const Result want = RunHeed(c);
  int64_t best;
  ASSERT_GT(SupportedTargets(&best, 1), 0u);
  const Kernels kernels = GetKernels(best, DType::kF32);
  size_t taken = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = Damaged(good, &random);
    Record record;
    std::string why;
    if (!FromJson(text, &record, &why)) {
      EXPECT_FALSE(why.empty());
      EXPECT_EQ(why.find('\n'), std::string::npos) << why;
      continue;
    }
    RecordSet set;
    set.records.push_back(
        {"fuzzed", TierBetween(record, ThisMachine()), record});
    const std::string target = kernels.target;
    set.index.Add(set.records[0], [&target](const std::string& name) {
      return name == target;
    });
    const TileChoice choice =
        ChooseTile(set, SmallProblem(), kernels, ThisMachine(), 1);
    ASSERT_TRUE(FeasibleTile(choice.tile, SmallProblem(), kernels)) << text;
    ASSERT_GE(choice.cut.tasks_per_worker, 1u);
    ASSERT_LE(choice.cut.tasks_per_worker, kMaxTasksPerWorker);
    ASSERT_LE(choice.cut.decode_rows, kMaxDecodeRows);
    if (choice.hit == nullptr) continue;
    ++taken;
    // What it would have the library run gives the same bits.
    Settings settings;
    settings.pinned = true;
    settings.tile = PublicTile(choice.config());
    ASSERT_EQ(Difference(RunHeed(c, settings), want), "") << text;
  }
  // Not all of them are refused, or this would show nothing.
  EXPECT_GE(taken, 100u);
}

}  // namespace
}  // namespace heed::test
