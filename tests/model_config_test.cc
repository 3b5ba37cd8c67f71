// config.json: what is read of it, and that wrong values are named.
#include "tune/model_config.h"

#include <gtest/gtest.h>

#include <string>

namespace heed {
namespace {

ModelConfig Good(const std::string& text) {
  ModelConfig config;
  std::string why;
  EXPECT_TRUE(ParseModelConfig(text, &config, &why)) << why;
  return config;
}

std::string WhyNot(const std::string& text) {
  ModelConfig config;
  std::string why;
  EXPECT_FALSE(ParseModelConfig(text, &config, &why)) << text;
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  return why;
}

TEST(ModelConfig, Gpt2) {
  const ModelConfig config = Good(
      R"({"model_type":"gpt2","n_embd":768,"n_head":12,"n_ctx":1024,
          "layer_norm_epsilon":1e-05,"activation_function":"gelu_new",
          "task_specific_params":{"text-generation":{"do_sample":true}}})");
  EXPECT_EQ(config.model_type, "gpt2");
  EXPECT_EQ(config.d_model, 768);
  EXPECT_EQ(config.heads_q, 12);
  EXPECT_EQ(config.heads_kv, 0);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_TRUE(config.scale_attn_weights);
  EXPECT_FALSE(config.scale_attn_by_inverse_layer_idx);
  EXPECT_EQ(config.sliding_window, 0);
}

TEST(ModelConfig, Llama31) {
  const ModelConfig config = Good(
      R"({"model_type":"llama","hidden_size":4096,"num_attention_heads":32,
          "num_key_value_heads":8,"rms_norm_eps":1e-05,"rope_theta":500000.0,
          "head_dim":null,"rope_scaling":{"factor":8.0,"low_freq_factor":1.0,
          "high_freq_factor":4.0,"original_max_position_embeddings":8192,
          "rope_type":"llama3"}})");
  EXPECT_EQ(config.d_model, 4096);
  EXPECT_EQ(config.heads_q, 32);
  EXPECT_EQ(config.heads_kv, 8);
  EXPECT_EQ(config.head_dim, 0);
  EXPECT_EQ(config.rope_theta, 500000);
  EXPECT_EQ(config.rope_scaling, HEED_ROPE_SCALING_LLAMA3);
  EXPECT_EQ(config.rope_factor, 8);
  EXPECT_EQ(config.rope_low_freq_factor, 1);
  EXPECT_EQ(config.rope_high_freq_factor, 4);
  EXPECT_EQ(config.rope_original_len, 8192);
}

TEST(ModelConfig, RopeOfOtherNames) {
  EXPECT_EQ(Good(R"({"rope_scaling":null})").rope_scaling,
            HEED_ROPE_SCALING_NONE);
  EXPECT_EQ(Good(R"({"rope_scaling":{"type":"default"}})").rope_scaling,
            HEED_ROPE_SCALING_NONE);
  const ModelConfig linear =
      Good(R"({"rope_scaling":{"type":"linear","factor":2.5}})");
  EXPECT_EQ(linear.rope_scaling, HEED_ROPE_SCALING_LINEAR);
  EXPECT_EQ(linear.rope_factor, 2.5);
  EXPECT_EQ(linear.rope_theta, 10000);
  EXPECT_EQ(Good(R"({"rope_parameters":{"rope_type":"default",
                     "rope_theta":7.0}})")
                .rope_theta,
            7);
  EXPECT_EQ(Good(R"({"partial_rotary_factor":0.25})").rope_share, 0.25);
}

TEST(ModelConfig, WindowsAreOfThoseThatUseThem) {
  const auto window = [](const std::string& more) {
    return Good(R"({"sliding_window":4096,"max_window_layers":28,)" + more)
        .sliding_window;
  };
  EXPECT_EQ(window(R"("model_type":"mistral"})"), 4096);
  EXPECT_EQ(window(R"("model_type":"llama"})"), 0);
  EXPECT_EQ(window(R"("model_type":"qwen2","use_sliding_window":false})"), 0);
  EXPECT_EQ(window(R"("model_type":"qwen2","use_sliding_window":true})"), 4096);
  EXPECT_EQ(
      Good(R"({"model_type":"mistral","sliding_window":null})").sliding_window,
      0);
}

TEST(ModelConfig, WrongValuesAreNamed) {
  EXPECT_EQ(WhyNot(""), "no JSON: it is empty");
  EXPECT_EQ(WhyNot("[]"), "[]; expected an object");
  // What Python's json writes for such a number is no JSON.
  EXPECT_EQ(WhyNot(R"({"layer_norm_epsilon": NaN})"),
            "not valid JSON at byte 24, after '{\"layer_norm_epsilon\": N'");
  EXPECT_EQ(WhyNot(R"({"rms_norm_eps": 1e999})"),
            "a number that no double holds, at byte 22, after "
            "'{\"rms_norm_eps\": 1e999'");
  EXPECT_EQ(WhyNot(R"({"rms_norm_eps":"nan"})"),
            "rms_norm_eps is \"nan\"; expected a finite number of at least 0");
  EXPECT_EQ(WhyNot(R"({"rms_norm_eps":-1e-5})"),
            "rms_norm_eps is -1e-05; expected a finite number of at least 0");
  EXPECT_EQ(WhyNot(R"({"n_head":0})"),
            "n_head is 0; expected an integer from 1 to 2^32");
  EXPECT_EQ(WhyNot(R"({"n_head":-3})"),
            "n_head is -3; expected an integer from 1 to 2^32");
  EXPECT_EQ(WhyNot(R"({"n_head":12.0})"),
            "n_head is 12.0; expected an integer from 1 to 2^32");
  EXPECT_EQ(WhyNot(R"({"head_dim":9223372036854775807})"),
            "head_dim is 9223372036854775807; expected an integer from 1 to "
            "2^32");
  EXPECT_EQ(WhyNot(R"({"n_head":1,"n_head":2})"),
            "key \"n_head\" occurs twice in one object");
  EXPECT_EQ(WhyNot(R"({"rope_theta":0})"),
            "rope_theta is 0; expected a finite number above 0");
  EXPECT_EQ(WhyNot(R"({"partial_rotary_factor":1.5})"),
            "partial_rotary_factor is 1.5; expected at most 1");
  EXPECT_EQ(WhyNot(R"({"model_type":["\u001b[2J"]})"),
            "model_type is [\"\\u001b[2J\"]; expected a string");
  EXPECT_EQ(WhyNot(R"({"scale_attn_weights":1})"),
            "scale_attn_weights is 1; expected true or false");
}

TEST(ModelConfig, WrongRopeIsNamed) {
  EXPECT_EQ(WhyNot(R"({"rope_scaling":3})"),
            "rope_scaling is 3; expected an object");
  EXPECT_EQ(WhyNot(R"({"rope_scaling":{"type":"yarn","factor":4}})"),
            "rope_scaling.rope_type is \"yarn\"; expected default, linear or "
            "llama3");
  EXPECT_EQ(WhyNot(R"({"rope_scaling":{"type":"linear"}})"),
            "rope_scaling.factor is null; expected a finite number above 0");
  EXPECT_EQ(WhyNot(R"({"rope_scaling":{"type":"linear","factor":0}})"),
            "rope_scaling.factor is 0; expected a finite number above 0");
  const std::string llama3 =
      R"({"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":4,)";
  EXPECT_EQ(WhyNot(llama3 + R"("high_freq_factor":8}})"),
            "rope_scaling.original_max_position_embeddings is null; expected "
            "an integer of at least 1");
  EXPECT_EQ(WhyNot(llama3 + R"("high_freq_factor":4,
                               "original_max_position_embeddings":9}})"),
            "rope_scaling.high_freq_factor is 4.0; expected more than "
            "low_freq_factor");
}

}  // namespace
}  // namespace heed
