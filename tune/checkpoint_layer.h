// An attention block out of a checkpoint: finds a layer's tensors under the
// names that GPT-2 or Llama have for them, checks their shapes, and describes
// the block to the library.
#ifndef HEED_TUNE_CHECKPOINT_LAYER_H_
#define HEED_TUNE_CHECKPOINT_LAYER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/include/heed_block.h"
#include "tune/checkpoint.h"
#include "tune/model_config.h"

namespace heed {

// Which names a checkpoint's tensors have.
struct LayerNames {
  enum class Style {
    // h.N.ln_1, h.N.attn.c_attn, h.N.attn.c_proj; wte, wpe
    kGpt2,
    // layers.N.input_layernorm, layers.N.self_attn.{q,k,v,o}_proj;
    // embed_tokens
    kLlama
  };
  Style style = Style::kGpt2;
  std::string prefix;  // of all: "transformer.", "model." or none
};

struct LayerOptions {
  int64_t layer = 0;   // from 0
  int64_t heads = 0;   // 0: what the configuration says
  bool causal = true;  // false: every token sees all, whatever the model says
  // The scores' factor is head_dim^-power; not given: what the model has,
  // mostly 0.5.
  std::optional<double> scale_power;
};

// Finds the layer. On failure returns false and says why in one line that
// begins with the checkpoint's path.
bool FindLayer(const Checkpoint& checkpoint, int64_t layer, LayerNames* names,
               std::string* why);

// Describes the block of layer `options.layer`. `config` is null if there is no
// config.json. *desc points into the checkpoint, which has to outlive its use.
// On failure returns false and says why in one line that names file and tensor,
// where one is at fault.
bool DescribeLayer(const LayerOptions& options, const LayerNames& names,
                   const ModelConfig* config, Checkpoint* checkpoint,
                   heed_block_desc* desc, std::string* why);

// What enters layer 0: the tokens' rows of the embedding, in float32, [tokens,
// d_model], with those of their positions added where the model has learned
// them (GPT-2).
bool EmbedTokens(const std::vector<int64_t>& tokens, const LayerNames& names,
                 int64_t d_model, Checkpoint* checkpoint, std::vector<float>* x,
                 std::string* why);

}  // namespace heed

#endif  // HEED_TUNE_CHECKPOINT_LAYER_H_
