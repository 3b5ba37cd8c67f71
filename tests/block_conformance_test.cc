// The attention blocks of the folder that HEED_CONFORMANCE_DIR names: a GPT-2
// block and the first block of a real OCR model, all intermediates of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/block_case.h"
#include "tests/block_program.h"
#include "tune/npy_header.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A .npy file of f32 or f64 as double; empty if there is none.
std::vector<double> ReadNumbers(const fs::path& path) {
  const std::string all = ReadAll(path);
  NpyHeader header;
  std::string why;
  if (!ParseNpyHeader(all, &header, &why)) return {};
  const bool is_double = header.descr == "<f8";
  EXPECT_TRUE(is_double || header.descr == "<f4") << path;
  std::vector<double> numbers(
      static_cast<size_t>(NpyElementCount(header.shape)));
  const char* from = all.data() + header.header_bytes;
  for (size_t i = 0; i < numbers.size(); ++i) {
    float single;
    if (is_double) {
      std::memcpy(&numbers[i], from + 8 * i, 8);
    } else {
      std::memcpy(&single, from + 4 * i, 4);
      numbers[i] = single;
    }
  }
  return numbers;
}

// The f32 tensors of one safetensors file of the conformance data: enough of
// the format for files known to be sound.
class Checkpoint {
 public:
  explicit Checkpoint(const fs::path& path) : all_(ReadAll(path)) {
    uint64_t length;
    std::memcpy(&length, all_.data(), 8);
    header_ = Json::parse(all_.substr(8, length));
    data_ = 8 + length;
  }
  std::vector<float> Tensor(const std::string& name) const {
    const Json& tensor = header_.at(name);
    EXPECT_EQ(tensor.at("dtype"), "F32") << name;
    const auto begin = tensor.at("data_offsets")[0].get<size_t>();
    const auto end = tensor.at("data_offsets")[1].get<size_t>();
    std::vector<float> values((end - begin) / 4);
    std::memcpy(values.data(), all_.data() + data_ + begin, end - begin);
    return values;
  }

 private:
  std::string all_;
  Json header_;
  size_t data_ = 0;
};

BlockCase ReadCase(const fs::path& folder) {
  const Json json = Json::parse(ReadAll(folder / "case.json"));
  const Checkpoint checkpoint(folder / "model.safetensors");
  BlockCase c;
  heed_block_desc& desc = c.desc;
  heed_block_desc_init(&desc);
  desc.d_model = json.at("d_model");
  desc.heads_q = desc.heads_kv = json.at("n_head");
  desc.dim_qk = desc.dim_v = json.at("head_dim");
  desc.norm = HEED_NORM_LAYER;
  desc.norm_place = HEED_NORM_PRE;
  desc.norm_eps = json.at("ln_eps");
  desc.causal = json.value("causal", true) ? 1 : 0;
  desc.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  if (json.contains("scale")) {
    desc.scale_mode = HEED_SCALE_VALUE;
    desc.scale = json.at("scale");
  }
  c.len = json.at("n");
  for (const double x : ReadNumbers(folder / "x.npy")) {
    c.x.push_back(static_cast<float>(x));
  }
  c.gain = checkpoint.Tensor("h.0.ln_1.weight");
  c.bias = checkpoint.Tensor("h.0.ln_1.bias");
  const auto matrix = [&](const std::string& name, int64_t inputs,
                          int64_t outputs, StoredMatrix* m) {
    m->inputs = inputs;
    m->outputs = outputs;
    m->values = checkpoint.Tensor(name + ".weight");
    m->bias_values = checkpoint.Tensor(name + ".bias");
    ASSERT_EQ(static_cast<int64_t>(m->values.size()), inputs * outputs);
    Store(m, true);
  };
  matrix("h.0.attn.c_attn", desc.d_model, c.QkvOutputs(), &c.qkv);
  matrix("h.0.attn.c_proj", desc.heads_q * desc.dim_v, desc.d_model, &c.out);
  return c;
}

// Scores are -inf where a key is hidden, in both.
void ExpectNear(const std::vector<float>& got, const std::vector<double>& want,
                double limit, const std::string& where) {
  ASSERT_EQ(got.size(), want.size()) << where;
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(want[i])) {
      ASSERT_EQ(got[i], want[i]) << where << "[" << i << "]";
      continue;
    }
    largest = std::max(largest, std::abs(got[i] - want[i]));
  }
  EXPECT_LE(largest, limit) << where;
}

void CheckFolder(const fs::path& folder) {
  const BlockCase c = ReadCase(folder);
  const BlockValues program = BlockProgram(c);
  for (const std::string& target : TargetNames(/*fused_only=*/false)) {
    Settings settings;
    settings.target = target;
    const BlockValues got = RunBlock(c, settings, /*with_scores=*/true);
    ASSERT_EQ(got.status, HEED_OK) << got.error;
    const struct {
      const char* name;
      const std::vector<float>& values;
    } outputs[] = {{"ln", got.ln},         {"q", got.q},
                   {"k", got.k},           {"v", got.v},
                   {"scores", got.scores}, {"pattern", got.pattern},
                   {"z", got.z},           {"attn_out", got.attn_out},
                   {"resid", got.resid},   {"resid", got.y}};
    for (const auto& output : outputs) {
      const std::string name = output.name;
      std::vector<double> want = ReadNumbers(folder / (name + ".f64.npy"));
      if (want.empty()) want = ReadNumbers(folder / (name + ".f32.npy"));
      double largest = 1;
      for (const double x : want) {
        if (!std::isinf(x)) largest = std::max(largest, std::abs(x));
      }
      ExpectNear(output.values, want, name == "pattern" ? 2e-5 : 3e-5 * largest,
                 folder.filename().string() + " " + target + " " + name);
    }
  }
  for (const std::string& target : TargetNames(/*fused_only=*/true)) {
    Settings settings;
    settings.target = target;
    EXPECT_EQ(Difference(RunBlock(c, settings), program), "") << target;
  }
}

TEST(BlockConformance, BlocksAreWithinTheirLimits) {
  const char* root = std::getenv("HEED_CONFORMANCE_DIR");
  if (root == nullptr) GTEST_SKIP() << "HEED_CONFORMANCE_DIR is not set";
  for (const char* name : {"gpt2_block_small", "ppocr_block"}) {
    ASSERT_TRUE(fs::exists(fs::path(root) / name / "case.json")) << name;
    CheckFolder(fs::path(root) / name);
  }
}

}  // namespace
}  // namespace heed::test
