#include "tune/shapes.h"

#include <algorithm>
#include <cstddef>

#include "runtime/problem.h"

namespace heed {
namespace {

// Head counts and widths are those of the models' published configurations.
// "causal" always goes with len_q == len_k here, where top-left and
// bottom-right are the same; a decode step sees its whole cache and needs none.
const StandardShape kShapes[] = {
    // The core eleven.
    {"gpt2_short", "b1_hq12_hkv12_q128_k128_d64_causal_f32",
     "GPT-2 small, a short prompt", true},
    {"gpt2_prefill", "b1_hq12_hkv12_q1024_k1024_d64_causal_f32",
     "GPT-2 small, its whole context", true},
    {"llama8b_prefill", "b1_hq32_hkv8_q2048_k2048_d128_causal_f32",
     "Llama-3 8B, prompt of 2048", true},
    {"long8k_d64", "b1_hq4_hkv4_q8192_k8192_d64_causal_f32",
     "long context, narrow heads", true},
    {"long8k_d128", "b1_hq4_hkv4_q8192_k8192_d128_causal_f32",
     "long context, wide heads", true},
    {"vit", "b8_hq12_hkv12_q197_k197_d64_f32", "ViT-B/16, batch of 8", true},
    {"sd_cross", "b2_hq8_hkv8_q4096_k77_d40_f32",
     "Stable Diffusion 1.5, text cross attention at 64 x 64", true},
    {"decode", "b1_hq32_hkv8_q1_k4096_d128_f32",
     "Llama-3 8B, one token against a cache of 4096", true},
    {"decode_batch", "b16_hq32_hkv8_q1_k1024_d128_f32",
     "Llama-3 8B, one token for each of 16 sequences", true},
    {"odd", "b1_hq3_hkv3_q333_k333_d80_causal_f32",
     "nothing is a multiple of anything", true},
    {"gemma", "b1_hq8_hkv4_q1024_k1024_d256_causal_f32",
     "Gemma 3 4B, prompt of 1024", true},

    // Prefill of open models.
    {"llama8b_prefill_512", "b1_hq32_hkv8_q512_k512_d128_causal_f32",
     "Llama-3 8B, prompt of 512", false},
    {"llama8b_prefill_8k", "b1_hq32_hkv8_q8192_k8192_d128_causal_f32",
     "Llama-3 8B, prompt of 8192", false},
    {"llama70b_prefill", "b1_hq64_hkv8_q2048_k2048_d128_causal_f32",
     "Llama-3 70B, prompt of 2048", false},
    {"qwen25_05b_prefill", "b1_hq14_hkv2_q2048_k2048_d64_causal_f32",
     "Qwen2.5 0.5B, 7 query heads per kv head", false},
    {"qwen25_7b_prefill", "b1_hq28_hkv4_q2048_k2048_d128_causal_f32",
     "Qwen2.5 7B, 7 query heads per kv head", false},
    {"qwen15_7b_prefill", "b1_hq32_hkv32_q2048_k2048_d128_causal_f32",
     "Qwen1.5 7B, one query head per kv head", false},
    {"qwen3_06b_prefill", "b1_hq16_hkv8_q2048_k2048_d128_causal_f32",
     "Qwen3 0.6B, 2 query heads per kv head", false},
    {"qwen3_30b_prefill", "b1_hq32_hkv4_q2048_k2048_d128_causal_f32",
     "Qwen3 30B-A3B, 8 query heads per kv head", false},
    {"gemma3_1b_prefill", "b1_hq4_hkv1_q2048_k2048_d256_causal_f32",
     "Gemma 3 1B, one kv head", false},
    {"gemma_7b_prefill", "b1_hq16_hkv16_q2048_k2048_d256_causal_f32",
     "Gemma 7B, one query head per kv head", false},
    {"vit_l_384", "b1_hq16_hkv16_q577_k577_d64_f32",
     "ViT-L/16 at 384 x 384 pixels", false},
    {"whisper_encoder", "b1_hq20_hkv20_q1500_k1500_d64_f32",
     "Whisper large, encoder", false},
    {"whisper_cross", "b1_hq20_hkv20_q448_k1500_d64_f32",
     "Whisper large, text against audio", false},
    {"sd_self", "b2_hq8_hkv8_q4096_k4096_d40_f32",
     "Stable Diffusion 1.5, self attention at 64 x 64", false},
    {"sd_cross_32", "b2_hq8_hkv8_q1024_k77_d80_f32",
     "Stable Diffusion 1.5, text cross attention at 32 x 32", false},
    {"sd_cross_16", "b2_hq8_hkv8_q256_k77_d160_f32",
     "Stable Diffusion 1.5, text cross attention at 16 x 16", false},
    {"sdxl_cross", "b2_hq10_hkv10_q4096_k77_d64_f32",
     "SDXL, text cross attention at 64 x 64", false},

    // Decode steps of open models.
    {"gpt2_decode", "b1_hq12_hkv12_q1_k1024_d64_f32",
     "GPT-2 small, one token against a cache of 1024", false},
    {"llama8b_decode_512", "b1_hq32_hkv8_q1_k512_d128_f32",
     "Llama-3 8B, one token against a cache of 512", false},
    {"llama8b_decode_2k", "b1_hq32_hkv8_q1_k2048_d128_f32",
     "Llama-3 8B, one token against a cache of 2048", false},
    {"llama8b_decode_8k", "b1_hq32_hkv8_q1_k8192_d128_f32",
     "Llama-3 8B, one token against a cache of 8192", false},
    {"llama8b_decode_32k", "b1_hq32_hkv8_q1_k32768_d128_f32",
     "Llama-3 8B, one token against a cache of 32768", false},
    {"llama70b_decode", "b1_hq64_hkv8_q1_k4096_d128_f32",
     "Llama-3 70B, one token against a cache of 4096", false},
    {"qwen25_7b_decode", "b1_hq28_hkv4_q1_k4096_d128_f32",
     "Qwen2.5 7B, one token against a cache of 4096", false},
    {"qwen3_06b_decode", "b1_hq16_hkv8_q1_k4096_d128_f32",
     "Qwen3 0.6B, one token against a cache of 4096", false},
    {"qwen3_30b_decode", "b1_hq32_hkv4_q1_k4096_d128_f32",
     "Qwen3 30B-A3B, one token against a cache of 4096", false},
    {"gemma_decode", "b1_hq8_hkv4_q1_k4096_d256_f32",
     "Gemma 3 4B, one token against a cache of 4096", false},
    {"whisper_cross_decode", "b1_hq20_hkv20_q1_k1500_d64_f32",
     "Whisper large, one text token against the audio", false},

    // Some of the core in 16 bits.
    {"gpt2_prefill_f16", "b1_hq12_hkv12_q1024_k1024_d64_causal_f16",
     "GPT-2 small, its whole context, f16", false},
    {"gpt2_prefill_bf16", "b1_hq12_hkv12_q1024_k1024_d64_causal_bf16",
     "GPT-2 small, its whole context, bf16", false},
    {"llama8b_prefill_f16", "b1_hq32_hkv8_q2048_k2048_d128_causal_f16",
     "Llama-3 8B, prompt of 2048, f16", false},
    {"llama8b_prefill_bf16", "b1_hq32_hkv8_q2048_k2048_d128_causal_bf16",
     "Llama-3 8B, prompt of 2048, bf16", false},
    {"decode_f16", "b1_hq32_hkv8_q1_k4096_d128_f16",
     "Llama-3 8B, one token against a cache of 4096, f16", false},
    {"decode_bf16", "b1_hq32_hkv8_q1_k4096_d128_bf16",
     "Llama-3 8B, one token against a cache of 4096, bf16", false},
    {"decode_batch_f16", "b16_hq32_hkv8_q1_k1024_d128_f16",
     "Llama-3 8B, one token for each of 16 sequences, f16", false},
    {"decode_batch_bf16", "b16_hq32_hkv8_q1_k1024_d128_bf16",
     "Llama-3 8B, one token for each of 16 sequences, bf16", false},
};

bool Parse(const std::string& name, const std::string& text,
           NamedProblem* shape, std::string* why) {
  shape->name = name;
  shape->text = text;
  if (heed_problem_parse(text.c_str(), &shape->problem) == HEED_OK) return true;
  *why = "'" + name + "' is neither a standard shape nor a problem string: " +
         heed_last_error();
  return false;
}

}  // namespace

const std::vector<StandardShape>& StandardShapes() {
  static const std::vector<StandardShape> shapes(std::begin(kShapes),
                                                 std::end(kShapes));
  return shapes;
}

const StandardShape* FindStandardShape(const std::string& name) {
  for (const StandardShape& shape : StandardShapes()) {
    if (name == shape.name) return &shape;
  }
  return nullptr;
}

bool ParseShapeList(const std::string& list, std::vector<NamedProblem>* shapes,
                    std::string* why) {
  shapes->clear();
  const auto add = [shapes, why](const std::string& name,
                                 const std::string& text) {
    NamedProblem shape;
    if (!Parse(name, text, &shape, why)) return false;
    const auto same = [&text](const NamedProblem& s) { return s.text == text; };
    if (std::none_of(shapes->begin(), shapes->end(), same)) {
      shapes->push_back(shape);
    }
    return true;
  };
  size_t begin = 0;
  while (begin <= list.size()) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string item = list.substr(begin, end - begin);
    begin = end + 1;
    if (item.empty()) {
      *why = "an empty item in the shape list '" + list + "'";
      return false;
    }
    if (item == "core" || item == "all") {
      for (const StandardShape& shape : StandardShapes()) {
        if (!shape.core && item == "core") continue;
        if (!add(shape.name, shape.problem)) return false;
      }
      continue;
    }
    const StandardShape* shape = FindStandardShape(item);
    if (!add(item, shape != nullptr ? shape->problem : item)) return false;
  }
  return true;
}

double VisiblePairs(const heed_problem& problem, int64_t causal_offset) {
  const double rows = static_cast<double>(problem.len_q);
  const double keys = static_cast<double>(problem.len_k);
  if (problem.causal == HEED_CAUSAL_NONE) return rows * keys;
  double offset = static_cast<double>(causal_offset);
  if (problem.causal == HEED_CAUSAL_TOP_LEFT) offset = 0;
  if (problem.causal == HEED_CAUSAL_BOTTOM_RIGHT) offset = keys - rows;
  // Row i sees clamp(i + offset + 1, 0, keys) keys: none, then a ramp, then
  // all. The ramp's rows are [first, last).
  const double first = std::min(rows, std::max(0.0, -offset));
  const double last = std::min(rows, std::max(first, keys - offset));
  const double ramp = last - first;
  return ramp * (first + offset + 1) + ramp * (ramp - 1) / 2 +
         (rows - last) * keys;
}

double AttentionFlops(const heed_problem& problem, int64_t causal_offset) {
  return static_cast<double>(problem.batch) *
         static_cast<double>(problem.heads_q) *
         VisiblePairs(problem, causal_offset) * 2 *
         static_cast<double>(problem.dim_qk + problem.dim_v);
}

double CompulsoryBytes(const heed_problem& problem) {
  const double element_bytes = static_cast<double>(ElementBytes(problem.dtype));
  const double dims = static_cast<double>(problem.dim_qk + problem.dim_v);
  const double query_rows =
      static_cast<double>(problem.heads_q) * static_cast<double>(problem.len_q);
  const double key_rows = static_cast<double>(problem.heads_kv) *
                          static_cast<double>(problem.len_k);
  return static_cast<double>(problem.batch) * (query_rows + key_rows) * dims *
         element_bytes;
}

}  // namespace heed
