#include "tune/head_model.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tune/model_config.h"
#include "tune/npy.h"
#include "tune/storage.h"

namespace heed {
namespace {

constexpr size_t kMaxConfigBytes = size_t{4} << 20;

// config.json beside the checkpoint, if there is one.
bool ReadConfig(const Checkpoint& checkpoint, std::unique_ptr<ModelConfig>* out,
                std::string* why) {
  const std::string path = checkpoint.folder() + "/config.json";
  struct stat status;
  // A link that leads nowhere is there, and an error.
  if (lstat(path.c_str(), &status) != 0) return true;
  std::string text, reason;
  if (!ReadSmallFile(path, kMaxConfigBytes, &text, why)) return false;
  auto config = std::make_unique<ModelConfig>();
  if (!ParseModelConfig(text, config.get(), &reason)) {
    *why = path + ": " + reason;
    return false;
  }
  *out = std::move(config);
  return true;
}

bool ReadRows(const std::string& path, int64_t d_model, HeadModel* model,
              std::string* why) {
  NpyTensor file;
  if (!ReadNpy(path, {2, 2, {NpyType::kFloat32, NpyType::kFloat16}}, &file,
               why)) {
    return false;
  }
  if (file.shape[1] != d_model) {
    *why = path + ": dimension 1 is " + std::to_string(file.shape[1]) +
           "; expected " + std::to_string(d_model) + ", the layer's d_model";
    return false;
  }
  if (file.shape[0] == 0) {
    *why = path + ": dimension 0 is 0; expected 1 token or more";
    return false;
  }
  model->len = file.shape[0];
  model->x.resize(file.count());
  Widen(file.type == NpyType::kFloat32 ? HEED_F32 : HEED_F16, file.bytes.data(),
        file.count(), model->x.data());
  return true;
}

}  // namespace

std::string WrongTogether(const HeadOptions& options) {
  if (options.x.empty() && options.tokens.empty()) {
    return "--x or --tokens is required";
  }
  if (options.tokens.empty() || options.layer.layer == 0) return "";
  return "--tokens with --layer " + std::to_string(options.layer.layer) +
         "; expected --layer 0, since what enters another has been through the "
         "layers before it, or --x with those rows";
}

bool LoadHead(const HeadOptions& options, HeadModel* model, std::string* why) {
  std::unique_ptr<ModelConfig> config;
  LayerOptions layer = options.layer;
  layer.causal = !options.no_causal;
  if (!model->checkpoint.Open(options.model, why) ||
      !ReadConfig(model->checkpoint, &config, why) ||
      !FindLayer(model->checkpoint, layer.layer, &model->names, why) ||
      !DescribeLayer(layer, model->names, config.get(), &model->checkpoint,
                     &model->desc, why)) {
    return false;
  }
  const heed_block_desc& desc = model->desc;
  if (options.head >= desc.heads_q) {
    *why = "--head " + std::to_string(options.head) + "; expected 0 to " +
           std::to_string(desc.heads_q - 1) + ", the layer's heads";
    return false;
  }
  if (!options.x.empty()) {
    return ReadRows(options.x, desc.d_model, model, why);
  }
  model->len = static_cast<int64_t>(options.tokens.size());
  return EmbedTokens(options.tokens, model->names, desc.d_model,
                     &model->checkpoint, &model->x, why);
}

void AddHeadOptions(CLI::App* command, HeadOptions* options) {
  command
      ->add_option("--model", options->model,
                   "A folder with model.safetensors or "
                   "model.safetensors.index.json, or one of such files; with "
                   "GPT-2's or Llama's names of tensors. A config.json beside "
                   "it says what tensors do not: heads, eps, RoPE")
      ->required()
      ->type_name("DIR|FILE");
  command->add_option("--layer", options->layer.layer, "The layer, from 0")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
      ->type_name("N")
      ->capture_default_str();
  CLI::Option* rows =
      command
          ->add_option("--x", options->x,
                       "The rows that enter the layer: float32 or float16 "
                       "(tokens, d_model)")
          ->type_name("X.npy");
  command
      ->add_option("--tokens", options->tokens,
                   "Or ids of tokens, whose rows of the embedding (with those "
                   "of their positions, in GPT-2) enter layer 0")
      ->delimiter(',')
      ->excludes(rows)
      ->type_name("1,2,3");
  command
      ->add_option("--head", options->head,
                   "Show this head alone, from 0 (default: all)")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 32))
      ->type_name("H");
  command
      ->add_option("--heads", options->layer.heads,
                   "Heads of the layer, where no config.json says it; with "
                   "GPT-2's names, whose eps is then 1e-5")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32))
      ->type_name("N");
  command->add_flag("--no-causal", options->no_causal,
                    "Every token sees all, not only itself and those before it "
                    "(or the model's sliding window of them)");
  command
      ->add_option("--scale-power", options->layer.scale_power,
                   "Scores are divided by head_dim^P (default: what the model "
                   "says, mostly 0.5; 0: not at all)")
      ->check(CLI::Range(-64.0, 64.0))
      ->type_name("P");
  command
      ->add_option("--dump", options->dump,
                   "Write into this folder, which is made if it is not there: "
                   "ln, attn_out, resid (tokens, d_model), q, z (heads, "
                   "tokens, head_dim), k, v (kv heads, tokens, head_dim), "
                   "scores before the softmax, -inf where hidden, and pattern, "
                   "the weights (heads, tokens, tokens), each as float32 NAME"
                   ".npy; with --head, of that head alone. All or none are "
                   "written")
      ->type_name("DIR");
  command
      ->add_option("--threads", options->threads,
                   "Threads (default: what affinity and quota allow)")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  command->add_flag("--json", options->json, "Print JSON");
}

}  // namespace heed
