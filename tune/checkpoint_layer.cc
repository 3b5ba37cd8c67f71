#include "tune/checkpoint_layer.h"

#include <algorithm>
#include <cmath>

#include "tune/layer_tensors.h"
#include "tune/printable.h"

namespace heed {
namespace {

constexpr double kGpt2Eps = 1e-5;  // what GPT-2's configuration says, always
constexpr char kGpt2End[] = ".attn.c_attn.weight";
constexpr char kLlamaEnd[] = ".self_attn.q_proj.weight";

// The number N of a tensor called <prefix><stem>N<end>, where prefix is one of
// two; -1 if it is called otherwise.
int64_t LayerNumber(const std::string& name, const std::string& stem,
                    const std::string& end, const std::string& a_prefix,
                    std::string* prefix) {
  for (const std::string& begin : {a_prefix, std::string()}) {
    const size_t from = begin.size() + stem.size();
    if (name.compare(0, from, begin + stem) != 0) continue;
    const size_t to = name.find_first_not_of("0123456789", from);
    if (to == std::string::npos || to == from || to - from > 9 ||
        name.compare(to, std::string::npos, end) != 0) {
      continue;
    }
    *prefix = begin;
    return std::stoll(name.substr(from, to - from));
  }
  return -1;
}

// Heads, as the configuration or the caller says, who must not differ.
bool ReadHeads(const LayerOptions& options, const ModelConfig& config,
               const std::string& path, int64_t* heads, std::string* why) {
  if (options.heads != 0 && config.heads_q != 0 &&
      options.heads != config.heads_q) {
    *why = path + ": --heads " + std::to_string(options.heads) +
           ", but its config.json says " + std::to_string(config.heads_q);
    return false;
  }
  *heads = options.heads != 0 ? options.heads : config.heads_q;
  if (*heads != 0) return true;
  *why = path +
         ": no config.json beside it says how many heads there are; expected "
         "--heads N";
  return false;
}

bool DescribeGpt2(const ModelConfig& config, int64_t heads, LayerTensors* get,
                  heed_block_desc* d) {
  const std::string& type = config.model_type;
  if (!type.empty() && type != "gpt2") {
    return get->FailLayer("model_type '" + Printable(type) +
                          "' with GPT-2's names of tensors; expected gpt2");
  }
  d->d_model = get->Length("ln_1.weight");
  if (!get->ok()) return false;
  if (config.d_model != 0 && config.d_model != d->d_model) {
    return get->FailTensor("ln_1.weight",
                           "has " + std::to_string(d->d_model) +
                               " elements, but config.json's n_embd is " +
                               std::to_string(config.d_model));
  }
  if (d->d_model % heads != 0) {
    return get->FailTensor(
        "attn.c_attn.weight",
        std::to_string(heads) +
            " heads do not divide d_model = " + std::to_string(d->d_model));
  }
  d->heads_q = d->heads_kv = heads;
  d->dim_qk = d->dim_v = d->d_model / heads;
  d->norm = HEED_NORM_LAYER;
  d->norm_place = HEED_NORM_PRE;
  d->norm_eps = config.norm_eps.value_or(kGpt2Eps);
  d->norm_gain = get->Vector("ln_1.weight", d->d_model);
  d->norm_bias = get->Vector("ln_1.bias", d->d_model);
  // 3 * d_model cannot overflow: that many bytes are in a file.
  d->qkv = get->Matrix("attn.c_attn", HEED_LAYOUT_IN_OUT, d->d_model,
                       3 * d->d_model, LayerTensors::Bias::kThere);
  d->out = get->Matrix("attn.c_proj", HEED_LAYOUT_IN_OUT, d->d_model,
                       d->d_model, LayerTensors::Bias::kThere);
  return get->ok();
}

// The architectures whose attention is Llama's, but for what ModelConfig has.
bool IsLlamaType(const std::string& type) {
  for (const char* known : {"llama", "mistral", "mixtral", "qwen2"}) {
    if (type == known) return true;
  }
  return false;
}

bool ReadRope(const ModelConfig& config, LayerTensors* get,
              heed_block_desc* d) {
  const double width = std::floor(d->dim_qk * config.rope_share);
  d->rope = HEED_ROPE_HALF;
  d->rope_width = static_cast<int64_t>(width);
  if (d->rope_width < 2 || d->rope_width % 2 != 0) {
    return get->FailLayer("RoPE turns " + std::to_string(d->rope_width) +
                          " elements of a head; expected an even number");
  }
  d->rope_theta = config.rope_theta;
  d->rope_scaling = config.rope_scaling;
  d->rope_factor = config.rope_factor;
  d->rope_low_freq_factor = config.rope_low_freq_factor;
  d->rope_high_freq_factor = config.rope_high_freq_factor;
  d->rope_original_len = config.rope_original_len;
  return true;
}

bool DescribeLlama(const ModelConfig& config, int64_t layer, int64_t heads,
                   LayerTensors* get, heed_block_desc* d) {
  if (!IsLlamaType(config.model_type)) {
    return get->FailLayer("model_type '" + Printable(config.model_type) +
                          "' with Llama's names of tensors; expected llama, "
                          "mistral, mixtral or qwen2");
  }
  if (!config.norm_eps.has_value()) {
    return get->FailLayer("its config.json does not say rms_norm_eps");
  }
  for (const char* other :
       {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}) {
    if (get->Has(other)) {
      return get->FailTensor(other,
                             "a norm of queries and keys, which heed does not "
                             "compute");
    }
  }
  d->d_model = get->Length("input_layernorm.weight");
  if (!get->ok()) return false;
  if (config.d_model != 0 && config.d_model != d->d_model) {
    return get->FailTensor("input_layernorm.weight",
                           "has " + std::to_string(d->d_model) +
                               " elements, but config.json's hidden_size is " +
                               std::to_string(config.d_model));
  }
  if (config.head_dim == 0 && d->d_model % heads != 0) {
    return get->FailTensor(
        "self_attn.q_proj.weight",
        std::to_string(heads) +
            " heads do not divide d_model = " + std::to_string(d->d_model));
  }
  d->heads_q = heads;
  d->heads_kv = config.heads_kv != 0 ? config.heads_kv : heads;
  if (heads % d->heads_kv != 0) {
    return get->FailLayer("config.json's num_key_value_heads " +
                          std::to_string(d->heads_kv) + " do not divide its " +
                          std::to_string(heads) + " heads");
  }
  d->dim_qk = d->dim_v =
      config.head_dim != 0 ? config.head_dim : d->d_model / heads;
  d->norm = HEED_NORM_RMS;
  d->norm_place = HEED_NORM_PRE;
  d->norm_eps = *config.norm_eps;
  d->norm_gain = get->Vector("input_layernorm.weight", d->d_model);
  // Heads and widths are at most 2^32 each, and their product must not wrap.
  int64_t width_q, width_kv;
  if (__builtin_mul_overflow(d->heads_q, d->dim_qk, &width_q) ||
      __builtin_mul_overflow(d->heads_kv, d->dim_v, &width_kv)) {
    return get->FailLayer("heads * head_dim overflow");
  }
  const auto linear = [&](const char* name, int64_t in, int64_t out) {
    return get->Matrix(name, HEED_LAYOUT_OUT_IN, in, out,
                       LayerTensors::Bias::kMaybe);
  };
  d->q = linear("self_attn.q_proj", d->d_model, width_q);
  d->k = linear("self_attn.k_proj", d->d_model, width_kv);
  d->v = linear("self_attn.v_proj", d->d_model, width_kv);
  d->out = linear("self_attn.o_proj", width_q, d->d_model);
  if (config.sliding_window != 0 && layer >= config.window_layer) {
    d->window = 1;
    d->window_left = config.sliding_window - 1;
    d->window_right = 0;
  }
  return get->ok() && ReadRope(config, get, d);
}

void SetScale(const LayerOptions& options, const ModelConfig& config,
              heed_block_desc* d) {
  d->scale_mode = HEED_SCALE_INV_SQRT_DIM;
  const double layer_factor =
      config.scale_attn_by_inverse_layer_idx ? 1.0 / (options.layer + 1) : 1;
  if (!options.scale_power.has_value() && config.scale_attn_weights &&
      layer_factor == 1) {
    return;
  }
  const double power =
      options.scale_power.value_or(config.scale_attn_weights ? 0.5 : 0);
  d->scale_mode = HEED_SCALE_VALUE;
  d->scale = std::pow(static_cast<double>(d->dim_qk), -power) * layer_factor;
}

}  // namespace

bool FindLayer(const Checkpoint& checkpoint, int64_t layer, LayerNames* names,
               std::string* why) {
  int64_t last = -1;
  for (const std::string& name : checkpoint.Names()) {
    LayerNames found;
    int64_t number =
        LayerNumber(name, "h.", kGpt2End, "transformer.", &found.prefix);
    if (number < 0) {
      found.style = LayerNames::Style::kLlama;
      number = LayerNumber(name, "layers.", kLlamaEnd, "model.", &found.prefix);
    }
    last = std::max(last, number);
    if (number != layer) continue;
    *names = found;
    return true;
  }
  *why = checkpoint.path() + ": ";
  if (last < 0) {
    *why +=
        "no attention block; expected tensors h.N.attn.c_attn.weight (GPT-2's "
        "names) or model.layers.N.self_attn.q_proj.weight (Llama's)";
  } else {
    *why += "no layer " + std::to_string(layer) + "; the last is " +
            std::to_string(last);
  }
  return false;
}

bool DescribeLayer(const LayerOptions& options, const LayerNames& names,
                   const ModelConfig* config, Checkpoint* checkpoint,
                   heed_block_desc* desc, std::string* why) {
  heed_block_desc_init(desc);
  const ModelConfig none;
  const ModelConfig& said = config == nullptr ? none : *config;
  const bool is_gpt2 = names.style == LayerNames::Style::kGpt2;
  if (!is_gpt2 && config == nullptr) {
    *why = checkpoint->path() +
           ": no config.json beside it, which a Llama-style model needs";
    return false;
  }
  int64_t heads;
  if (!ReadHeads(options, said, checkpoint->path(), &heads, why)) return false;
  LayerTensors get(names.prefix + (is_gpt2 ? "h." : "layers.") +
                       std::to_string(options.layer) + ".",
                   checkpoint, why);
  if (!(is_gpt2 ? DescribeGpt2(said, heads, &get, desc)
                : DescribeLlama(said, options.layer, heads, &get, desc))) {
    return false;
  }
  desc->causal = options.causal;
  if (!options.causal) desc->window = 0;
  SetScale(options, said, desc);
  return true;
}

}  // namespace heed
