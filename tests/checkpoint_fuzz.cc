#include "tests/checkpoint_fuzz.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "runtime/include/heed_block.h"
#include "tests/checkpoint_files.h"
#include "tune/checkpoint.h"
#include "tune/checkpoint_index.h"
#include "tune/checkpoint_layer.h"
#include "tune/model_config.h"

namespace heed {
namespace {

// A reason is one line of printable text.
void DemandReason(const std::string& why) {
  const bool is_line =
      !why.empty() && std::all_of(why.begin(), why.end(),
                                  [](char c) { return c >= ' ' && c <= '~'; });
  if (is_line) return;
  std::fprintf(stderr, "no line of printable text: \"%s\"\n", why.c_str());
  std::abort();
}

// Copies, so that each lies in memory of its exact size, at whose end a
// sanitizer watches.
std::vector<unsigned char> Exact(const std::string& bytes) {
  return {bytes.begin(), bytes.end()};
}

// As small as what a fuzzer makes up, and as quick.
bool IsSmall(const heed_block_desc& desc) {
  return desc.d_model <= 64 && desc.heads_q <= 64 && desc.dim_qk <= 64;
}

bool RunBlock(const heed_block_desc& desc, std::string* why) {
  heed_options options;
  heed_options_init(&options);
  options.threads = 1;
  options.tuning = HEED_TUNING_OFF;
  heed_block* block = nullptr;
  heed_block_plan* plan = nullptr;
  heed_status status = heed_block_create(&desc, &options, &block);
  if (status == HEED_OK) {
    status = heed_block_plan_create(block, 1, 3, 0, &options, &plan);
  }
  if (status == HEED_OK) {
    const size_t bytes = heed_block_plan_workspace_size(plan);
    void* workspace =
        bytes == 0 ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    const std::vector<float> x(static_cast<size_t>(3 * desc.d_model), 0.5f);
    std::vector<float> y(x.size());
    heed_block_call call;
    heed_block_call_init(&call);
    call.x = heed_dense_input(x.data(), 1, 3, desc.d_model);
    call.y = heed_dense_output(y.data(), 1, 3, desc.d_model);
    call.workspace = workspace;
    call.workspace_size = bytes;
    status = heed_block_run(plan, &call);
    std::free(workspace);
  }
  if (status != HEED_OK) *why = heed_last_error();
  heed_block_plan_destroy(plan);
  heed_block_destroy(block);
  return status == HEED_OK;
}

int TryModel(const std::string& config_text, const std::string& file,
             std::string* why) {
  ModelConfig config;
  if (!config_text.empty() && !ParseModelConfig(config_text, &config, why)) {
    return 0;
  }
  const std::vector<unsigned char> bytes = Exact(file);
  Checkpoint checkpoint;
  LayerNames names;
  if (!checkpoint.OpenBytes("m", bytes.data(), bytes.size(), why) ||
      !FindLayer(checkpoint, 0, &names, why)) {
    return 0;
  }
  LayerOptions options;
  options.heads = config.heads_q == 0 ? 2 : 0;
  heed_block_desc desc;
  if (!DescribeLayer(options, names, config_text.empty() ? nullptr : &config,
                     &checkpoint, &desc, why)) {
    return 1;
  }
  std::vector<float> x;
  std::string no_embedding;
  if (!EmbedTokens({0, 3}, names, desc.d_model, &checkpoint, &x,
                   &no_embedding)) {
    DemandReason(no_embedding);
  }
  return IsSmall(desc) && RunBlock(desc, why) ? 3 : 2;
}

int Try(const std::string& input, std::string* why) {
  const std::string rest = input.empty() ? "" : input.substr(1);
  switch (input.empty() ? '\0' : input[0]) {
    case 'f':
      return TryModel("", rest, why);
    case 'i': {
      CheckpointIndex index;
      return ParseCheckpointIndex(rest, &index, why) ? 3 : 0;
    }
    case 'm': {
      const size_t first = rest.find('\0');
      const size_t second =
          first == std::string::npos ? first : rest.find('\0', first + 1);
      if (second == std::string::npos) break;
      return TryModel(
          rest.substr(0, first),
          SafetensorsFile(rest.substr(first + 1, second - first - 1),
                          rest.substr(second + 1)),
          why);
    }
    default:
      break;
  }
  *why = "no input of any kind";
  return 0;
}

}  // namespace

int TryCheckpoint(const uint8_t* input, size_t size) {
  std::string why;
  const int reached = Try({input, input + size}, &why);
  // A block too large for here is described, and nothing is wrong with it.
  if (reached < 2 || !why.empty()) DemandReason(why);
  return reached;
}

std::vector<std::string> CheckpointSeeds() {
  const std::string llama_config =
      R"({"model_type":"llama","hidden_size":8,"num_attention_heads":2,)"
      R"("num_key_value_heads":1,"head_dim":6,"rms_norm_eps":1e-6,)"
      R"("rope_theta":500000.0,"rope_scaling":{"rope_type":"llama3",)"
      R"("factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,)"
      R"("original_max_position_embeddings":8192}})";
  const std::string mistral_config =
      R"({"model_type":"mistral","num_attention_heads":4,"rms_norm_eps":0,)"
      R"("sliding_window":2,"partial_rotary_factor":0.5,)"
      R"("rope_parameters":{"rope_type":"linear","factor":2,"rope_theta":9}})";
  const std::string gpt2_config =
      R"({"model_type":"gpt2","n_embd":4,"n_head":2,"layer_norm_epsilon":1e-05,)"
      R"("scale_attn_by_inverse_layer_idx":true,"scale_attn_weights":false})";
  const std::string gpt2 = MakeSafetensors(Gpt2Tensors(4, "transformer."));
  const std::string llama =
      MakeSafetensors(LlamaTensors(8, 2, 1, 6, /*bias=*/true));
  const std::string mistral =
      MakeSafetensors(LlamaTensors(16, 4, 4, 4, /*bias=*/false));
  const auto model = [](const std::string& config, const std::string& file) {
    // The header's length is below 2^16 in these.
    const size_t length = static_cast<unsigned char>(file[0]) +
                          256 * static_cast<unsigned char>(file[1]);
    return "m" + config + '\0' + file.substr(8, length) + '\0' +
           file.substr(8 + length);
  };
  return {
      "f" + gpt2,
      "f" + MakeSafetensors(Gpt2Tensors(6, "", "F16")),
      model("", gpt2),
      model(gpt2_config, gpt2),
      model(llama_config, llama),
      model(mistral_config, mistral),
      "i" + std::string(R"({"metadata":{"total_size":12},"weight_map":)"
                        R"({"a":"one.safetensors","b":"two.safetensors"}})")};
}

void MutateCheckpoint(std::mt19937* random, std::string* input) {
  static const char* const kWords[] = {"0",
                                       "-1",
                                       "9223372036854775807",
                                       "18446744073709551615",
                                       "1e308",
                                       "4294967296",
                                       "576460752303423488",
                                       "null",
                                       "[]",
                                       "{}",
                                       "\"F32\"",
                                       "\"BF16\"",
                                       "\"F4\"",
                                       "\"U8\"",
                                       "1e-320",
                                       "true",
                                       "\"dtype\":",
                                       "\"shape\":[0]",
                                       "\"data_offsets\":[0,0]",
                                       "\xff",
                                       "\"__metadata__\":{}",
                                       "\\u0000",
                                       "\"..\""};
  const auto below = [&](size_t n) {
    return n == 0 ? 0 : static_cast<size_t>((*random)()) % n;
  };
  if (input->size() < 2) return;
  const size_t at = 1 + below(input->size() - 1);
  switch (below(6)) {
    case 0:
      (*input)[at] = static_cast<char>((*random)());
      break;
    case 1:
      input->erase(at, 1 + below(8));
      break;
    case 2:
      input->insert(at, kWords[below(std::size(kWords))]);
      break;
    case 3:
      input->insert(at, input->substr(1 + below(input->size() - 1), below(40)));
      break;
    case 4:
      input->resize(at);
      break;
    default: {  // a number becomes another
      size_t begin = at;
      while (begin < input->size() &&
             std::isdigit(static_cast<unsigned char>((*input)[begin])) == 0) {
        ++begin;
      }
      size_t end = begin;
      while (end < input->size() &&
             std::isdigit(static_cast<unsigned char>((*input)[end])) != 0) {
        ++end;
      }
      const std::string number =
          below(2) == 0 ? kWords[below(7)] : std::to_string(below(64));
      input->replace(begin, end - begin, number);
    }
  }
}

}  // namespace heed
