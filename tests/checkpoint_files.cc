#include "tests/checkpoint_files.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/include/heed.h"
#include "tune/npy_header.h"
#include "tune/storage.h"

namespace heed {

std::string SafetensorsFile(uint64_t length, const std::string& header,
                            const std::string& data) {
  std::string file;
  for (int byte = 0; byte < 8; ++byte) {
    file += static_cast<char>(length >> (8 * byte) & 0xff);
  }
  return file + header + data;
}

std::string SafetensorsFile(const std::string& header,
                            const std::string& data) {
  return SafetensorsFile(header.size(), header, data);
}

std::string MakeSafetensors(const std::vector<MadeTensor>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::string data;
  for (const MadeTensor& tensor : tensors) {
    std::mt19937_64 random(std::hash<std::string>()(tensor.name));
    std::normal_distribution<float> normal(tensor.mean, tensor.scale);
    std::vector<float> values(
        static_cast<size_t>(NpyElementCount(tensor.shape)));
    for (float& value : values) value = normal(random);
    const int32_t dtype = tensor.dtype == "F32"   ? HEED_F32
                          : tensor.dtype == "F16" ? HEED_F16
                                                  : HEED_BF16;
    std::string bytes(values.size() * (dtype == HEED_F32 ? 4 : 2), '\0');
    std::vector<float> stored(values.size());  // aligned, and large enough
    Narrow(dtype, values.data(), values.size(), stored.data());
    bytes.assign(reinterpret_cast<const char*>(stored.data()), bytes.size());
    header[tensor.name] = {
        {"dtype", tensor.dtype},
        {"shape", tensor.shape},
        {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  }
  return SafetensorsFile(header.dump(), data);
}

std::vector<MadeTensor> Gpt2Tensors(int64_t d_model, const std::string& prefix,
                                    const std::string& dtype) {
  const int64_t d = d_model;
  const std::string layer = prefix + "h.0.";
  return {{layer + "ln_1.weight", {d}, dtype, 0.1f, 1},
          {layer + "ln_1.bias", {d}, dtype, 0.1f},
          {layer + "attn.c_attn.weight", {d, 3 * d}, dtype, 0.2f},
          {layer + "attn.c_attn.bias", {3 * d}, dtype, 0.1f},
          {layer + "attn.c_proj.weight", {d, d}, dtype, 0.2f},
          {layer + "attn.c_proj.bias", {d}, dtype, 0.1f},
          {prefix + "wte.weight", {11, d}, dtype},
          {prefix + "wpe.weight", {9, d}, dtype, 0.3f}};
}

std::vector<MadeTensor> LlamaTensors(int64_t d_model, int64_t heads,
                                     int64_t heads_kv, int64_t head_dim,
                                     bool bias) {
  const int64_t q = heads * head_dim, kv = heads_kv * head_dim;
  const std::string layer = "model.layers.0.";
  std::vector<MadeTensor> tensors = {
      {layer + "input_layernorm.weight", {d_model}, "BF16", 0.1f, 1},
      {layer + "self_attn.q_proj.weight", {q, d_model}, "BF16", 0.2f},
      {layer + "self_attn.k_proj.weight", {kv, d_model}, "BF16", 0.2f},
      {layer + "self_attn.v_proj.weight", {kv, d_model}, "BF16", 0.2f},
      {layer + "self_attn.o_proj.weight", {d_model, q}, "BF16", 0.2f},
      {"model.embed_tokens.weight", {11, d_model}, "BF16"}};
  if (bias) {
    tensors.push_back({layer + "self_attn.q_proj.bias", {q}, "BF16"});
    tensors.push_back({layer + "self_attn.k_proj.bias", {kv}, "BF16"});
    tensors.push_back({layer + "self_attn.v_proj.bias", {kv}, "BF16"});
  }
  return tensors;
}

}  // namespace heed
