// Tuning records as text: what is written reads back, and nothing that is read
// can do harm.
#include "runtime/record.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/record_text.h"
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
    for (const Tile& tile : {entry.config.tile, entry.default_config.tile}) {
      EXPECT_GE(tile.row_block, 1u) << where;
      EXPECT_LE(tile.row_block, kMaxRowBlock) << where;
      EXPECT_GE(tile.key_tile, kStep) << where;
      EXPECT_LE(tile.key_tile, kMaxKeyTile) << where;
      EXPECT_EQ(tile.key_tile % kStep, 0u) << where;
    }
    for (const Cut& cut : {entry.config.cut, entry.default_config.cut}) {
      EXPECT_GE(cut.tasks_per_worker, 1u) << where;
      EXPECT_LE(cut.tasks_per_worker, kMaxTasksPerWorker) << where;
      EXPECT_LE(cut.decode_rows, kMaxDecodeRows) << where;
    }
  }
}

// The text with its hash made right again: what somebody who means harm would
// do.
std::string Resealed(const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("integrity")) return text;
  json["integrity"]["value"] = IntegrityOf(json);
  return json.dump(1);
}

std::string WhyNot(const std::string& text) {
  Record record;
  std::string why;
  EXPECT_FALSE(FromJson(text, &record, &why));
  return why;
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
  EXPECT_EQ(back.entries[1].config, record.entries[1].config);
  EXPECT_EQ(back.entries[1].shape_class, record.entries[1].shape_class);
  EXPECT_EQ(back.entries[0].gain.median, record.entries[0].gain.median);
  EXPECT_EQ(back.entries[0].guards.size(), 1u);
  EXPECT_EQ(back.runs[0].argv, record.runs[0].argv);
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

TEST(Record, AnyChangedByteThatCountsBreaksTheHash) {
  const std::string text = ToJson(SampleRecord());
  const std::string why = WhyNot(Replaced(text, "1.0625", "1.0725"));
  EXPECT_EQ(why,
            "integrity: the hash does not match, so the file is damaged or was "
            "edited by hand");
  // White space does not count.
  EXPECT_TRUE(Parses(Json::parse(text).dump()));
}

TEST(Record, OfANewerSchemaIsRefusedIfItsWriterSaysSo) {
  const std::string text = ToJson(SampleRecord());
  EXPECT_TRUE(Parses(Resealed(
      Replaced(text, "\"schema_version\": 2", "\"schema_version\": 3"))));
  std::string newer =
      Replaced(text, "\"schema_version\": 2", "\"schema_version\": 3");
  newer = Replaced(newer, "\"min_reader\": 2", "\"min_reader\": 3");
  EXPECT_EQ(WhyNot(Resealed(newer)),
            "record schema 3 is newer than this library understands (2); "
            "upgrade the library or re-tune");
  EXPECT_FALSE(Parses(Resealed(Replaced(text, "heed-tuning", "heed-other"))));
}

TEST(Record, UnknownMembersAreIgnoredAndUnknownTunablesSkipTheEntry) {
  Json json = Json::parse(ToJson(SampleRecord()));
  json["flavour"] = "new";
  json["entries"][0]["mood"] = 3;
  Record record;
  std::string why;
  ASSERT_TRUE(FromJson(Resealed(json.dump()), &record, &why)) << why;
  EXPECT_EQ(record.entries.size(), 2u);
  json["entries"][0]["config"]["warp"] = 9;
  ASSERT_TRUE(FromJson(Resealed(json.dump()), &record, &why)) << why;
  EXPECT_EQ(record.entries.size(), 1u);
  ASSERT_EQ(record.notes.size(), 1u);
  EXPECT_EQ(record.notes[0],
            "1 of 2 entries skipped: entries[0]: unknown tunable \"warp\"");
}

TEST(Record, TheSameClassTwiceIsRefused) {
  Json json = Json::parse(ToJson(SampleRecord()));
  json["entries"].push_back(json["entries"][0]);
  EXPECT_EQ(WhyNot(Resealed(json.dump())),
            "entries[2]: the class f32_d64_dv64_causal_g1_q1024_k1024_many_t2 "
            "is there already");
}

TEST(Record, WithATileOutOfRangeIsRefused) {
  const std::string text = ToJson(SampleRecord());
  for (const char* value :
       {"-1", "0", "99999999", "1.5", "\"96\"", "null", "1e9",
        "18446744073709551616", "NaN", "-Infinity", "1e999"}) {
    EXPECT_FALSE(Parses(Resealed(Replaced(
        text, "\"row_block\": 96", std::string("\"row_block\": ") + value))))
        << value;
    EXPECT_FALSE(Parses(Resealed(Replaced(
        text, "\"key_tile\": 192", std::string("\"key_tile\": ") + value))))
        << value;
    EXPECT_FALSE(Parses(
        Resealed(Replaced(text, "\"tasks_per_worker\": 8",
                          std::string("\"tasks_per_worker\": ") + value))))
        << value;
  }
  EXPECT_EQ(WhyNot(Resealed(
                Replaced(text, "\"key_tile\": 192", "\"key_tile\": 100"))),
            "entries[0].config.key_tile: expected a multiple of 48");
  EXPECT_FALSE(Parses(Resealed(Replaced(text, "\"f32\"", "\"f31\""))));
  EXPECT_FALSE(Parses(Resealed(
      Replaced(text, "\"decision\": \"adopted\"", "\"decision\": \"yes\""))));
  EXPECT_FALSE(Parses(
      Resealed(Replaced(text, "\"median\": 1.0625", "\"median\": 9.5"))));
  for (const char* value : {"NaN", "Infinity", "1e999", "null"}) {
    for (const char* member :
         {"\"median\": 1.0625", "\"default_us\": 1062.5"}) {
      const std::string name = member;
      const std::string other = name.substr(0, name.find(' ') + 1) + value;
      EXPECT_FALSE(Parses(Resealed(Replaced(text, name, other)))) << other;
    }
  }
}

TEST(Record, SaysWhereATextIsCut) {
  const std::string text = ToJson(SampleRecord());
  EXPECT_EQ(WhyNot(text.substr(0, 100)), "truncated JSON at byte 100");
  EXPECT_EQ(WhyNot("{\"schema\" 3}").rfind("not valid JSON at byte", 0), 0u);
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
