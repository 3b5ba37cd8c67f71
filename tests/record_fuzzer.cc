// libFuzzer's entry points for tuning records: whatever the text, it is refused
// with a line or is a record that can be run and written again. With clang:
//   cmake --preset asan -DHEED_BUILD_FUZZERS=ON -DCMAKE_C_COMPILER=clang
//         -DCMAKE_CXX_COMPILER=clang++
//   build/asan/heed_record_fuzzer -max_len=16384 -max_total_time=600 CORPUS
// tests/record_fuzz_test.cc walks the same way without it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "runtime/config.h"
#include "runtime/tile_model.h"
#include "tests/record_damage.h"
#include "tests/record_samples.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace heed {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

void DemandRange(const Config& config) {
  const Tile& tile = config.tile;
  const bool in_range =
      tile.row_block >= 1 && tile.row_block <= kMaxRowBlock &&
      tile.key_tile >= kStep && tile.key_tile <= kMaxKeyTile &&
      tile.key_tile % kStep == 0 && config.cut.tasks_per_worker >= 1 &&
      config.cut.tasks_per_worker <= kMaxTasksPerWorker &&
      config.cut.decode_rows <= kMaxDecodeRows;
  if (!in_range) Fail("out of range: " + ToString(config));
}

void TryText(const std::string& text) {
  Record record;
  std::string why;
  if (!FromJson(text, &record, &why)) {
    if (why.empty() || why.find('\n') != std::string::npos) {
      Fail("no line of reason: \"" + why + "\"");
    }
    return;
  }
  for (const RecordEntry& entry : record.entries) {
    DemandRange(entry.config);
    DemandRange(entry.default_config);
  }
  Record again;
  const std::string written = ToJson(record);
  if (written.size() <= kMaxRecordBytes && !FromJson(written, &again, &why)) {
    Fail("does not read back: " + why);
  }
}

}  // namespace
}  // namespace heed

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(data, data + size);
  heed::TryText(text);
  // Once more with the right hash, or nothing but the hash would be tried.
  if (std::count(text.begin(), text.end(), '[') +
          std::count(text.begin(), text.end(), '{') >
      2000) {
    return 0;
  }
  const heed::Json json =
      heed::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) heed::TryText(heed::test::Seal(json));
  return 0;
}

// Half of the changes are of members; now and then it begins anew from a whole
// record, so that no folder of seeds is needed.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max_size, unsigned seed) {
  static const std::string whole = heed::ToJson(heed::test::SampleRecord());
  std::mt19937_64 random(seed);
  std::string input(data, data + size);
  if (size < 2 || random() % 128 == 0) input = whole;
  if (random() % 2 == 0) {
    heed::Json json =
        heed::Json::parse(input, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) json = heed::Json::parse(whole);
    heed::test::ChangeSomething(&json, &random);
    input = json.dump(-1, ' ', false, heed::Json::error_handler_t::replace);
  }
  input.resize(std::min(input.size(), max_size));
  std::memcpy(data, input.data(), input.size());
  return random() % 2 == 0 ? input.size()
                           : LLVMFuzzerMutate(data, input.size(), max_size);
}
