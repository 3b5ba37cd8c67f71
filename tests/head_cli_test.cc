// `heed head` from outside: what it writes, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/checkpoint_files.h"
#include "tests/cli_fixture.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kTensors[] = {
    "ln", "q", "k", "v", "scores", "pattern", "z", "attn_out", "resid"};

class HeadTest : public CliFixture {
 protected:
  void SetUp() override {
    CliFixture::SetUp();
    fs::create_directory(Path("gpt2"));
    Write("gpt2/model.safetensors",
          MakeSafetensors(Gpt2Tensors(12, "transformer.")));
    WriteTensor("x.npy", {7, 12}, 1);
  }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }

  // The same bytes in both folders, in every tensor.
  void ExpectSameDump(const std::string& a, const std::string& b) const {
    for (const std::string name : kTensors) {
      EXPECT_FALSE(Slurp(a + "/" + name + ".npy").empty()) << a << name;
      EXPECT_EQ(Slurp(a + "/" + name + ".npy"), Slurp(b + "/" + name + ".npy"))
          << name;
    }
  }
};

constexpr char kGpt2[] = "head --model gpt2 --heads 3 --x x.npy ";

TEST_F(HeadTest, HelpNamesEveryOption) {
  const Result help = Heed("head --help");
  EXPECT_EQ(help.code, 0);
  for (const char* word :
       {"--model", "--layer", "--x", "--tokens", "--head ", "--heads",
        "--no-causal", "--scale-power", "--dump", "--threads", "--json"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
}

TEST_F(HeadTest, EveryTensorIsWritten) {
  const Result result = Heed(std::string(kGpt2) + "--dump out");
  ASSERT_EQ(result.code, 0) << result.err;
  const auto shape = [&](const std::string& name) {
    return ReadFile("out/" + name + ".npy").shape;
  };
  const std::vector<int64_t> rows = {7, 12}, heads = {3, 7, 4},
                             square = {3, 7, 7};
  EXPECT_EQ(shape("ln"), rows);
  EXPECT_EQ(shape("q"), heads);
  EXPECT_EQ(shape("k"), heads);
  EXPECT_EQ(shape("v"), heads);
  EXPECT_EQ(shape("scores"), square);
  EXPECT_EQ(shape("pattern"), square);
  EXPECT_EQ(shape("z"), heads);
  EXPECT_EQ(shape("attn_out"), rows);
  EXPECT_EQ(shape("resid"), rows);
  const NpyTensor scores = ReadFile("out/scores.npy");
  const NpyTensor pattern = ReadFile("out/pattern.npy");
  for (size_t i = 0; i < scores.count(); ++i) {
    const bool is_hidden = i % 7 > i / 7 % 7;
    EXPECT_EQ(std::isinf(scores.elements<float>()[i]), is_hidden) << i;
    EXPECT_EQ(pattern.elements<float>()[i] == 0, is_hidden) << i;
  }
  const NpyTensor x = ReadFile("x.npy"), out = ReadFile("out/attn_out.npy"),
                  resid = ReadFile("out/resid.npy");
  for (size_t i = 0; i < x.count(); ++i) {
    EXPECT_EQ(resid.elements<float>()[i],
              x.elements<float>()[i] + out.elements<float>()[i]);
  }
}

TEST_F(HeadTest, AHeadIsItsPartOfAll) {
  ASSERT_EQ(Heed(std::string(kGpt2) + "--dump all").code, 0);
  const Result result = Heed(std::string(kGpt2) + "--head 2 --json --dump one");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["tensors"]["q"]["shape"],
            (std::vector<int64_t>{1, 7, 4}));
  for (const std::string name : {"q", "k", "v", "scores", "pattern", "z"}) {
    const NpyTensor all = ReadFile("all/" + name + ".npy");
    const NpyTensor one = ReadFile("one/" + name + ".npy");
    ASSERT_EQ(one.bytes.size() * 3, all.bytes.size()) << name;
    EXPECT_EQ(
        std::memcmp(one.bytes.data(), all.bytes.data() + 2 * one.bytes.size(),
                    one.bytes.size()),
        0)
        << name;
  }
  EXPECT_EQ(Slurp("one/resid.npy"), Slurp("all/resid.npy"));
}

TEST_F(HeadTest, AFileAFolderAndAnIndexAreTheSame) {
  ASSERT_EQ(Heed(std::string(kGpt2) + "--dump a").code, 0);
  const std::string more = " --heads 3 --x x.npy --threads 1 --dump b";
  ASSERT_EQ(Heed("head --model gpt2/model.safetensors" + more).code, 0);
  ExpectSameDump("a", "b");
  fs::create_directory(Path("sharded"));
  const std::vector<MadeTensor> all = Gpt2Tensors(12, "");
  Json index;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string file = std::to_string(i % 3) + ".safetensors";
    index["weight_map"][all[i].name] = file;
  }
  for (size_t shard = 0; shard < 3; ++shard) {
    std::vector<MadeTensor> part;
    for (size_t i = shard; i < all.size(); i += 3) part.push_back(all[i]);
    Write("sharded/" + std::to_string(shard) + ".safetensors",
          MakeSafetensors(part));
  }
  Write("sharded/model.safetensors.index.json", index.dump());
  // The names are seeds of the values, and these lack the prefix.
  Write("plain.safetensors", MakeSafetensors(all));
  ASSERT_EQ(
      Heed("head --model plain.safetensors --heads 3 --x x.npy --dump c").code,
      0);
  const Result sharded =
      Heed("head --model sharded --heads 3 --x x.npy --dump d");
  ASSERT_EQ(sharded.code, 0) << sharded.err;
  ExpectSameDump("c", "d");
}

TEST_F(HeadTest, TokensAreTheRowsOfTheirEmbeddings) {
  const Result result =
      Heed("head --model gpt2 --heads 3 --tokens 4,0,10 --dump a");
  ASSERT_EQ(result.code, 0) << result.err;
  // resid - attn_out is x but for rounding; the norm of x is seen to the bit.
  std::vector<float> x(36);
  const NpyTensor resid = ReadFile("a/resid.npy"),
                  out = ReadFile("a/attn_out.npy");
  ASSERT_EQ(resid.shape, (std::vector<int64_t>{3, 12}));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = resid.elements<float>()[i] - out.elements<float>()[i];
  }
  WriteFile("rows.npy", NpyType::kFloat32, {3, 12}, x.data());
  ASSERT_EQ(Heed("head --model gpt2 --heads 3 --x rows.npy --dump b").code, 0);
  const NpyTensor a = ReadFile("a/ln.npy"), b = ReadFile("b/ln.npy");
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(a.elements<float>()[i], b.elements<float>()[i], 1e-5);
  }
}

TEST_F(HeadTest, TheMaskAndTheScaleCanBeChanged) {
  ASSERT_EQ(Heed(std::string(kGpt2) + "--dump a").code, 0);
  ASSERT_EQ(Heed(std::string(kGpt2) + "--no-causal --dump b").code, 0);
  ASSERT_EQ(
      Heed(std::string(kGpt2) + "--no-causal --scale-power 1 --dump c").code,
      0);
  const NpyTensor causal = ReadFile("a/scores.npy");
  const NpyTensor open = ReadFile("b/scores.npy");
  const NpyTensor by_width = ReadFile("c/scores.npy");
  for (size_t i = 0; i < open.count(); ++i) {
    const float score = open.elements<float>()[i];
    EXPECT_TRUE(std::isfinite(score));
    if (i % 7 <= i / 7 % 7) {
      EXPECT_EQ(causal.elements<float>()[i], score);
    }
    // Heads are 4 wide: divided by 4, not by 2.
    EXPECT_NEAR(by_width.elements<float>()[i], score / 2,
                1e-6 * (1 + std::fabs(score)));
  }
}

TEST_F(HeadTest, ConfigurationsAreRead) {
  Write("gpt2/config.json", R"({"model_type":"gpt2","n_head":3,"n_embd":12})");
  EXPECT_EQ(Heed("head --model gpt2 --x x.npy").code, 0);
  ExpectFailure("head --model gpt2 --heads 4 --x x.npy", 1,
                "--heads 4, but its config.json says 3");
  Write("gpt2/config.json", R"({"n_head":3,"layer_norm_epsilon":NaN})");
  ExpectFailure("head --model gpt2 --x x.npy", 1,
                "gpt2/config.json: not valid JSON at byte 34, after "
                "'3,\"layer_norm_epsilon\":N'");
  fs::remove(Path("gpt2/config.json"));
  fs::create_symlink("config.json", Path("gpt2/config.json"));
  ExpectFailure("head --model gpt2 --x x.npy", 1,
                "gpt2/config.json: Too many levels of symbolic links");
}

TEST_F(HeadTest, WrongUsageExitsWithTwo) {
  ExpectFailure("head", 2, "--model");
  ExpectFailure("head --model gpt2 --heads 3", 2, "--x");
  ExpectFailure("head --model gpt2 --heads 3 --x x.npy --tokens 1", 2, "--x");
  ExpectFailure(std::string(kGpt2) + "--layer -1", 2, "--layer");
  ExpectFailure(std::string(kGpt2) + "--head -1", 2, "--head");
  ExpectFailure(std::string(kGpt2) + "--scale-power x", 2, "--scale-power");
  ExpectFailure("head --model gpt2 --heads 0 --x x.npy", 2, "--heads");
  ExpectFailure("head --model gpt2 --heads 3 --tokens 1,two", 2, "--tokens");
  ExpectFailure("head --model gpt2 --heads 3 --tokens 1 --layer 2", 2,
                "--tokens with --layer 2; expected --layer 0");
}

TEST_F(HeadTest, WhatCannotBeRunIsNamedAndNothingIsWritten) {
  const std::string dump = "--dump out ";
  ExpectFailure(kGpt2 + dump + "--head 3", 1, "--head 3; expected 0 to 2");
  ExpectFailure(kGpt2 + dump + "--layer 1", 1,
                "gpt2/model.safetensors: no layer 1; the last is 0");
  ExpectFailure("head --model gpt2 --x x.npy " + dump, 1, "expected --heads N");
  ExpectFailure("head --model none --heads 3 --x x.npy " + dump, 1,
                "none: No such file or directory");
  ExpectFailure("head --model gpt2 --heads 3 --x none.npy " + dump, 1,
                "none.npy: No such file");
  WriteTensor("wide.npy", {7, 13}, 1);
  ExpectFailure("head --model gpt2 --heads 3 --x wide.npy " + dump, 1,
                "wide.npy: dimension 1 is 13; expected 12");
  WriteTensor("empty.npy", {0, 12}, 1);
  ExpectFailure("head --model gpt2 --heads 3 --x empty.npy " + dump, 1,
                "empty.npy: dimension 0 is 0; expected 1 token or more");
  WriteTensor("flat.npy", {84}, 1);
  ExpectFailure("head --model gpt2 --heads 3 --x flat.npy " + dump, 1,
                "flat.npy: 1 dimensions (84) (expected 2)");
  ExpectFailure("head --model gpt2 --heads 3 --tokens 99 " + dump, 1,
                "gpt2/model.safetensors: tensor transformer.wte.weight: no row "
                "for token 99; it has 11");
  EXPECT_FALSE(fs::exists(Path("out")));
  Write("taken", "");
  ExpectFailure(std::string(kGpt2) + "--dump taken", 1, "taken/ln.npy: Not a");
  fs::create_directories(Path("part/z.npy"));
  ExpectFailure(std::string(kGpt2) + "--dump part", 1,
                "part/z.npy: exists and is not a regular file");
  EXPECT_FALSE(fs::exists(Path("part/ln.npy")));
}

TEST_F(HeadTest, HalfPrecisionRowsAreWidened) {
  WriteTensor("half.npy", {7, 12}, 1, HEED_F16);
  EXPECT_EQ(Heed("head --model gpt2 --heads 3 --x half.npy").code, 0);
}

}  // namespace
}  // namespace heed
