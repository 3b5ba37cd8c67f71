// Byte equality of heed with the scalar row program, for every fused target,
// over inputs that can see a mistake, shapes that straddle every edge, and
// tiles that differ in every field.
//
// A plain program, so that it can be cross-compiled with nothing but the
// library:
//   heed_bits_test [--quick]
// prints one line per property and exits 0 if all hold. --quick is for
// emulators.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/block_case.h"
#include "tests/block_program.h"
#include "tests/input_families.h"
#include "tests/kernel_call.h"
#include "tests/random_case.h"
#include "tests/row_program.h"

namespace heed::test {
namespace {

struct Shape {
  int64_t batch, heads_q, heads_kv, len_q, len_k, dim_qk, dim_v;
  int32_t causal = HEED_CAUSAL_NONE;
  int64_t causal_offset = 0;
};

constexpr int32_t kNone = HEED_CAUSAL_NONE;
constexpr int32_t kTopLeft = HEED_CAUSAL_TOP_LEFT;
constexpr int32_t kBottomRight = HEED_CAUSAL_BOTTOM_RIGHT;
constexpr int32_t kOffset = HEED_CAUSAL_OFFSET;

// Every family runs on these: lengths around a vector, a step, two steps and a
// chunk, primes, and head widths of every kind.
const std::vector<Shape>& EdgeShapes() {
  static const std::vector<Shape> shapes = {
      {1, 1, 1, 1, 1, 1, 1},
      {1, 1, 1, 7, 47, 64, 64, kTopLeft},
      {1, 2, 1, 9, 48, 3, 5, kBottomRight},
      {2, 1, 1, 8, 49, 15, 15},
      {1, 2, 2, 17, 95, 40, 40, kTopLeft},
      {1, 3, 1, 15, 96, 80, 24, kBottomRight},
      {1, 1, 1, 49, 97, 64, 64, kBottomRight},
      {1, 4, 2, 16, 101, 128, 128, kOffset, 31},
      {1, 1, 1, 97, 101, 8, 16, kTopLeft},
      {1, 1, 1, 3, 767, 64, 33, kBottomRight},
      {1, 1, 1, 2, 768, 33, 64, kBottomRight},
      {1, 1, 1, 5, 769, 16, 7, kOffset, 766},
      {1, 5, 1, 1, 1543, 24, 24},
      {1, 1, 1, 4, 1601, 128, 40, kBottomRight},
  };
  return shapes;
}

// The rest run on a few families: the packing of rows across a group, and every
// kind of causal line.
const std::vector<Shape>& RowShapes() {
  static const std::vector<Shape> shapes = {
      {1, 1, 1, 47, 53, 16, 16, kTopLeft},
      {2, 4, 2, 48, 48, 16, 16, kTopLeft},
      {1, 3, 1, 13, 31, 16, 16, kTopLeft},
      {1, 8, 2, 11, 61, 16, 16, kBottomRight},
      {1, 5, 1, 23, 59, 16, 16, kBottomRight},
      {3, 7, 1, 5, 50, 16, 16, kBottomRight},
      {1, 8, 1, 19, 67, 16, 16, kTopLeft},
      {1, 24, 2, 7, 113, 16, 16, kBottomRight},
      {1, 12, 1, 1, 800, 16, 16, kBottomRight},
      {1, 2, 1, 61, 17, 16, 16, kTopLeft},
      {1, 2, 1, 61, 17, 16, 16, kBottomRight},
      {1, 2, 1, 61, 17, 16, 16, kNone},
      {1, 1, 1, 40, 60, 16, 16, kOffset, -7},
      {1, 1, 1, 40, 60, 16, 16, kOffset, -39},
      {1, 1, 1, 40, 60, 16, 16, kOffset, -1000},
      {1, 1, 1, 40, 60, 16, 16, kOffset, 19},
      {1, 1, 1, 40, 60, 16, 16, kOffset, 1000},
      {1, 1, 1, 40, 60, 16, 16, kOffset, INT64_MIN},
      {1, 1, 1, 40, 60, 16, 16, kOffset, INT64_MAX},
      {1, 1, 1, 33, 830, 4, 4, kOffset, 760},
      {1, 1, 1, 131, 131, 256, 256, kTopLeft},
      {1, 2, 1, 3, 50, 0, 6},
      {1, 2, 1, 3, 50, 6, 0, kBottomRight},
      {1, 1, 1, 10, 200, 1, 160},
      {1, 1, 1, 10, 200, 257, 1},
      {1, 1, 1, 210, 100, 9, 17, kTopLeft},
  };
  return shapes;
}

Case CaseOf(const Shape& s, const Family& family, uint64_t seed) {
  Case c = MakeCase(MakeProblem(s.batch, s.heads_q, s.heads_kv, s.len_q,
                                s.len_k, s.dim_qk, s.dim_v, s.causal),
                    s.causal_offset);
  Random random(seed);
  family.fill(&random, &c);
  return c;
}

// Prints one line for a property when it goes out of scope.
class Property {
 public:
  Property(const std::string& name, int* failures)
      : name_(name), failures_(failures) {}
  ~Property() {
    if (detail_.empty()) {
      std::printf("ok    %s (%d comparisons)\n", name_.c_str(), count_);
    } else {
      std::printf("FAIL  %s (%d of %d): %s\n", name_.c_str(), failed_, count_,
                  detail_.c_str());
      ++*failures_;
    }
    std::fflush(stdout);
  }
  Property(const Property&) = delete;
  Property& operator=(const Property&) = delete;

  // An empty `difference` holds.
  void Expect(const std::string& difference, const std::string& where) {
    ++count_;
    if (difference.empty()) return;
    if (failed_++ == 0) detail_ = where + ": " + difference;
  }

 private:
  std::string name_;
  int* failures_;
  int count_ = 0, failed_ = 0;
  std::string detail_;
};

void ExpectRowProgramBits(const Case& c, const Family& family, bool quick,
                          Property* property) {
  const Result want = RunRowProgram(c);
  std::vector<Settings> all;
  for (const std::string& target : TargetNames(/*fused_only=*/true)) {
    Settings settings;
    settings.target = target;
    settings.runner = SerialRunner();
    all.push_back(settings);
    settings.pinned = true;
    for (const heed_tile& tile : VariedTiles()) {
      settings.tile = tile;
      all.push_back(settings);
      if (quick && all.size() % 3 == 0) break;
    }
  }
  for (const Settings& settings : all) {
    property->Expect(Difference(RunHeed(c, settings), want),
                     family.name + " " + NameOf(c) + " " + NameOf(settings));
  }
}

void CheckFamilies(bool quick, int* failures) {
  for (const Family& family : Families()) {
    Property property("SameBitsAsTheRowProgram/" + family.name, failures);
    uint64_t seed = 1;
    for (const Shape& shape : EdgeShapes()) {
      if (quick && shape.len_k > 800) continue;
      ExpectRowProgramBits(CaseOf(shape, family, seed++), family, quick,
                           &property);
    }
  }
}

void CheckRows(bool quick, int* failures) {
  for (const char* name : {"normal", "climbing_with_outliers", "visible_nan"}) {
    for (const Family& family : Families()) {
      if (family.name != name) continue;
      Property property("SameBitsForAnyGroupAndCausalLine/" + family.name,
                        failures);
      uint64_t seed = 100;
      for (const Shape& shape : RowShapes()) {
        ExpectRowProgramBits(CaseOf(shape, family, seed++), family, quick,
                             &property);
      }
    }
  }
}

// Each option by itself, then all together by chance: through heed, and on the
// kernels' table with each of its paths.
void CheckOptions(bool quick, int* failures) {
  const struct {
    const char* name;
    uint32_t wanted;
  } options[] = {{"window", kWindow | kPlain},
                 {"soft_cap", kSoftCap | kPlain},
                 {"alibi", kAlibi | kPlain},
                 {"bool_mask", kBoolMask | kPlain},
                 {"block_mask", kBlocks | kPlain},
                 {"additive_mask", kAdditiveMask | kPlain},
                 {"sinks", kSinks | kPlain},
                 {"ragged", kRagged | kPlain},
                 {"pages", kPages | kPlain},
                 {"decode", kDecode | kPlain},
                 {"any", 0}};
  const std::vector<std::string> targets = TargetNames(/*fused_only=*/true);
  for (const auto& option : options) {
    Property heed(std::string("SameBitsThroughHeed/") + option.name, failures);
    Property kernels(std::string("SameBitsOfEveryPath/") + option.name,
                     failures);
    const uint64_t count = quick ? 12 : 60;
    for (uint64_t seed = 1; seed <= count; ++seed) {
      const Case c = RandomCase(seed, option.wanted);
      const Result want = RunRowProgram(c);
      const std::string where =
          "seed " + std::to_string(seed) + " " + NameOf(c) + " ";
      Settings settings = RandomSettings(seed);
      settings.runner = SerialRunner();
      settings.target = targets[seed % targets.size()];
      heed.Expect(Difference(RunHeed(c, settings), want),
                  where + NameOf(settings));
      const KernelCut cut = RandomCut(seed, c.problem);
      Result got;
      const heed_call call = DenseCall(c, &got);
      RunKernels(c.problem, call, cut);
      kernels.Expect(Difference(got, want), where + NameOf(cut));
    }
  }
}

// Whole attention blocks: norms, projections and RoPE have bits of their own.
void CheckBlocks(bool quick, int* failures) {
  Property property("SameBitsOfBlocks", failures);
  const uint64_t count = quick ? 25 : 100;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    const BlockCase c = RandomBlock(10000 + seed);
    const BlockValues want = BlockProgram(c);
    for (const std::string& target : TargetNames(/*fused_only=*/true)) {
      Settings settings;
      settings.target = target;
      settings.runner = SerialRunner();
      property.Expect(
          Difference(RunBlock(c, settings), want),
          "seed " + std::to_string(seed) + " " + target + " " + NameOf(c));
    }
  }
}

// The negative control. A program that takes the running maximum once per key
// tile instead of once per step gives the same floats on ordinary numbers; the
// families must tell it apart.
void CheckMutant(int* failures) {
  for (const size_t tile : {size_t{96}, size_t{192}, size_t{768}}) {
    Property property("MaximumPerTileIsCaught/" + std::to_string(tile),
                      failures);
    std::string caught;
    for (const Family& family : Families()) {
      // Rows that end at every place in a step and in a tile.
      const Case c =
          CaseOf({1, 1, 1, 100, 300, 64, 64, kBottomRight}, family, 7);
      if (!SameBits(RunRowProgram(c, tile), RunRowProgram(c))) {
        caught += " " + family.name;
      }
    }
    std::printf("      a maximum per %zu keys is seen by:%s\n", tile,
                caught.empty() ? " none" : caught.c_str());
    property.Expect(caught.empty() ? "no family sees it" : "", "mutant");
  }
}

// The whole number of tests means nothing if no target is tested.
void CheckTargets(int* failures) {
  Property property("SomeFusedTargetRuns", failures);
  for (const std::string& name : TargetNames(/*fused_only=*/true)) {
    std::printf("      target %s\n", name.c_str());
  }
  property.Expect(TargetNames(true).empty() ? "none" : "", "targets");
}

}  // namespace
}  // namespace heed::test

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  int failures = 0;
  heed::test::CheckTargets(&failures);
  heed::test::CheckMutant(&failures);
  heed::test::CheckFamilies(quick, &failures);
  heed::test::CheckRows(quick, &failures);
  heed::test::CheckOptions(quick, &failures);
  heed::test::CheckBlocks(quick, &failures);
  std::printf("%d properties failed\n", failures);
  return failures == 0 ? 0 : 1;
}
