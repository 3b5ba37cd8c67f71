// What `heed run` cannot use it names, and nothing is written.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/include/heed.h"
#include "tests/cli_fixture.h"
#include "tune/npy.h"

namespace heed {
namespace {

class RunErrorTest : public CliFixture {
 protected:
  void SetUp() override {
    CliFixture::SetUp();
    WriteInputs();
  }

  // q of 3 sequences in one run of 37 tokens.
  void PackQ() const {
    WriteTensor("q.npy", {37, 4, 24}, 4);
    const std::vector<int32_t> starts = {0, 5, 5, 37};
    WriteFile("cu_q.npy", NpyType::kInt32, {4}, starts.data());
  }

  void ExpectRunFailure(const std::string& options, int code,
                        const std::string& says) const {
    ExpectFailure(kRun + options, code, says);
  }
};

TEST_F(RunErrorTest, WrongOptionsExitWithTwo) {
  ExpectRunFailure("--window 4", 2, "--window");
  ExpectRunFailure("--window 4,x --align top_left", 2, "--window");
  ExpectRunFailure("--window 4,0", 2, "--window needs --align");
  ExpectRunFailure("--alibi auto", 2, "--alibi needs --align");
  ExpectRunFailure("--align top_left", 2, "expected one of them");
  ExpectRunFailure("--align left --window 1,1", 2, "left not in");
  ExpectRunFailure("--align top_left --window 1,1 --causal top_left", 2,
                   "expected no --align with --causal top_left");
  ExpectRunFailure("--align offset --window 1,1", 2,
                   "--align offset; expected --causal-offset");
  ExpectRunFailure("--align top_left --window 1,1 --causal-offset 3", 2,
                   "--align top_left; expected offset");
  ExpectRunFailure("--mask-block 4x4", 2, "--mask");
  for (const char* block : {"4", "x4", "4x", "0x4", "4x-1", "4x4x4", "a"}) {
    ExpectRunFailure(std::string("--mask m.npy --mask-block ") + block, 2,
                     "expected QxK");
  }
  ExpectRunFailure("--softcap much", 2, "--softcap");
  ExpectRunFailure("--scores raw s.npy", 2, "raw not in");
  ExpectRunFailure("--scores capped", 2, "--scores");
  ExpectRunFailure("--weights o.npy", 2,
                   "--weights and --out name the same file");
  ExpectRunFailure("--scores capped s.npy --lse s.npy", 2, "same file");
  ExpectRunFailure("--causal-offsets a.npy --causal-offset 1", 2, "excludes");
  ExpectRunFailure("--causal-offsets a.npy --causal top_left", 2, "excludes");
  ExpectRunFailure("--cu-seqlens-k a.npy --block-table t.npy", 2, "excludes");
}

TEST_F(RunErrorTest, MasksThatDoNotFitAreNamed) {
  const std::vector<double> zeros(2 * 4 * 37 * 53);
  const auto mask = [&](NpyType type, const std::vector<int64_t>& shape) {
    WriteFile("m.npy", type, shape, zeros.data());
  };
  ExpectRunFailure("--mask no.npy", 1, "no.npy: No such file");
  mask(NpyType::kInt64, {37, 53});
  ExpectRunFailure("--mask m.npy", 1,
                   "m.npy: dtype '<i8' (expected bool, uint8 or float32)");
  mask(NpyType::kFloat16, {37, 53});
  ExpectRunFailure("--mask m.npy", 1, "m.npy: dtype '<f2' (expected bool");
  mask(NpyType::kBool, {53});
  ExpectRunFailure("--mask m.npy", 1,
                   "m.npy: 1 dimensions (53) (expected 2 to 4)");
  mask(NpyType::kBool, {36, 53});
  ExpectRunFailure("--mask m.npy", 1,
                   "m.npy: dimension 0 is 36; expected 37, the queries, or 1");
  mask(NpyType::kBool, {2, 1, 37, 52});
  ExpectRunFailure("--mask m.npy", 1,
                   "m.npy: dimension 3 is 52; expected 53, the keys, or 1");
  mask(NpyType::kBool, {2, 37, 53});
  ExpectRunFailure("--mask m.npy", 1,
                   "m.npy: dimension 0 is 2; expected 4, the heads of q, or 1");
  mask(NpyType::kFloat32, {5, 4});
  ExpectRunFailure("--mask m.npy --mask-block 8x16", 1,
                   "m.npy: float32 elements; expected bool or uint8");
  mask(NpyType::kBool, {37, 53});
  ExpectRunFailure("--mask m.npy --mask-block 8x16", 1,
                   "m.npy: dimension 0 is 37; expected 5");
  WriteInputs(HEED_BF16);
  mask(NpyType::kFloat16, {37, 53});
  ExpectRunFailure("--mask m.npy --dtype bf16", 1,
                   "expected bool, uint8, float32 or uint16 for bfloat16");
}

TEST_F(RunErrorTest, AMaskThatTakesMoreMemoryThanThereIsIsNamed) {
  constexpr int64_t kKeys = int64_t{1} << 60;  // heads of no width
  WriteTensor("q.npy", {1, 1, 16, 0}, 1);
  WriteTensor("k.npy", {1, 1, kKeys, 0}, 2);
  WriteTensor("v.npy", {1, 1, kKeys, 0}, 3);
  const std::vector<float> zeros(16);
  WriteFile("m.npy", NpyType::kFloat32, {16, 1}, zeros.data());
  ExpectRunFailure("--mask m.npy", 1,
                   "m.npy: no memory for 16 rows of 1152921504606846976 keys");
}

TEST_F(RunErrorTest, FilesOfOneDimensionThatDoNotFitAreNamed) {
  const std::vector<int64_t> numbers = {0, 53, int64_t{1} << 33, 0};
  const std::vector<float> floats = {1, 2, 3};
  WriteFile("i3.npy", NpyType::kInt64, {3}, numbers.data());
  WriteFile("i2.npy", NpyType::kInt64, {2}, numbers.data() + 1);
  WriteFile("f3.npy", NpyType::kFloat32, {3}, floats.data());
  ExpectRunFailure("--sinks f3.npy", 1,
                   "f3.npy: dimension 0 is 3; expected 4, as q's heads");
  ExpectRunFailure("--alibi f3.npy --causal top_left", 1,
                   "f3.npy: dimension 0 is 3; expected 4, as q's heads");
  ExpectRunFailure("--sinks i3.npy", 1,
                   "i3.npy: dtype '<i8' (expected float32)");
  ExpectRunFailure("--alibi q.npy --causal top_left", 1,
                   "q.npy: 4 dimensions (2, 4, 37, 24) (expected 1)");
  ExpectRunFailure("--seqused-k f3.npy", 1,
                   "f3.npy: dtype '<f4' (expected int32 or int64)");
  ExpectRunFailure("--seqused-k i2.npy", 1,
                   "i2.npy: element 1 is 8589934592; expected 32 bits");
  ExpectRunFailure("--causal-offsets i3.npy", 1,
                   "i3.npy: dimension 0 is 3; expected 2, as q's batch");
  const std::vector<int32_t> used = {1, 54};
  WriteFile("u.npy", NpyType::kInt32, {2}, used.data());
  ExpectRunFailure("--seqused-k u.npy", 1,
                   "seqused_k of sequence 1 is 54; expected 0 to 53");
  ExpectRunFailure("--softcap -1", 1, "softcap is -1");
  ExpectRunFailure("--window -2,0 --causal top_left", 1, "window_left is -2");
}

TEST_F(RunErrorTest, SequencesThatDoNotFitAreNamed) {
  ExpectRunFailure("--cu-seqlens-q cu.npy", 1,
                   "q.npy: 4 dimensions (2, 4, 37, 24) (expected 3)");
  PackQ();
  ExpectRunFailure("", 1, "q.npy: 3 dimensions (37, 4, 24) (expected 4)");
  ExpectRunFailure("--cu-seqlens-q cu_q.npy", 1,
                   "k.npy: dimension 0 is 2; expected 3, as cu_seqlens_q's "
                   "sequences");
  const auto starts = [this](const std::vector<int32_t>& values) {
    WriteFile("cu.npy", NpyType::kInt32, {static_cast<int64_t>(values.size())},
              values.data());
  };
  starts({0, 5, 36});
  ExpectRunFailure("--cu-seqlens-q cu.npy", 1,
                   "cu.npy: the last element is 36; expected 37, the tokens "
                   "of q");
  starts({0, 40, 37});
  ExpectRunFailure("--cu-seqlens-q cu.npy", 1, "cu_seqlens_q of sequence 1");
  starts({1, 4, 37});
  ExpectRunFailure("--cu-seqlens-q cu.npy", 1, "cu_seqlens_q begins with 1");
  starts({});
  ExpectRunFailure("--cu-seqlens-q cu.npy", 1, "cu.npy: 0 elements");
  WriteTensor("k.npy", {53, 2, 24}, 5);
  WriteTensor("v.npy", {53, 2, 20}, 6);
  starts({0, 53});
  ExpectRunFailure("--cu-seqlens-q cu_q.npy --cu-seqlens-k cu.npy", 1,
                   "cu.npy: 1 sequences; expected 3");
}

TEST_F(RunErrorTest, TablesThatDoNotFitAreNamed) {
  WriteTensor("k.npy", {3, 2, 16, 24}, 5);
  WriteTensor("v.npy", {3, 2, 16, 20}, 6);
  const std::vector<int32_t> table = {0, 1, 2, 3, 0, -1};
  WriteFile("t.npy", NpyType::kInt32, {2, 2}, table.data());
  ExpectRunFailure("--block-table t.npy", 1,
                   "block_table of sequence 1: entry 1 is 3; expected 0 to 2");
  WriteFile("t.npy", NpyType::kInt32, {3, 2}, table.data());
  ExpectRunFailure("--block-table t.npy", 1,
                   "t.npy: dimension 0 is 3; expected 2, as q's batch");
  WriteFile("t.npy", NpyType::kInt32, {4}, table.data());
  ExpectRunFailure("--block-table t.npy", 1,
                   "t.npy: 1 dimensions (4) (expected 2)");
  WriteTensor("v.npy", {2, 2, 16, 20}, 6);
  ExpectRunFailure("--block-table t.npy", 1,
                   "v.npy: dimension 0 is 2; expected 3, as k's pages");
  WriteTensor("k.npy", {3, 2, 0, 24}, 5);
  WriteTensor("v.npy", {3, 2, 0, 20}, 6);
  WriteFile("t.npy", NpyType::kInt32, {2, 2}, table.data());
  ExpectRunFailure("--block-table t.npy", 1,
                   "k.npy: dimension 2 is 0; expected the keys of a page");
}

TEST_F(RunErrorTest, AFailureLeavesEveryOutputUntouched) {
  for (const char* name : {"o.npy", "l.npy", "s.npy"}) {
    WriteFile(name, NpyType::kUint8, {1}, "x");
  }
  const std::string old = Slurp("o.npy");
  ExpectRunFailure("--lse l.npy --scores scaled s.npy --weights no/w.npy", 1,
                   "no/w.npy");
  for (const char* name : {"o.npy", "l.npy", "s.npy"}) {
    EXPECT_EQ(Slurp(name), old) << name;
  }
}

}  // namespace
}  // namespace heed
