// `heed inspect`: the checks hold, and would fail; pictures are what their
// names say.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/checkpoint_files.h"
#include "tests/cli_fixture.h"
#include "tune/canvas.h"
#include "tune/head_checks.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Verdict = HeadCheck::Verdict;

constexpr char kConfig[] =
    R"({"model_type":"llama","num_attention_heads":4,"num_key_value_heads":2,
        "head_dim":10,"rms_norm_eps":1e-6})";

class InspectTest : public CliFixture {
 protected:
  void SetUp() override {
    CliFixture::SetUp();
    for (const char* name : {"gpt2", "llama"}) fs::create_directory(Path(name));
    Write("gpt2/model.safetensors", MakeSafetensors(Gpt2Tensors(12, "")));
    Write("llama/model.safetensors",
          MakeSafetensors(LlamaTensors(24, 4, 2, 10, false)));
    Write("llama/config.json", kConfig);
    WriteTensor("x.npy", {7, 12}, 1);
  }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }

  // Inspects and returns the verdicts of the six checks.
  std::vector<std::string> Verdicts(const std::string& options) const {
    const Result result = Heed("inspect --json " + options);
    EXPECT_EQ(result.code, 0) << options << result.err;
    std::vector<std::string> verdicts;
    const Json json = Json::parse(result.out);
    for (const Json& check : json["checks"]) {
      EXPECT_FALSE(check["figure"].get<std::string>().empty());
      verdicts.push_back(check["verdict"]);
    }
    return verdicts;
  }

  // What a test spoils.
  void Load(HeadModel* model, HeadTensors* base) const {
    HeadOptions options;
    options.model = Path("gpt2");
    options.layer.heads = 3;
    options.x = Path("x.npy");
    std::string why;
    ASSERT_TRUE(LoadHead(options, model, &why)) << why;
    ASSERT_TRUE(
        RunHead(model->desc, model->x.data(), model->len, 1, base, &why))
        << why;
  }

  std::vector<Verdict> Check(const HeadModel& model,
                             const HeadTensors& base) const {
    std::vector<HeadCheck> checks;
    std::string why;
    EXPECT_TRUE(CheckHead(model, base, 1, &checks, &why)) << why;
    std::vector<Verdict> verdicts;
    for (const HeadCheck& check : checks) verdicts.push_back(check.verdict);
    return verdicts;
  }
};

constexpr char kGpt2[] = "--model gpt2 --heads 3 --x x.npy ";
const std::vector<std::string> kAllHold(6, "holds");

TEST_F(InspectTest, EveryCheckHolds) {
  EXPECT_EQ(Verdicts(kGpt2), kAllHold);
  EXPECT_EQ(Verdicts(std::string(kGpt2) + "--no-causal"), kAllHold);
  EXPECT_EQ(Verdicts("--model gpt2 --heads 3 --tokens 1,2,3,4,4"), kAllHold);
  EXPECT_EQ(Verdicts("--model llama --tokens 1,2,3,4,4,0"), kAllHold);
  EXPECT_EQ(Verdicts("--model llama --tokens 1,2,3 --threads 2 --head 1"),
            kAllHold);
}

TEST_F(InspectTest, WhatCannotBeTriedIsSaid) {
  const std::vector<std::string> one = Verdicts("--model llama --tokens 5");
  EXPECT_EQ(one,
            (std::vector<std::string>{"holds", "not tried", "not tried",
                                      "not tried", "not tried", "not tried"}));
  const std::vector<std::string> undivided =
      Verdicts(std::string(kGpt2) + "--scale-power 0");
  EXPECT_EQ(undivided[3], "not tried");
  EXPECT_EQ(undivided[0], "holds");
}

TEST_F(InspectTest, ChecksFailWhereTheBlockIsWrong) {
  HeadModel model;
  HeadTensors base;
  Load(&model, &base);
  const std::vector<Verdict> holds(6, Verdict::kHolds);
  ASSERT_EQ(Check(model, base), holds);

  HeadTensors spoiled = base;
  spoiled.pattern[7] += 0.01f;  // head 0, row 1, key 0
  EXPECT_EQ(Check(model, spoiled)[0], Verdict::kFails);
  EXPECT_EQ(Check(model, spoiled)[2], Verdict::kFails);

  spoiled = base;
  spoiled.pattern[1] = 1e-30f;  // row 0, key 1
  const std::vector<Verdict> hidden = Check(model, spoiled);
  EXPECT_EQ(hidden[0], Verdict::kHolds);
  EXPECT_EQ(hidden[1], Verdict::kFails);
  EXPECT_EQ(hidden[5], Verdict::kFails);

  spoiled = base;
  spoiled.v[3] = -spoiled.v[3];  // head 0, token 0
  EXPECT_EQ(Check(model, spoiled)[2], Verdict::kFails);

  spoiled = base;
  for (float& weight : spoiled.pattern) weight = weight > 0 ? 1 : 0;
  EXPECT_EQ(Check(model, spoiled)[3], Verdict::kFails);
}

TEST_F(InspectTest, TextHasPatternsFiguresAndChecks) {
  const Result result = Heed(std::string("inspect ") + kGpt2);
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* word :
       {"head 0\n0 @@\n1 ", "head 2\n", "blank: hidden", "entropy/bits",
        "mean peak", "holds      rows sum to 1: largest |sum - 1| = ",
        "hidden weights are exactly 0: 0 of 63 are not",
        "with token 3 changed, 0 of the 3 rows before it differ",
        "with RoPE (theta 10000, put on: the model has none)"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << word << result.out;
  }
  // Not a terminal.
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
  const Result one =
      Heed(std::string("inspect --head 1 --draw blocks ") + kGpt2);
  EXPECT_NE(one.out.find("\x1b[48;5;"), std::string::npos);
  EXPECT_NE(one.out.find("head 1\n"), std::string::npos);
  EXPECT_EQ(one.out.find("head 0\n"), std::string::npos);
  const Result none = Heed(std::string("inspect --draw none ") + kGpt2);
  EXPECT_EQ(none.out.find("head 0\n"), std::string::npos);
}

TEST_F(InspectTest, LabelsAreShown) {
  Write("labels.txt", "the\nquick\nbrown\nfox\njumps\nover\nit\n");
  const Result result =
      Heed(std::string("inspect --labels labels.txt ") + kGpt2);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("brown "), std::string::npos);
  const Result tokens = Heed("inspect --model gpt2 --heads 3 --tokens 10,9,8");
  EXPECT_NE(tokens.out.find("10 @@\n 9 "), std::string::npos) << tokens.out;
  Write("labels.txt", "the\n");
  ExpectFailure(std::string("inspect --labels labels.txt ") + kGpt2, 1,
                "labels.txt: 1 lines; expected 7");
}

TEST_F(InspectTest, PicturesAreWhatTheirNamesSay) {
  ImageFormat format;
  if (!FindImageFormat("a.png", &format).empty()) {
    ExpectFailure(std::string("inspect --image p.png ") + kGpt2, 2,
                  "built without cairo");
    GTEST_SKIP() << "built without cairo";
  }
  ASSERT_EQ(Heed(std::string("inspect --image p.png ") + kGpt2).code, 0);
  ASSERT_EQ(Heed(std::string("inspect --image p.svg ") + kGpt2).code, 0);
  const std::string png = Slurp("p.png"), svg = Slurp("p.svg");
  EXPECT_EQ(png.rfind("\x89PNG\r\n", 0), 0u);
  EXPECT_EQ(svg.rfind("<?xml", 0), 0u);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  // 3 heads' 28 visible cells, each of a colour.
  size_t paths = 0;
  for (size_t at = svg.find("<path style=\" stroke:none;fill-rule");
       at != std::string::npos;
       at = svg.find("<path style=\" stroke:none;fill-rule", at + 1)) {
    ++paths;
  }
  EXPECT_GE(paths, 3u * 28);
  ExpectFailure(std::string("inspect --image p.gif ") + kGpt2, 2,
                "p.gif; expected a name that ends in .png or .svg");
  ExpectFailure(std::string("inspect --image none/p.png ") + kGpt2, 1,
                "none/p.png: No such file");
}

TEST_F(InspectTest, LongSequencesArePooled) {
  WriteTensor("long.npy", {401, 12}, 1);
  const Result result =
      Heed("inspect --model gpt2 --heads 3 --x long.npy --head 0");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("a cell is the largest of 6 x 6 weights"),
            std::string::npos);
}

TEST_F(InspectTest, HelpAndWrongUsage) {
  const Result help = Heed("inspect --help");
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"--model", "--layer", "--x", "--tokens", "--heads",
                           "--no-causal", "--scale-power", "--dump", "--image",
                           "--labels", "--draw", "--json", "rows sum to 1"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  ExpectFailure("inspect", 2, "--model");
  ExpectFailure(std::string("inspect --draw red ") + kGpt2, 2, "red not in");
  ExpectFailure("inspect --model gpt2 --heads 3 --tokens 1 --layer 2", 2,
                "heed inspect: --tokens with --layer 2");
  ExpectFailure("inspect --model none --heads 3 --x x.npy", 1,
                "heed inspect: none: No such file");
}

}  // namespace
}  // namespace heed
