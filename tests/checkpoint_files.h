// Checkpoints made up for tests: .safetensors files as bytes, good or bad.
#ifndef HEED_TESTS_CHECKPOINT_FILES_H_
#define HEED_TESTS_CHECKPOINT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

// A file of that header, whatever it says, and data.
std::string SafetensorsFile(const std::string& header, const std::string& data);
// The same with a header length of the caller's own.
std::string SafetensorsFile(uint64_t length, const std::string& header,
                            const std::string& data);

struct MadeTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string dtype = "F32";  // or F16, BF16
  float scale = 1;            // N(0, scale^2) values about `mean`
  float mean = 0;
};

// A good file, the tensors' values seeded by their names.
std::string MakeSafetensors(const std::vector<MadeTensor>& tensors);

// Layer 0 of a model with GPT-2's names, and its embeddings for 11 tokens and
// 9 positions.
std::vector<MadeTensor> Gpt2Tensors(int64_t d_model, const std::string& prefix,
                                    const std::string& dtype = "F32");
// The same with Llama's names; bias as in Qwen2.
std::vector<MadeTensor> LlamaTensors(int64_t d_model, int64_t heads,
                                     int64_t heads_kv, int64_t head_dim,
                                     bool bias);

}  // namespace heed

#endif  // HEED_TESTS_CHECKPOINT_FILES_H_
