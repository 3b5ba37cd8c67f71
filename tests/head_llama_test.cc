// A Llama-style layer out of a checkpoint against a double-precision block
// that is written down here from the model's definition, names, layouts, RoPE
// and all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/checkpoint_files.h"
#include "tune/checkpoint_layer.h"
#include "tune/head_run.h"
#include "tune/storage.h"

namespace heed {
namespace {

constexpr int64_t kModel = 24, kHeads = 4, kKvHeads = 2, kDim = 10, kLen = 9;
constexpr double kTheta = 100;

using Table = std::map<std::string, std::vector<double>>;

class LlamaBlock {
 public:
  LlamaBlock(Table tensors, bool llama3, int64_t window)
      : tensors_(std::move(tensors)), llama3_(llama3), window_(window) {}

  // resid [kLen, kModel] of x.
  std::vector<double> Run(const std::vector<float>& x) const {
    std::vector<double> resid;
    std::vector<std::vector<double>> q, k, v;
    for (int64_t t = 0; t < kLen; ++t) {
      const std::vector<double> row(x.begin() + t * kModel,
                                    x.begin() + (t + 1) * kModel);
      const std::vector<double> norm = Norm(row);
      q.push_back(Rope(Linear("q_proj", norm, kHeads * kDim), t));
      k.push_back(Rope(Linear("k_proj", norm, kKvHeads * kDim), t));
      v.push_back(Linear("v_proj", norm, kKvHeads * kDim));
      const std::vector<double> out =
          Linear("o_proj", Attend(q[t], k, v), kModel);
      for (int64_t i = 0; i < kModel; ++i) resid.push_back(row[i] + out[i]);
    }
    return resid;
  }

 private:
  std::vector<double> Norm(const std::vector<double>& row) const {
    double sum = 0;
    for (const double value : row) sum += value * value;
    const auto& gain = tensors_.at("input_layernorm.weight");
    std::vector<double> norm;
    for (int64_t i = 0; i < kModel; ++i) {
      norm.push_back(row[i] / std::sqrt(sum / kModel + 1e-6) * gain[i]);
    }
    return norm;
  }

  std::vector<double> Linear(const std::string& name,
                             const std::vector<double>& in, int64_t out) const {
    const auto& weight = tensors_.at("self_attn." + name + ".weight");
    const auto bias = tensors_.find("self_attn." + name + ".bias");
    std::vector<double> result;
    for (int64_t o = 0; o < out; ++o) {
      double sum = bias == tensors_.end() ? 0 : bias->second[o];
      for (size_t i = 0; i < in.size(); ++i) {
        sum += weight[o * in.size() + i] * in[i];
      }
      result.push_back(sum);
    }
    return result;
  }

  double Frequency(int64_t pair) const {
    const double f = std::pow(kTheta, -2.0 * pair / kDim);
    if (!llama3_) return f;
    // Meta's apply_scaling(), factor 8, low 1, high 4, old length 30.
    const double wavelength = 2 * M_PI / f;
    if (wavelength < 30 / 4.0) return f;
    if (wavelength > 30 / 1.0) return f / 8;
    const double smooth = (30 / wavelength - 1) / (4 - 1);
    return (1 - smooth) * f / 8 + smooth * f;
  }

  // rotate_half of transformers: element i goes with i + kDim / 2.
  std::vector<double> Rope(std::vector<double> x, int64_t position) const {
    for (size_t head = 0; head < x.size() / kDim; ++head) {
      for (int64_t i = 0; i < kDim / 2; ++i) {
        const double angle = position * Frequency(i);
        double& a = x[head * kDim + i];
        double& b = x[head * kDim + i + kDim / 2];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = turned;
      }
    }
    return x;
  }

  // The last token's heads, side by side.
  std::vector<double> Attend(const std::vector<double>& q,
                             const std::vector<std::vector<double>>& k,
                             const std::vector<std::vector<double>>& v) const {
    std::vector<double> merged;
    const auto tokens = static_cast<int64_t>(k.size());
    for (int64_t head = 0; head < kHeads; ++head) {
      const int64_t at = head / (kHeads / kKvHeads) * kDim;
      double sum = 0;
      std::vector<double> blend(kDim);
      const int64_t begin =
          window_ == 0 ? 0 : std::max<int64_t>(0, tokens - window_);
      for (int64_t t = begin; t < tokens; ++t) {
        double score = 0;
        for (int64_t i = 0; i < kDim; ++i) {
          score += q[head * kDim + i] * k[t][at + i];
        }
        const double weight = std::exp(score / std::sqrt(double{kDim}));
        sum += weight;
        for (int64_t i = 0; i < kDim; ++i) blend[i] += weight * v[t][at + i];
      }
      for (const double value : blend) merged.push_back(value / sum);
    }
    return merged;
  }

  const Table tensors_;
  const bool llama3_;
  const int64_t window_;
};

void ExpectLlama(bool bias, bool llama3, int64_t window) {
  const std::string bytes =
      MakeSafetensors(LlamaTensors(kModel, kHeads, kKvHeads, kDim, bias));
  const std::string text =
      std::string(R"({"model_type":"qwen2","hidden_size":24,"head_dim":10,)"
                  R"("num_attention_heads":4,"num_key_value_heads":2,)"
                  R"("rms_norm_eps":1e-6,"rope_theta":100.0)") +
      (llama3 ? R"(,"rope_scaling":{"rope_type":"llama3","factor":8.0,)"
                R"("low_freq_factor":1.0,"high_freq_factor":4.0,)"
                R"("original_max_position_embeddings":30})"
              : "") +
      (window == 0 ? ""
                   : ",\"use_sliding_window\":true,\"sliding_window\":" +
                         std::to_string(window)) +
      "}";
  std::string why;
  ModelConfig config;
  Checkpoint checkpoint;
  LayerNames names;
  heed_block_desc desc;
  std::vector<float> x;
  ASSERT_TRUE(ParseModelConfig(text, &config, &why)) << why;
  ASSERT_TRUE(checkpoint.OpenBytes(
      "m", reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
      &why))
      << why;
  ASSERT_TRUE(FindLayer(checkpoint, 0, &names, &why)) << why;
  ASSERT_TRUE(DescribeLayer({}, names, &config, &checkpoint, &desc, &why))
      << why;
  ASSERT_TRUE(EmbedTokens({1, 5, 5, 2, 9, 0, 10, 3, 1}, names, kModel,
                          &checkpoint, &x, &why))
      << why;
  Table tensors;
  const std::string layer = "model.layers.0.";
  for (const std::string& name : checkpoint.Names()) {
    if (name.rfind(layer, 0) != 0) continue;
    CheckpointTensor tensor;
    ASSERT_TRUE(checkpoint.Find(name, &tensor, &why)) << why;
    std::vector<double>& values = tensors[name.substr(layer.size())];
    for (size_t i = 0; i < tensor.bytes; i += 2) {
      uint16_t word;
      std::memcpy(&word, tensor.data + i, sizeof word);
      values.push_back(WidenBF16(word));
    }
  }
  HeadTensors got;
  ASSERT_TRUE(RunHead(desc, x.data(), kLen, 1, &got, &why)) << why;
  const std::vector<double> want = LlamaBlock(tensors, llama3, window).Run(x);
  ASSERT_EQ(got.resid.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got.resid[i], want[i], 3e-5) << i;
  }
}

TEST(HeadLlama, IsWhatTheModelDefines) {
  ExpectLlama(/*bias=*/false, /*llama3=*/false, /*window=*/0);
}

TEST(HeadLlama, WithBiases) { ExpectLlama(true, false, 0); }

TEST(HeadLlama, WithScaledRope) { ExpectLlama(false, true, 0); }

TEST(HeadLlama, WithAWindow) { ExpectLlama(true, true, 3); }

}  // namespace
}  // namespace heed
