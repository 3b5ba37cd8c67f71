// `heed run` with masks, biases and the forms of a cache: what it writes is
// what the library's call gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "runtime/include/heed.h"
#include "tests/cli_fixture.h"
#include "tune/npy.h"
#include "tune/npy_header.h"
#include "tune/run_inputs.h"
#include "tune/storage.h"

namespace heed {
namespace {

using Json = nlohmann::json;

// Bytes of which about half are 0.
std::vector<uint8_t> RandomBytes(const std::vector<int64_t>& shape) {
  std::mt19937 random(7);
  std::vector<uint8_t> bytes(static_cast<size_t>(NpyElementCount(shape)));
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(random() % 2 * (random() % 255 + 1));
  }
  return bytes;
}

// Numbers about 0, and some -inf.
std::vector<float> RandomBiases(const std::vector<int64_t>& shape) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  std::vector<float> biases(static_cast<size_t>(NpyElementCount(shape)));
  for (float& bias : biases) {
    bias = random() % 3 == 0 ? -std::numeric_limits<float>::infinity()
                             : normal(random);
  }
  return biases;
}

// [batch, heads, queries, keys] from a mask that broadcasts, as NumPy does it.
template <typename T>
std::vector<T> Broadcast(const std::vector<T>& from,
                         const std::vector<int64_t>& shape,
                         const std::vector<int64_t>& to) {
  std::vector<int64_t> extents(4 - shape.size(), 1);
  extents.insert(extents.end(), shape.begin(), shape.end());
  std::vector<T> all(static_cast<size_t>(NpyElementCount(to)));
  for (size_t i = 0; i < all.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t index = 0, stride = 1;
    for (size_t axis = 4; axis-- > 0;) {
      if (extents[axis] != 1) index += rest % to[axis] * stride;
      rest /= to[axis];
      stride *= extents[axis];
    }
    all[i] = from[static_cast<size_t>(index)];
  }
  return all;
}

class RunTest : public CliFixture {
 protected:
  void SetUp() override {
    CliFixture::SetUp();
    Start(HEED_F32);
  }

  // Files and call of a plain problem; a test changes what it is about.
  void Start(int32_t dtype) {
    WriteInputs(dtype);
    ReadTensors();
    heed_problem_init(&problem_);
    problem_.batch = 2;
    problem_.heads_q = 4;
    problem_.heads_kv = 2;
    problem_.len_q = 37;
    problem_.len_k = 53;
    problem_.dim_qk = 24;
    problem_.dim_v = 20;
    problem_.dtype = dtype;
    problem_.scale_mode = HEED_SCALE_INV_SQRT_DIM;
    call_.q = heed_dense_input(q_.bytes.data(), 4, 37, 24);
    call_.k = heed_dense_input(k_.bytes.data(), 2, 53, 24);
    call_.v = heed_dense_input(v_.bytes.data(), 2, 53, 20);
    call_.out = heed_dense_output(nullptr, 4, 37, 20);
    call_.lse = heed_dense_output(nullptr, 4, 37, 1);
  }

  void ReadTensors() {
    q_ = ReadFile("q.npy");
    k_ = ReadFile("k.npy");
    v_ = ReadFile("v.npy");
    heed_call_init(&call_);
  }

  // q, out and lse of 3 sequences (5, 0 and 32 tokens), by which they go.
  void PackQ() {
    WriteTensor("q.npy", {37, 4, 24}, 4);
    const std::vector<int32_t> starts = {0, 5, 5, 37};
    WriteFile("cu_q.npy", NpyType::kInt32, {4}, starts.data());
    ReadTensors();
    problem_.batch = 3;
    problem_.len_q = 32;
    problem_.ragged = 1;
    call_.q = {q_.bytes.data(), 0, 24, 4 * 24, 1};
    call_.out = {nullptr, 0, 20, 4 * 20, 1};
    call_.lse = {nullptr, 0, 1, 4, 1};
    cu_seqlens_q_ = starts;
    call_.cu_seqlens_q = cu_seqlens_q_.data();
  }

  // The command with `options` and the library's call give the same bytes,
  // which are right.
  void ExpectAsLibrary(const std::string& options, const std::string& problem) {
    const Result result =
        Heed(std::string(kRun) + "--lse l.npy --check --json " + options);
    ASSERT_EQ(result.code, 0) << options << "\n" << result.err;
    const Json json = Json::parse(result.out);
    EXPECT_EQ(json["problem"], problem) << options;
    const double rounding = 2 * StorageRounding(problem_.dtype);  // out is < 4
    EXPECT_LT(json["max_abs_error"], 1e-5 + 2 * rounding) << options;
    EXPECT_LT(json["max_abs_error_lse"], 1e-5) << options;
    EXPECT_GT(json["max_abs_reference"], 0.01) << options;

    const NpyTensor out = ReadFile("o.npy"), lse = ReadFile("l.npy");
    std::vector<unsigned char> want_out(out.bytes.size(), 0xEE);
    std::vector<unsigned char> want_lse(lse.bytes.size(), 0xEE);
    heed_call call = call_;
    call.out.data = want_out.data();
    call.lse.data = want_lse.data();
    heed_options off;
    heed_options_init(&off);
    off.tuning = HEED_TUNING_OFF;
    ASSERT_EQ(heed_attention(&problem_, &off, &call), HEED_OK)
        << heed_last_error();
    EXPECT_EQ(out.bytes, want_out) << options;
    EXPECT_EQ(lse.bytes, want_lse) << options;
  }

  // The file `name` is what heed_scores() writes, `filler` where it does not.
  void ExpectScores(const std::string& name, heed_score_stage stage,
                    float filler) {
    const NpyTensor got = ReadFile(name);
    const heed_problem& p = problem_;
    EXPECT_EQ(got.type, NpyType::kFloat32);
    EXPECT_EQ(got.shape,
              (std::vector<int64_t>{p.batch, p.heads_q, p.len_q, p.len_k}));
    std::vector<float> want(got.count(), filler);
    const heed_output scores =
        heed_dense_output(want.data(), p.heads_q, p.len_q, p.len_k);
    ASSERT_EQ(heed_scores(&p, nullptr, &call_, stage, &scores), HEED_OK)
        << heed_last_error();
    const auto* floats = got.elements<float>();
    EXPECT_EQ(std::vector<float>(floats, floats + got.count()), want) << name;
  }

  heed_problem problem_;
  heed_call call_;
  NpyTensor q_, k_, v_;
  std::vector<int32_t> cu_seqlens_q_;
};

const char kPlain[] = "b2_hq4_hkv2_q37_k53_d24_dv20";

std::string Named(const std::string& tokens, const char* dtype = "f32") {
  return std::string(kPlain) + tokens + "_" + dtype;
}

TEST_F(RunTest, WindowsAboutEveryKindOfPlace) {
  const struct {
    const char* options;
    const char* tokens;
    int32_t causal, align;
    int64_t left, right, offset;
  } rows[] = {
      {"--window 9,3 --align top_left", "_win9x3_aligntl", HEED_CAUSAL_NONE,
       HEED_ALIGN_TOP_LEFT, 9, 3, 0},
      {"--window 9 0 --align bottom_right", "_win9x0_alignbr", HEED_CAUSAL_NONE,
       HEED_ALIGN_BOTTOM_RIGHT, 9, 0, 0},
      {"--window -1,2 --align offset --causal-offset 5", "_wininfx2_alignoff",
       HEED_CAUSAL_NONE, HEED_ALIGN_OFFSET, -1, 2, 5},
      {"--window 7,-1 --causal bottom_right", "_causalbr_win7xinf",
       HEED_CAUSAL_BOTTOM_RIGHT, 0, 7, -1, 0},
      {"--window -1 -1 --causal-offset -2", "_causaloff_wininfxinf",
       HEED_CAUSAL_OFFSET, 0, -1, -1, -2}};
  for (const auto& row : rows) {
    problem_.window = 1;
    problem_.window_left = row.left;
    problem_.window_right = row.right;
    problem_.causal = row.causal;
    problem_.align = row.align;
    call_.causal_offset = row.offset;
    ExpectAsLibrary(row.options, Named(row.tokens));
  }
}

TEST_F(RunTest, BooleanMasksOfEveryShape) {
  const std::vector<int64_t> all = {2, 4, 37, 53};
  const std::vector<int64_t> shapes[] = {
      {37, 53},       {1, 53},       {37, 1},        {4, 1, 53},
      {1, 37, 53},    {2, 1, 1, 53}, {2, 1, 37, 53}, {1, 4, 37, 53},
      {2, 4, 37, 53}, {2, 4, 37, 1}};
  problem_.mask = HEED_MASK_BOOL;
  NpyType type = NpyType::kBool;
  for (const auto& shape : shapes) {
    const std::vector<uint8_t> bytes = RandomBytes(shape);
    WriteFile("m.npy", type, shape, bytes.data());
    type = type == NpyType::kBool ? NpyType::kUint8 : NpyType::kBool;
    const std::vector<uint8_t> mask = Broadcast(bytes, shape, all);
    call_.mask = heed_dense_input(mask.data(), 4, 37, 53);
    ExpectAsLibrary("--mask m.npy", Named("_maskbool"));
  }
}

TEST_F(RunTest, AdditiveMasksOfEveryType) {
  const std::vector<int64_t> shape = {2, 1, 37, 53}, all = {2, 4, 37, 53};
  const std::vector<float> biases = RandomBiases(shape);
  std::vector<uint16_t> words(biases.size());
  for (const int32_t dtype : {HEED_F32, HEED_F16, HEED_BF16}) {
    Start(dtype);
    const std::string name = dtype == HEED_F32   ? "f32"
                             : dtype == HEED_F16 ? "f16"
                                                 : "bf16";
    const std::string option = "--mask m.npy --dtype " + name;
    const std::vector<float> mask = Broadcast(biases, shape, all);
    WriteFile("m.npy", NpyType::kFloat32, shape, biases.data());
    problem_.mask = HEED_MASK_F32;
    call_.mask = heed_dense_input(mask.data(), 4, 37, 53);
    ExpectAsLibrary(option, Named("_maskf32", name.c_str()));
    if (dtype == HEED_F32) continue;
    Narrow(dtype, biases.data(), biases.size(), words.data());
    const std::vector<uint16_t> own = Broadcast(words, shape, all);
    WriteFile("m.npy", dtype == HEED_F16 ? NpyType::kFloat16 : NpyType::kUint16,
              shape, words.data());
    problem_.mask = HEED_MASK_DTYPE;
    call_.mask = heed_dense_input(own.data(), 4, 37, 53);
    ExpectAsLibrary(option, Named("_maskown", name.c_str()));
  }
}

TEST_F(RunTest, MasksOfBlocks) {
  const std::vector<int64_t> shape = {4, 5, 4};  // ceil(37 / 8), ceil(53 / 16)
  const std::vector<uint8_t> bytes = RandomBytes(shape);
  WriteFile("m.npy", NpyType::kUint8, shape, bytes.data());
  problem_.mask = HEED_MASK_BOOL;
  problem_.mask_block_q = 8;
  problem_.mask_block_k = 16;
  call_.mask = {bytes.data(), 0, 20, 4, 1};
  ExpectAsLibrary("--mask m.npy --mask-block 8x16", Named("_maskbool8x16"));
}

TEST_F(RunTest, AlibiFromAFileAndFromThePaper) {
  const std::vector<float> slopes = {0.5f, -0.25f, 0, 1};
  WriteFile("a.npy", NpyType::kFloat32, {4}, slopes.data());
  problem_.alibi = 1;
  problem_.align = HEED_ALIGN_BOTTOM_RIGHT;
  call_.alibi_slopes = slopes.data();
  ExpectAsLibrary("--alibi a.npy --align bottom_right",
                  Named("_alignbr_alibi"));
  problem_.causal = HEED_CAUSAL_TOP_LEFT;
  const std::vector<float> paper = {0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f};
  call_.alibi_slopes = paper.data();
  ExpectAsLibrary("--alibi auto --causal top_left", Named("_causaltl_alibi"));
}

TEST(AlibiSlopes, AreThoseOfThePaper) {
  EXPECT_THAT(AlibiSlopes(8),
              testing::ElementsAre(0x1p-1f, 0x1p-2f, 0x1p-3f, 0x1p-4f, 0x1p-5f,
                                   0x1p-6f, 0x1p-7f, 0x1p-8f));
  // Those of 8, and of 16 every other one.
  EXPECT_THAT(
      AlibiSlopes(12),
      testing::ElementsAre(0x1p-1f, 0x1p-2f, 0x1p-3f, 0x1p-4f, 0x1p-5f, 0x1p-6f,
                           0x1p-7f, 0x1p-8f, std::exp2(-0.5f), std::exp2(-1.5f),
                           std::exp2(-2.5f), std::exp2(-3.5f)));
  EXPECT_THAT(AlibiSlopes(1), testing::ElementsAre(0x1p-8f));
  EXPECT_TRUE(AlibiSlopes(0).empty());
}

TEST_F(RunTest, SoftcapAndSinks) {
  const std::vector<float> sinks = {0, -3, 5,
                                    -std::numeric_limits<float>::infinity()};
  WriteFile("s.npy", NpyType::kFloat32, {4}, sinks.data());
  problem_.softcap = 0.75;
  ExpectAsLibrary("--softcap 0.75", Named("_cap0.75"));
  problem_.sinks = 1;
  call_.sinks = sinks.data();
  ExpectAsLibrary("--softcap 0.75 --sinks s.npy", Named("_cap0.75_sinks"));
}

TEST_F(RunTest, WeightsAndScores) {
  problem_.softcap = 2;
  problem_.causal = HEED_CAUSAL_BOTTOM_RIGHT;
  const std::vector<uint8_t> mask = RandomBytes({37, 53});
  WriteFile("m.npy", NpyType::kBool, {37, 53}, mask.data());
  problem_.mask = HEED_MASK_BOOL;
  call_.mask = {mask.data(), 0, 0, 53, 1};
  const struct {
    const char* name;
    heed_score_stage stage;
  } stages[] = {{"scaled", HEED_SCORES_SCALED},
                {"capped", HEED_SCORES_CAPPED},
                {"biased", HEED_SCORES_BIASED}};
  for (const auto& stage : stages) {
    ExpectAsLibrary(
        std::string("--softcap 2 --causal bottom_right --mask m.npy --weights "
                    "w.npy --scores ") +
            stage.name + " s.npy",
        Named("_causalbr_cap2_maskbool"));
    ExpectScores("s.npy", stage.stage, 0);
    ExpectScores("w.npy", HEED_SCORES_WEIGHTS, 0);
  }
  const NpyTensor weights = ReadFile("w.npy");
  double sum = 0;
  for (int key = 0; key < 53; ++key) sum += weights.elements<float>()[key];
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST_F(RunTest, KeysInUse) {
  const std::vector<int32_t> used = {53, 11};
  const std::vector<int64_t> used_64(used.begin(), used.end());
  WriteFile("u.npy", NpyType::kInt32, {2}, used.data());
  WriteFile("u64.npy", NpyType::kInt64, {2}, used_64.data());
  problem_.ragged = 1;
  problem_.causal = HEED_CAUSAL_BOTTOM_RIGHT;
  call_.seqused_k = used.data();
  const std::string name = Named("_causalbr_ragged");
  ExpectAsLibrary("--seqused-k u.npy --causal bottom_right", name);
  ExpectAsLibrary(
      "--seqused-k u64.npy --causal bottom_right --weights w.npy "
      "--scores biased s.npy",
      name);
  ExpectScores("w.npy", HEED_SCORES_WEIGHTS, 0);
  ExpectScores("s.npy", HEED_SCORES_BIASED,
               -std::numeric_limits<float>::infinity());
}

TEST_F(RunTest, OffsetsOfSequences) {
  const std::vector<int64_t> offsets = {16, -3};
  const std::vector<int32_t> offsets_32 = {16, -3};
  WriteFile("off.npy", NpyType::kInt64, {2}, offsets.data());
  WriteFile("off32.npy", NpyType::kInt32, {2}, offsets_32.data());
  problem_.ragged = 1;
  problem_.causal = HEED_CAUSAL_OFFSET;
  call_.causal_offsets = offsets.data();
  ExpectAsLibrary("--causal-offsets off.npy", Named("_causaloff_ragged"));
  problem_.causal = HEED_CAUSAL_NONE;
  problem_.align = HEED_ALIGN_OFFSET;
  problem_.window = 1;
  problem_.window_left = 4;
  problem_.window_right = 4;
  ExpectAsLibrary("--causal-offsets off32.npy --window 4,4 --align offset",
                  Named("_win4x4_alignoff_ragged"));
}

TEST_F(RunTest, SequencesInOneRunOfTokens) {
  PackQ();
  WriteTensor("k.npy", {53, 2, 24}, 5);
  WriteTensor("v.npy", {53, 2, 20}, 6);
  const std::vector<int32_t> starts = {0, 20, 21, 53};
  WriteFile("cu_k.npy", NpyType::kInt32, {4}, starts.data());
  k_ = ReadFile("k.npy");
  v_ = ReadFile("v.npy");
  problem_.len_k = 32;
  problem_.causal = HEED_CAUSAL_BOTTOM_RIGHT;
  call_.k = {k_.bytes.data(), 0, 24, 2 * 24, 1};
  call_.v = {v_.bytes.data(), 0, 20, 2 * 20, 1};
  call_.cu_seqlens_k = starts.data();
  ExpectAsLibrary(
      "--cu-seqlens-q cu_q.npy --cu-seqlens-k cu_k.npy --causal bottom_right "
      "--weights w.npy",
      "b3_hq4_hkv2_q32_k32_d24_dv20_causalbr_ragged_f32");
  EXPECT_EQ(ReadFile("o.npy").shape, (std::vector<int64_t>{37, 4, 20}));
  EXPECT_EQ(ReadFile("l.npy").shape, (std::vector<int64_t>{37, 4}));
  ExpectScores("w.npy", HEED_SCORES_WEIGHTS, 0);
}

TEST_F(RunTest, PackedQueriesOverADenseCache) {
  PackQ();
  WriteTensor("k.npy", {3, 2, 40, 24}, 5);
  WriteTensor("v.npy", {3, 2, 40, 20}, 6);
  const std::vector<int32_t> used = {40, 7, 33};
  WriteFile("u.npy", NpyType::kInt32, {3}, used.data());
  k_ = ReadFile("k.npy");
  v_ = ReadFile("v.npy");
  problem_.len_k = 40;
  call_.k = heed_dense_input(k_.bytes.data(), 2, 40, 24);
  call_.v = heed_dense_input(v_.bytes.data(), 2, 40, 20);
  call_.seqused_k = used.data();
  ExpectAsLibrary("--cu-seqlens-q cu_q.npy --seqused-k u.npy",
                  "b3_hq4_hkv2_q32_k40_d24_dv20_ragged_f32");
}

// Everything at once, with pages.
TEST_F(RunTest, PagesAndAllTheRest) {
  WriteTensor("k.npy", {9, 2, 16, 24}, 5);
  WriteTensor("v.npy", {9, 2, 16, 20}, 6);
  ReadTensors();
  const std::vector<int32_t> table = {8, 0, 5, 3, 3, 1, -1, -1};
  const std::vector<int64_t> table_64(table.begin(), table.end());
  const std::vector<int32_t> used = {64, 19};
  const std::vector<float> heads = {1, 0.5f, -1, 0.25f};
  const std::vector<float> mask = RandomBiases({37, 64});
  WriteFile("t.npy", NpyType::kInt32, {2, 4}, table.data());
  WriteFile("t64.npy", NpyType::kInt64, {2, 4}, table_64.data());
  WriteFile("u.npy", NpyType::kInt32, {2}, used.data());
  WriteFile("h.npy", NpyType::kFloat32, {4}, heads.data());
  WriteFile("m.npy", NpyType::kFloat32, {37, 64}, mask.data());
  problem_.len_k = 64;
  problem_.ragged = 1;
  problem_.page_size = 16;
  call_.q = heed_dense_input(q_.bytes.data(), 4, 37, 24);
  call_.k = heed_dense_input(k_.bytes.data(), 2, 16, 24);
  call_.v = heed_dense_input(v_.bytes.data(), 2, 16, 20);
  call_.out = heed_dense_output(nullptr, 4, 37, 20);
  call_.lse = heed_dense_output(nullptr, 4, 37, 1);
  call_.seqused_k = used.data();
  call_.block_table = {table.data(), 4, 4, 9};
  const std::string start = "b2_hq4_hkv2_q37_k64_d24_dv20";
  for (const char* file : {"t.npy", "t64.npy"}) {
    ExpectAsLibrary(
        std::string("--seqused-k u.npy --weights w.npy --block-table ") + file,
        start + "_ragged_page16_f32");
    ExpectScores("w.npy", HEED_SCORES_WEIGHTS, 0);
  }
  problem_.causal = HEED_CAUSAL_BOTTOM_RIGHT;
  problem_.window = 1;
  problem_.window_left = 30;
  problem_.window_right = -1;
  problem_.softcap = 3;
  problem_.alibi = 1;
  problem_.sinks = 1;
  problem_.mask = HEED_MASK_F32;
  problem_.scale_mode = HEED_SCALE_VALUE;
  problem_.scale = 0.5;
  call_.alibi_slopes = heads.data();
  call_.sinks = heads.data();
  call_.mask = {mask.data(), 0, 0, 64, 1};
  ExpectAsLibrary(
      "--block-table t.npy --seqused-k u.npy --causal bottom_right --window "
      "30,-1 --softcap 3 --alibi h.npy --sinks h.npy --mask m.npy --scale 0.5 "
      "--scores biased s.npy",
      start +
          "_causalbr_win30xinf_cap3_alibi_maskf32_sinks_ragged_page16_"
          "scale0.5_f32");
  ExpectScores("s.npy", HEED_SCORES_BIASED,
               -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace heed
