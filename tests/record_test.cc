// Tuning records as text: what is written reads back, and nothing that is read
// can do harm.
#include "runtime/record.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/tile_model.h"
#include "tests/attention_case.h"
#include "tests/record_samples.h"

namespace heed::test {
namespace {

bool Parses(const std::string& text) {
  Record record;
  std::string why;
  const bool parsed = FromJson(text, &record, &why);
  EXPECT_TRUE(parsed || !why.empty()) << "no reason given";
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  return parsed;
}

// What a parsed record may hold, whoever wrote it.
void ExpectHarmless(const Record& record, const std::string& where) {
  for (const RecordEntry& entry : record.entries) {
    for (const Tile& tile : {entry.tile, entry.default_tile}) {
      EXPECT_GE(tile.row_block, 1u) << where;
      EXPECT_LE(tile.row_block, kMaxRowBlock) << where;
      EXPECT_GE(tile.key_tile, kStep) << where;
      EXPECT_LE(tile.key_tile, kMaxKeyTile) << where;
      EXPECT_EQ(tile.key_tile % kStep, 0u) << where;
    }
  }
}

std::string Replaced(std::string text, const std::string& from,
                     const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

TEST(Record, RoundTripsThroughText) {
  const Record record = SampleRecord();
  Record back;
  std::string why;
  ASSERT_TRUE(FromJson(ToJson(record), &back, &why)) << why;
  EXPECT_EQ(ToJson(back), ToJson(record));
  EXPECT_EQ(back.machine_key, record.machine_key);
  EXPECT_EQ(back.machine.targets, record.machine.targets);
  ASSERT_EQ(back.entries.size(), record.entries.size());
  EXPECT_EQ(back.entries[1].tile, record.entries[1].tile);
  EXPECT_EQ(back.entries[1].shape_class, record.entries[1].shape_class);
  EXPECT_EQ(back.entries[1].gain, record.entries[1].gain);
}

TEST(Record, CutAnywhereIsRefused) {
  const std::string text = ToJson(SampleRecord());
  // All but the newline at the end.
  for (size_t size = 0; size + 1 < text.size(); ++size) {
    ASSERT_FALSE(Parses(text.substr(0, size))) << size;
  }
}

TEST(Record, WithAnyByteFlippedIsRefusedOrHarmless) {
  const std::string text = ToJson(SampleRecord());
  for (size_t i = 0; i < text.size(); ++i) {
    for (const int mask : {0x01, 0x10, 0x80, 0xFF}) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ mask);
      Record record;
      std::string why;
      if (!FromJson(flipped, &record, &why)) continue;
      ExpectHarmless(record, "byte " + std::to_string(i));
    }
  }
}

TEST(Record, OfANewerSchemaIsRefused) {
  const std::string text = ToJson(SampleRecord());
  EXPECT_FALSE(
      Parses(Replaced(text, "\"schema_version\": 1", "\"schema_version\": 2")));
  EXPECT_FALSE(Parses(Replaced(text, "heed-tuning", "heed-something")));
}

TEST(Record, WithATileOutOfRangeIsRefused) {
  const std::string text = ToJson(SampleRecord());
  for (const char* value : {"-1", "0", "99999999", "1.5", "\"96\"", "null",
                            "1e99", "18446744073709551616"}) {
    EXPECT_FALSE(Parses(Replaced(text, "\"row_block\": 96",
                                 std::string("\"row_block\": ") + value)))
        << value;
    EXPECT_FALSE(Parses(Replaced(text, "\"key_tile\": 192",
                                 std::string("\"key_tile\": ") + value)))
        << value;
  }
  EXPECT_FALSE(
      Parses(Replaced(text, "\"key_tile\": 192", "\"key_tile\": 100")));
  EXPECT_FALSE(Parses(Replaced(text, "\"f32\"", "\"f31\"")));
}

TEST(Record, GarbageIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"),
        std::string("null"), std::string("3"),
        std::string("\xFF\xFE\x00\x01", 4), std::string(1 << 16, '['),
        std::string(5 << 20, ' '),
        std::string("{\"schema\": \"heed-tuning\"}")}) {
    EXPECT_FALSE(Parses(text)) << text.substr(0, 40);
  }
}

TEST(Record, FindsTheSameClassOrTheNearestLengthsWithinAFactorOfTwo) {
  const Record record = SampleRecord();
  const heed_problem exact =
      MakeProblem(1, 4, 4, 1000, 1000, 64, 64, HEED_CAUSAL_TOP_LEFT);
  const std::string target = record.entries[0].target;
  EXPECT_EQ(Find(record, ClassOf(exact, 2), target), &record.entries[0]);
  heed_problem longer = exact;
  longer.len_k = 1500;
  EXPECT_EQ(Find(record, ClassOf(longer, 2), target), &record.entries[0]);
  longer.len_k = 5000;
  EXPECT_EQ(Find(record, ClassOf(longer, 2), target), nullptr);
  EXPECT_EQ(Find(record, ClassOf(exact, 2), "OTHER"), nullptr);
  heed_problem wider = exact;
  wider.dim_qk = 65;
  EXPECT_EQ(Find(record, ClassOf(wider, 2), target), nullptr);
  wider = exact;
  wider.causal = HEED_CAUSAL_NONE;
  EXPECT_EQ(Find(record, ClassOf(wider, 2), target), nullptr);
}

TEST(Record, ClassesCoverEveryLengthWithoutOverflow) {
  for (const int64_t length :
       {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{127}, int64_t{128},
        int64_t{129}, int64_t{1} << 40, INT64_MAX}) {
    heed_problem problem = MakeProblem(1, 4, 2, length, length, 64, 64);
    const ShapeClass c = ClassOf(problem, 1);
    EXPECT_GE(c.len_q, 1);
    EXPECT_GE(c.len_k, 1);
    EXPECT_FALSE(ToString(c).empty());
  }
}

}  // namespace
}  // namespace heed::test
