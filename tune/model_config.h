// A checkpoint's config.json, as far as an attention block is concerned. Text
// in, a value or a reason out. No I/O.
#ifndef HEED_TUNE_MODEL_CONFIG_H_
#define HEED_TUNE_MODEL_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/include/heed_block.h"

namespace heed {

// Under the names that Hugging Face's transformers give them, of which GPT-2's
// come second.
struct ModelConfig {
  std::string model_type;  // empty: not said
  // Not said: 0.
  int64_t d_model = 0;   // hidden_size, n_embd
  int64_t heads_q = 0;   // num_attention_heads, n_head
  int64_t heads_kv = 0;  // num_key_value_heads
  int64_t head_dim = 0;

  std::optional<double> norm_eps;  // rms_norm_eps, layer_norm_epsilon

  double rope_theta = 10000;
  double rope_share = 1;  // partial_rotary_factor: so much of a head is turned
  int32_t rope_scaling = HEED_ROPE_SCALING_NONE;
  double rope_factor = 1, rope_low_freq_factor = 0, rope_high_freq_factor = 0;
  int64_t rope_original_len = 0;

  // GPT-2's variants of the scale: not 1 / sqrt(head_dim) but 1, and that
  // divided by the layer's number from 1.
  bool scale_attn_weights = true;
  bool scale_attn_by_inverse_layer_idx = false;

  // A token sees itself and the sliding_window - 1 before it, in the layers
  // from window_layer on; 0: all before it.
  int64_t sliding_window = 0;
  int64_t window_layer = 0;
};

// On failure returns false and says why in one line that names the member.
bool ParseModelConfig(const std::string& text, ModelConfig* config,
                      std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_MODEL_CONFIG_H_
