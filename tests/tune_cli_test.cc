// The command `heed` from outside: exit codes, one-line errors, and outputs
// that are whole or untouched.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/include/heed.h"
#include "tests/cli_fixture.h"
#include "tune/npy.h"

namespace heed {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class CliTest : public CliFixture {};

TEST_F(CliTest, HelpAndVersion) {
  const Result version = Heed("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("heed ", 0), 0u);
  const Result help = Heed("--help");
  EXPECT_EQ(help.code, 0);
  for (const char* word :
       {"demo", "head", "info", "inspect", "run", "tune", "Exit codes"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  const Result run = Heed("run --help");
  EXPECT_EQ(run.code, 0);
  for (const char* word : {"--q",
                           "--k",
                           "--v",
                           "--out",
                           "--lse",
                           "--weights",
                           "--scores",
                           "--causal",
                           "--causal-offset",
                           "--causal-offsets",
                           "--window",
                           "--align",
                           "--mask",
                           "--mask-block",
                           "--alibi",
                           "--softcap",
                           "--sinks",
                           "--scale",
                           "--seqused-k",
                           "--cu-seqlens-q",
                           "--cu-seqlens-k",
                           "--block-table",
                           "--dtype",
                           "bf16",
                           "--threads",
                           "--target",
                           "--tile",
                           "--check",
                           "--json"}) {
    EXPECT_NE(run.out.find(word), std::string::npos) << word;
  }
  const Result tune = Heed("tune --help");
  EXPECT_EQ(tune.code, 0);
  for (const char* word :
       {"--budget", "--shapes",   "--threads", "--output", "--effort",
        "--seed",   "--min-gain", "--dry-run", "--json",   "--no-progress",
        "--resume", "--no-wait",  "--force",   "--stale",  "--isolate",
        "verify",   "show",       "compare",   "doctor",   "install",
        "merge",    "report"}) {
    EXPECT_NE(tune.out.find(word), std::string::npos) << word;
  }
}

TEST_F(CliTest, WrongUsageExitsWithTwo) {
  ExpectFailure("", 2, "subcommand");
  ExpectFailure("fly", 2, "fly");
  ExpectFailure("info --color", 2, "--color");
  ExpectFailure("run --q q.npy", 2, "required");
  ExpectFailure(std::string(kRun) + "--causal left", 2, "causal");
  ExpectFailure(std::string(kRun) + "--causal top_left --causal-offset 1", 2,
                "excludes");
  ExpectFailure(std::string(kRun) + "--scale big", 2, "scale");
  ExpectFailure(std::string(kRun) + "--threads 0", 2, "threads");
  ExpectFailure(std::string(kRun) + "--tile rows=3", 2, "rows");
  ExpectFailure(std::string(kRun) + "--lse o.npy", 2, "same file");
  ExpectFailure("tune --budget soon", 2, "soon");
  ExpectFailure("tune --budget -5s", 2, "-5s");
  ExpectFailure("tune --shapes vit,nonsense", 2, "nonsense");
  ExpectFailure("tune --effort heroic", 2, "heroic");
  ExpectFailure("tune --min-gain 1kg", 2, "1kg");
  ExpectFailure("tune run --stale --shapes vit", 2,
                "--stale excludes --shapes");
  ExpectFailure("tune --shapes vit run --stale", 2,
                "--stale excludes --shapes");
  ExpectFailure("tune --stale --resume", 2, "--stale excludes --resume");
}

TEST_F(CliTest, InfoListsEveryShape) {
  const Result text = Heed("info");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("machine key"), std::string::npos);
  EXPECT_NE(text.out.find("llama8b_prefill"), std::string::npos);
  const Result json = Heed("info --json --threads 1");
  ASSERT_EQ(json.code, 0) << json.err;
  const Json info = Json::parse(json.out);
  EXPECT_EQ(info["threads"], 1);
  EXPECT_FALSE(info["targets"].empty());
  EXPECT_GE(info["shapes"].size(), 11u);
  EXPECT_EQ(info["shapes"][0]["tier"], "analytical");
}

TEST_F(CliTest, RunComputesAttention) {
  WriteInputs();
  for (const char* options :
       {"", "--causal top_left", "--causal bottom_right", "--causal none",
        "--causal-offset -3", "--scale 0.7 --threads 2",
        "--tile row_block=48,key_tile=48,pack_k=1", "--repeat 3"}) {
    const Result result =
        Heed(std::string(kRun) + "--lse l.npy --check --json " + options);
    ASSERT_EQ(result.code, 0) << options << "\n" << result.err;
    const Json json = Json::parse(result.out);
    EXPECT_LT(json["max_abs_error"], 1e-5) << options;
    EXPECT_LT(json["max_abs_error_lse"], 1e-5) << options;
    EXPECT_EQ(json["rows_checked"], 2 * 4 * 37) << options;
    const NpyTensor out = ReadFile("o.npy"), lse = ReadFile("l.npy");
    EXPECT_EQ(out.shape, (std::vector<int64_t>{2, 4, 37, 20}));
    EXPECT_EQ(lse.shape, (std::vector<int64_t>{2, 4, 37}));
  }
}

TEST_F(CliTest, RunTakesEveryDtype) {
  const struct {
    int32_t dtype;
    const char* option;
    NpyType type;
    double tolerance;  // out is below 2
  } rows[] = {{HEED_F32, "--dtype f32", NpyType::kFloat32, 1e-5},
              {HEED_F16, "", NpyType::kFloat16, 0x1p-10},
              {HEED_F16, "--dtype f16", NpyType::kFloat16, 0x1p-10},
              {HEED_BF16, "--dtype bf16", NpyType::kUint16, 0x1p-7}};
  for (const auto& row : rows) {
    WriteInputs(row.dtype);
    const Result result =
        Heed(std::string(kRun) + "--lse l.npy --check --json " + row.option);
    ASSERT_EQ(result.code, 0) << row.option << "\n" << result.err;
    const Json json = Json::parse(result.out);
    EXPECT_LT(json["max_abs_error"], row.tolerance) << row.option;
    EXPECT_LT(json["max_abs_error_lse"], 1e-5) << row.option;
    const NpyTensor out = ReadFile("o.npy"), lse = ReadFile("l.npy");
    EXPECT_EQ(out.type, row.type);
    EXPECT_EQ(out.shape, (std::vector<int64_t>{2, 4, 37, 20}));
    EXPECT_EQ(lse.type, NpyType::kFloat32);
  }
}

TEST_F(CliTest, RunRefusesDtypesThatDoNotAgree) {
  WriteInputs(HEED_BF16);
  ExpectFailure(kRun, 1, "say --dtype bf16");
  ExpectFailure(std::string(kRun) + "--dtype f16", 1,
                "q.npy: uint16 elements; expected float16, as --dtype f16");
  ExpectFailure(std::string(kRun) + "--dtype u2", 2, "u2");
  WriteInputs(HEED_F16);
  ExpectFailure(std::string(kRun) + "--dtype bf16", 1,
                "q.npy: float16 elements; expected uint16");
  WriteTensor("v.npy", {2, 2, 53, 20}, 3);
  ExpectFailure(kRun, 1, "v.npy: float32 elements; expected float16, as q's");
  WriteInputs();
  WriteTensor("k.npy", {2, 2, 53, 24}, 2, HEED_BF16);
  ExpectFailure(kRun, 1, "k.npy: uint16 elements; expected float32, as q's");
}

TEST_F(CliTest, RunPrintsOneLineWithProblemTimeAndTier) {
  WriteInputs();
  const Result result = Heed(std::string(kRun) + "--check");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out.find('\n'), result.out.size() - 1) << result.out;
  for (const char* word :
       {"b2_hq4_hkv2_q37_k53", "time=", "tier=", "max_abs_error="}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << result.out;
  }
}

TEST_F(CliTest, TheEnvironmentSaysWhatTheCallerDoesNot) {
  WriteInputs();
  const std::string quiet = "HEED_TUNE=off HEED_TUNE_VERBOSE=1 ";
  char names[256];
  heed_targets(names, sizeof names);
  const std::string last =
      std::string(names).substr(std::string(names).rfind(' ') + 1);
  const Result narrow =
      Heed(kRun, quiet + "HEED_TARGET=" + last + " HEED_NUM_THREADS=1");
  EXPECT_EQ(narrow.code, 0) << narrow.err;
  EXPECT_NE(narrow.err.find(" threads=1 target=" + last + " "),
            std::string::npos)
      << narrow.err;
  const Result wide =
      Heed(std::string(kRun) + "--threads 2", quiet + "HEED_NUM_THREADS=1");
  EXPECT_NE(wide.err.find(" threads=2 "), std::string::npos) << wide.err;
  const struct {
    const char *environment, *message;
  } wrong[] = {
      {"HEED_NUM_THREADS=0", "HEED_NUM_THREADS is \"0\"; expected 1 to 4096"},
      {"HEED_NUM_THREADS=2x", "HEED_NUM_THREADS is \"2x\"; expected 1 to"},
      {"HEED_NUM_THREADS=", "HEED_NUM_THREADS is \"\"; expected 1 to"},
      {"HEED_TARGET=avx9", "HEED_TARGET is \"avx9\"; expected one of: "}};
  for (const auto& w : wrong) {
    const Result refused = Heed(kRun, w.environment);
    EXPECT_NE(refused.code, 0) << w.environment;
    EXPECT_NE(refused.err.find(w.message), std::string::npos) << refused.err;
  }
}

TEST_F(CliTest, TilesAndThreadsDoNotChangeTheBytes) {
  WriteInputs();
  ASSERT_EQ(Heed(std::string(kRun) + "--causal top_left").code, 0);
  const std::string first = Slurp("o.npy");
  for (const char* options :
       {"--threads 1", "--threads 3 --tile key_tile=48,row_block=16",
        "--tile key_tile=768,row_block=4096,pack_v=1"}) {
    ASSERT_EQ(Heed(std::string(kRun) + "--causal top_left " + options).code, 0);
    EXPECT_EQ(Slurp("o.npy"), first) << options;
  }
}

TEST_F(CliTest, FailuresLeaveOutputsUntouched) {
  WriteInputs();
  const auto expect_untouched = [this](const std::string& arguments,
                                       const std::string& says) {
    std::ofstream(Path("o.npy")) << "old out";
    std::ofstream(Path("l.npy")) << "old lse";
    ExpectFailure(arguments, 1, says);
    EXPECT_EQ(Slurp("o.npy"), "old out") << arguments;
    EXPECT_EQ(Slurp("l.npy"), "old lse") << arguments;
  };
  const std::string outputs = " --out o.npy --lse l.npy ";
  const std::string run = "run --q q.npy --k k.npy --v v.npy" + outputs;
  expect_untouched("run --q no.npy --k k.npy --v v.npy" + outputs, "no.npy");
  WriteTensor("rank3.npy", {4, 37, 24}, 1);
  expect_untouched("run --q rank3.npy --k k.npy --v v.npy" + outputs,
                   "rank3.npy");
  WriteTensor("heads.npy", {2, 3, 37, 24}, 1);
  expect_untouched("run --q heads.npy --k k.npy --v v.npy" + outputs, "heads");
  WriteTensor("width.npy", {2, 2, 53, 25}, 1);
  expect_untouched("run --q q.npy --k width.npy --v v.npy" + outputs,
                   "width.npy: dimension 3 is 25; expected 24");
  WriteTensor("keys.npy", {2, 2, 52, 20}, 1);
  expect_untouched("run --q q.npy --k k.npy --v keys.npy" + outputs,
                   "keys.npy: dimension 2 is 52; expected 53");
  WriteTensor("batch.npy", {1, 2, 53, 20}, 1);
  expect_untouched("run --q q.npy --k k.npy --v batch.npy" + outputs,
                   "batch.npy: dimension 0 is 1; expected 2");
  const std::string whole = Slurp("q.npy");
  std::ofstream(Path("cut.npy"), std::ios::binary)
      << whole.substr(0, whole.size() - 4);
  expect_untouched("run --q cut.npy --k k.npy --v v.npy" + outputs,
                   "cut.npy: truncated data");
  expect_untouched(run + "--target MADE_UP", "MADE_UP");
  expect_untouched(run + "--scale inf", "scale");
  // The second output cannot be written, so the first is not either.
  std::ofstream(Path("o.npy")) << "old out";
  ExpectFailure("run --q q.npy --k k.npy --v v.npy --out o.npy --lse no/l.npy",
                1, "no/l.npy");
  EXPECT_EQ(Slurp("o.npy"), "old out");
}

TEST_F(CliTest, DryRunWritesNothing) {
  const Result result =
      Heed("tune --dry-run --shapes gpt2_short,decode --output records");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("gpt2_short"), std::string::npos);
  EXPECT_NE(result.out.find("record.json"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "records"));
}

TEST_F(CliTest, TuneWritesARecordThatInfoFinds) {
  // The shape is small enough for the slowest build.
  const std::vector<std::string> shapes = {"b1_hq2_hkv2_q64_k64_d16_f32",
                                           "b1_hq2_hkv2_q64_k64_d16_f16",
                                           "b1_hq2_hkv2_q64_k64_d16_bf16"};
  const Result tune =
      Heed("tune --budget 120s --effort quick --json --shapes " + shapes[0] +
           "," + shapes[1] + "," + shapes[2] + " --output records");
  ASSERT_EQ(tune.code, 0) << tune.err;
  const Json report = Json::parse(tune.out);
  ASSERT_TRUE(fs::exists(folder_ / std::string(report["path"])));
  ASSERT_EQ(report["shapes"].size(), shapes.size());
  ASSERT_EQ(report["record"]["entries"].size(), shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_EQ(report["shapes"][i]["problem"], shapes[i]);
  }
  EXPECT_EQ(report["interrupted"], false);
  EXPECT_NE(tune.err.find("\ntook "), std::string::npos) << tune.err;
  EXPECT_NE(tune.err.find(" of 2 min 00 s"), std::string::npos) << tune.err;
  const Result info = Heed("info --json", "HEED_TUNE_PATH=records");
  ASSERT_EQ(info.code, 0) << info.err;
  const Json records = Json::parse(info.out)["records"];
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0]["same_machine"], true);
  // Nothing lies there but the record, its lock and its predecessor, the
  // journal and its summary.
  for (const auto& file :
       fs::recursive_directory_iterator(folder_ / "records")) {
    if (file.is_directory()) continue;
    const std::string name = file.path().filename().string();
    EXPECT_TRUE(name == "record.json" || name == "record.json.lock" ||
                name == "record.json.bak" || name == "summary.md" ||
                name.rfind("journal-", 0) == 0)
        << name;
  }
}

TEST_F(CliTest, TuneFailsAtOnceIfItCannotWrite) {
  std::ofstream(Path("file")) << "not a folder";
  ExpectFailure("tune --shapes gpt2_short --output file", 73,
                "cannot write file (Not a directory). Use --output DIR");
}

TEST_F(CliTest, TuneRefusesToReplaceARecordItCannotRead) {
  const Json info = Json::parse(Heed("info --json").out);
  const fs::path folder =
      folder_ / "records" / std::string(info["machine_key"]);
  fs::create_directories(folder);
  std::ofstream(folder / "record.json") << "{\"schema\": ";
  ExpectFailure("tune --shapes gpt2_short --output records", 65,
                "truncated JSON at byte 11; `heed tune doctor --fix`");
  EXPECT_EQ(Slurp(folder / "record.json"), "{\"schema\": ");
}

}  // namespace
}  // namespace heed
