// A layer out of a checkpoint: the description that the library gets, and that
// tensors which do not fit are named, with their file.
#include "tune/checkpoint_layer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/checkpoint_files.h"
#include "tune/storage.h"

namespace heed {
namespace {

constexpr char kLlama[] =
    R"({"model_type":"llama","hidden_size":24,"num_attention_heads":4,
        "num_key_value_heads":2,"head_dim":10,"rms_norm_eps":1e-6,
        "rope_theta":5000.0})";

// A checkpoint called m, in memory, and the layer that was asked for.
struct Layer {
  std::string bytes, why;
  Checkpoint checkpoint;
  LayerNames names;
  heed_block_desc desc;
  bool ok = false;

  Layer(const std::vector<MadeTensor>& tensors, const char* config_text,
        LayerOptions options)
      : bytes(MakeSafetensors(tensors)) {
    ModelConfig config;
    if (config_text != nullptr) {
      EXPECT_TRUE(ParseModelConfig(config_text, &config, &why)) << why;
    }
    EXPECT_TRUE(checkpoint.OpenBytes(
        "m", reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
        &why))
        << why;
    ok = FindLayer(checkpoint, options.layer, &names, &why) &&
         DescribeLayer(options, names,
                       config_text == nullptr ? nullptr : &config, &checkpoint,
                       &desc, &why);
  }

  const void* Data(const std::string& name) {
    CheckpointTensor tensor;
    EXPECT_TRUE(checkpoint.Find(name, &tensor, &why)) << why;
    return tensor.data;
  }
};

std::string WhyNot(const std::vector<MadeTensor>& tensors, const char* config,
                   LayerOptions options) {
  const Layer layer(tensors, config, options);
  EXPECT_FALSE(layer.ok);
  EXPECT_EQ(layer.why.find('\n'), std::string::npos) << layer.why;
  return layer.why;
}

LayerOptions Heads(int64_t heads) {
  LayerOptions options;
  options.heads = heads;
  return options;
}

TEST(CheckpointLayer, Gpt2WithAndWithoutPrefix) {
  for (const std::string prefix : {"", "transformer."}) {
    Layer layer(Gpt2Tensors(12, prefix, "F16"), nullptr, Heads(3));
    ASSERT_TRUE(layer.ok) << layer.why;
    const heed_block_desc& d = layer.desc;
    EXPECT_EQ(d.d_model, 12);
    EXPECT_EQ(d.heads_q, 3);
    EXPECT_EQ(d.heads_kv, 3);
    EXPECT_EQ(d.dim_qk, 4);
    EXPECT_EQ(d.dim_v, 4);
    EXPECT_EQ(d.norm, HEED_NORM_LAYER);
    EXPECT_EQ(d.norm_place, HEED_NORM_PRE);
    EXPECT_EQ(d.norm_eps, 1e-5);
    EXPECT_EQ(d.norm_gain.data, layer.Data(prefix + "h.0.ln_1.weight"));
    EXPECT_EQ(d.norm_bias.data, layer.Data(prefix + "h.0.ln_1.bias"));
    EXPECT_EQ(d.qkv.data, layer.Data(prefix + "h.0.attn.c_attn.weight"));
    EXPECT_EQ(d.qkv.layout, HEED_LAYOUT_IN_OUT);
    EXPECT_EQ(d.qkv.dtype, HEED_F16);
    EXPECT_EQ(d.qkv.bias.data, layer.Data(prefix + "h.0.attn.c_attn.bias"));
    EXPECT_EQ(d.out.data, layer.Data(prefix + "h.0.attn.c_proj.weight"));
    EXPECT_EQ(d.out.bias.data, layer.Data(prefix + "h.0.attn.c_proj.bias"));
    EXPECT_EQ(d.rope, HEED_ROPE_NONE);
    EXPECT_EQ(d.causal, 1);
    EXPECT_EQ(d.residual, 1);
    EXPECT_EQ(d.scale_mode, HEED_SCALE_INV_SQRT_DIM);
  }
}

TEST(CheckpointLayer, LlamaWithAndWithoutBiases) {
  for (const bool bias : {false, true}) {
    Layer layer(LlamaTensors(24, 4, 2, 10, bias), kLlama, {});
    ASSERT_TRUE(layer.ok) << layer.why;
    const heed_block_desc& d = layer.desc;
    EXPECT_EQ(d.d_model, 24);
    EXPECT_EQ(d.heads_q, 4);
    EXPECT_EQ(d.heads_kv, 2);
    EXPECT_EQ(d.dim_qk, 10);
    EXPECT_EQ(d.norm, HEED_NORM_RMS);
    EXPECT_EQ(d.norm_place, HEED_NORM_PRE);
    EXPECT_EQ(d.norm_eps, 1e-6);
    EXPECT_EQ(d.norm_bias.data, nullptr);
    EXPECT_EQ(d.qkv.data, nullptr);
    const std::string self = "model.layers.0.self_attn.";
    EXPECT_EQ(d.q.data, layer.Data(self + "q_proj.weight"));
    EXPECT_EQ(d.k.data, layer.Data(self + "k_proj.weight"));
    EXPECT_EQ(d.v.data, layer.Data(self + "v_proj.weight"));
    EXPECT_EQ(d.out.data, layer.Data(self + "o_proj.weight"));
    EXPECT_EQ(d.q.layout, HEED_LAYOUT_OUT_IN);
    EXPECT_EQ(d.q.dtype, HEED_BF16);
    EXPECT_EQ(d.v.bias.data != nullptr, bias);
    EXPECT_EQ(d.out.bias.data, nullptr);
    EXPECT_EQ(d.rope, HEED_ROPE_HALF);
    EXPECT_EQ(d.rope_width, 10);
    EXPECT_EQ(d.rope_theta, 5000);
    EXPECT_EQ(d.window, 0);
  }
}

TEST(CheckpointLayer, TheScaleIsTheModelsOrThePower) {
  const auto scale = [](const char* config, std::optional<double> power) {
    LayerOptions options = Heads(3);
    options.scale_power = power;
    const Layer layer(Gpt2Tensors(12, ""), config, options);
    EXPECT_TRUE(layer.ok) << layer.why;
    return layer.desc.scale_mode == HEED_SCALE_VALUE ? layer.desc.scale : -1;
  };
  EXPECT_EQ(scale("{}", {}), -1);
  EXPECT_EQ(scale("{}", 0.0), 1);
  EXPECT_EQ(scale("{}", 1.0), 0.25);
  EXPECT_EQ(scale(R"({"scale_attn_weights":false})", {}), 1);
  EXPECT_EQ(scale(R"({"scale_attn_by_inverse_layer_idx":true})", {}), -1);
}

TEST(CheckpointLayer, AWindowIsThatOfItsLayers) {
  const auto window = [](const std::string& more) {
    const std::string config =
        std::string(kLlama).substr(0, std::strlen(kLlama) - 1) +
        R"(,"sliding_window":5,"use_sliding_window":true)" + more + "}";
    const Layer layer(LlamaTensors(24, 4, 2, 10, false), config.c_str(), {});
    EXPECT_TRUE(layer.ok) << layer.why;
    return layer.desc.window == 0 ? -1 : layer.desc.window_left;
  };
  EXPECT_EQ(window(""), 4);
  EXPECT_EQ(window(R"(,"max_window_layers":0)"), 4);
  EXPECT_EQ(window(R"(,"max_window_layers":1)"), -1);
}

TEST(CheckpointLayer, LayersThatAreNotThereAreNamed) {
  LayerOptions options = Heads(3);
  options.layer = 7;
  EXPECT_EQ(WhyNot(Gpt2Tensors(12, ""), nullptr, options),
            "m: no layer 7; the last is 0");
  EXPECT_EQ(WhyNot({{"a", {1}}, {"h.x.attn.c_attn.weight", {1}}}, nullptr, {}),
            "m: no attention block; expected tensors h.N.attn.c_attn.weight "
            "(GPT-2's names) or model.layers.N.self_attn.q_proj.weight "
            "(Llama's)");
}

TEST(CheckpointLayer, EveryTensorIsNeededAndNamed) {
  const std::vector<MadeTensor> gpt2 = Gpt2Tensors(12, "");
  for (size_t i = 0; i < 6; ++i) {
    if (i == 2) continue;  // by that one the layer is found
    std::vector<MadeTensor> less = gpt2;
    less.erase(less.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_EQ(WhyNot(less, nullptr, Heads(3)),
              "m: tensor " + gpt2[i].name + ": missing");
  }
  const std::vector<MadeTensor> llama = LlamaTensors(24, 4, 2, 10, false);
  for (size_t i = 0; i < 5; ++i) {
    if (i == 1) continue;
    std::vector<MadeTensor> less = llama;
    less.erase(less.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_EQ(WhyNot(less, kLlama, {}),
              "m: tensor " + llama[i].name + ": missing");
  }
}

TEST(CheckpointLayer, EveryShapeAndDtypeIsChecked) {
  const std::vector<MadeTensor> gpt2 = Gpt2Tensors(12, "");
  for (size_t i = 1; i < 6; ++i) {
    std::vector<MadeTensor> wrong = gpt2;
    ++wrong[i].shape.back();
    const std::string why = WhyNot(wrong, nullptr, Heads(3));
    EXPECT_EQ(why.rfind("m: tensor " + gpt2[i].name + ": shape (", 0), 0u)
        << why;
    EXPECT_NE(why.find("; expected ("), std::string::npos) << why;
  }
  std::vector<MadeTensor> wrong = gpt2;
  wrong[0].shape = {12, 1};
  EXPECT_EQ(WhyNot(wrong, nullptr, Heads(3)),
            "m: tensor h.0.ln_1.weight: shape (12, 1); expected one dimension "
            "of 1 or more");
  wrong[0].shape = {0};
  EXPECT_EQ(WhyNot(wrong, nullptr, Heads(3)),
            "m: tensor h.0.ln_1.weight: shape (0); expected one dimension of 1 "
            "or more");
}

TEST(CheckpointLayer, ADtypeThatIsNotComputedIsNamed) {
  const std::string bytes = SafetensorsFile(
      R"({"h.0.attn.c_attn.weight":{"dtype":"I32","shape":[1,3],)"
      R"("data_offsets":[0,12]},"h.0.ln_1.weight":{"dtype":"F32","shape":[1],)"
      R"("data_offsets":[12,16]},"h.0.ln_1.bias":{"dtype":"F32","shape":[1],)"
      R"("data_offsets":[16,20]}})",
      std::string(20, '\0'));
  Checkpoint checkpoint;
  std::string why;
  ASSERT_TRUE(checkpoint.OpenBytes(
      "m", reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
      &why))
      << why;
  heed_block_desc desc;
  EXPECT_FALSE(DescribeLayer(Heads(1), {}, nullptr, &checkpoint, &desc, &why));
  EXPECT_EQ(why,
            "m: tensor h.0.attn.c_attn.weight: dtype I32; expected F32, F16 or "
            "BF16");
}

TEST(CheckpointLayer, HeadsAreSaidOnceAndFit) {
  const std::vector<MadeTensor> gpt2 = Gpt2Tensors(12, "");
  EXPECT_EQ(WhyNot(gpt2, nullptr, {}),
            "m: no config.json beside it says how many heads there are; "
            "expected --heads N");
  EXPECT_EQ(WhyNot(gpt2, nullptr, Heads(5)),
            "m: tensor h.0.attn.c_attn.weight: 5 heads do not divide d_model = "
            "12");
  EXPECT_EQ(WhyNot(gpt2, R"({"n_head":7})", {}),
            "m: tensor h.0.attn.c_attn.weight: 7 heads do not divide d_model = "
            "12");
  EXPECT_EQ(WhyNot(gpt2, R"({"n_head":3})", Heads(4)),
            "m: --heads 4, but its config.json says 3");
  EXPECT_EQ(WhyNot(gpt2, R"({"n_head":3,"n_embd":9})", {}),
            "m: tensor h.0.ln_1.weight: has 12 elements, but config.json's "
            "n_embd is 9");
  const Layer both(gpt2, R"({"n_head":3})", Heads(3));
  EXPECT_TRUE(both.ok) << both.why;
}

TEST(CheckpointLayer, LlamasConfigurationHasToFit) {
  const std::vector<MadeTensor> llama = LlamaTensors(24, 4, 2, 10, false);
  EXPECT_EQ(WhyNot(llama, nullptr, Heads(4)),
            "m: no config.json beside it, which a Llama-style model needs");
  const auto with = [&](const std::string& more) {
    return WhyNot(llama,
                  (R"({"num_attention_heads":4,"num_key_value_heads":2,)"
                   R"("head_dim":10,)" +
                   more + "}")
                      .c_str(),
                  {});
  };
  EXPECT_EQ(with(R"("model_type":"gemma2","rms_norm_eps":0)"),
            "m: model_type 'gemma2' with Llama's names of tensors; expected "
            "llama, mistral, mixtral or qwen2");
  EXPECT_EQ(with(R"("model_type":"llama")"),
            "m: its config.json does not say rms_norm_eps");
  const std::string good = R"("model_type":"llama","rms_norm_eps":0,)";
  EXPECT_EQ(with(good + R"("hidden_size":25)"),
            "m: tensor model.layers.0.input_layernorm.weight: has 24 elements, "
            "but config.json's hidden_size is 25");
  EXPECT_EQ(with(good + R"("partial_rotary_factor":0.3)"),
            "m: RoPE turns 3 elements of a head; expected an even number");
  EXPECT_EQ(WhyNot(llama,
                   R"({"model_type":"llama","rms_norm_eps":0,
                       "num_attention_heads":4,"num_key_value_heads":3})",
                   {}),
            "m: config.json's num_key_value_heads 3 do not divide its 4 heads");
  EXPECT_EQ(WhyNot(llama,
                   R"({"model_type":"llama","rms_norm_eps":0,
                       "num_attention_heads":5})",
                   {}),
            "m: tensor model.layers.0.self_attn.q_proj.weight: 5 heads do not "
            "divide d_model = 24");
  EXPECT_EQ(
      WhyNot(llama,
             R"({"model_type":"llama","rms_norm_eps":0,"head_dim":4294967296,
                       "num_attention_heads":4294967296})",
             {}),
      "m: heads * head_dim overflow");
  std::vector<MadeTensor> qwen3 = llama;
  qwen3.push_back({"model.layers.0.self_attn.q_norm.weight", {10}});
  EXPECT_EQ(WhyNot(qwen3, kLlama, {}),
            "m: tensor model.layers.0.self_attn.q_norm.weight: a norm of "
            "queries and keys, which heed does not compute");
}

TEST(CheckpointLayer, TokensAreEmbedded) {
  Layer layer(Gpt2Tensors(12, "transformer."), nullptr, Heads(3));
  ASSERT_TRUE(layer.ok) << layer.why;
  std::vector<float> x;
  ASSERT_TRUE(EmbedTokens({4, 0, 10}, layer.names, 12, &layer.checkpoint, &x,
                          &layer.why))
      << layer.why;
  ASSERT_EQ(x.size(), 36u);
  std::vector<float> wte(11 * 12), wpe(9 * 12);
  std::memcpy(wte.data(), layer.Data("transformer.wte.weight"), 4 * 11 * 12);
  std::memcpy(wpe.data(), layer.Data("transformer.wpe.weight"), 4 * 9 * 12);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(x[i], wte[4 * 12 + i] + wpe[i]);
    EXPECT_EQ(x[24 + i], wte[10 * 12 + i] + wpe[24 + i]);
  }
  const auto why = [&](const std::vector<int64_t>& tokens) {
    EXPECT_FALSE(EmbedTokens(tokens, layer.names, 12, &layer.checkpoint, &x,
                             &layer.why));
    return layer.why;
  };
  EXPECT_EQ(why({11}),
            "m: tensor transformer.wte.weight: no row for token 11; it has 11");
  EXPECT_EQ(why({-1}),
            "m: tensor transformer.wte.weight: no row for token -1; it has 11");
  EXPECT_EQ(why(std::vector<int64_t>(10)),
            "m: tensor transformer.wpe.weight: no row for position 9; it has "
            "9");
}

TEST(CheckpointLayer, LlamasEmbeddingIsWidened) {
  Layer layer(LlamaTensors(24, 4, 2, 10, false), kLlama, {});
  ASSERT_TRUE(layer.ok) << layer.why;
  std::vector<float> x;
  ASSERT_TRUE(
      EmbedTokens({3, 3}, layer.names, 24, &layer.checkpoint, &x, &layer.why))
      << layer.why;
  uint16_t word;
  std::memcpy(
      &word,
      static_cast<const char*>(layer.Data("model.embed_tokens.weight")) +
          2 * (3 * 24 + 5),
      sizeof word);
  EXPECT_EQ(x[5], WidenBF16(word));
  EXPECT_EQ(x[24 + 5], x[5]);
}

TEST(CheckpointLayer, EmbeddingsThatAreMissingOrDoNotFitAreNamed) {
  std::vector<MadeTensor> tensors = Gpt2Tensors(12, "");
  tensors[6].shape = {11, 13};
  tensors.pop_back();
  Layer layer(tensors, nullptr, Heads(3));
  ASSERT_TRUE(layer.ok) << layer.why;
  std::vector<float> x;
  EXPECT_FALSE(
      EmbedTokens({1}, layer.names, 12, &layer.checkpoint, &x, &layer.why));
  EXPECT_EQ(layer.why,
            "m: tensor wte.weight: shape (11, 13); expected (tokens, 12)");
  Layer other(std::vector<MadeTensor>(tensors.begin(), tensors.begin() + 6),
              nullptr, Heads(3));
  EXPECT_FALSE(
      EmbedTokens({1}, other.names, 12, &other.checkpoint, &x, &other.why));
  EXPECT_EQ(other.why, "m: tensor wte.weight: missing");
}

}  // namespace
}  // namespace heed
