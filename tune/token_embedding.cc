// Rows of a checkpoint's embedding, for EmbedTokens() of checkpoint_layer.h.
#include <cstring>

#include "tune/checkpoint_layer.h"
#include "tune/layer_tensors.h"
#include "tune/printable.h"
#include "tune/storage.h"

namespace heed {
namespace {

struct Table {
  std::string name;
  CheckpointTensor tensor;
  int32_t dtype = 0;
};

bool FindTable(const std::string& name, int64_t d_model, Checkpoint* checkpoint,
               Table* table, std::string* why) {
  table->name = name;
  if (!checkpoint->Find(name, &table->tensor, why)) return false;
  const CheckpointTensor& tensor = table->tensor;
  if (tensor.shape.size() != 2 || tensor.shape[1] != d_model) {
    *why = TensorProblem(tensor.file, name,
                         "shape " + ShapeText(tensor.shape) +
                             "; expected (tokens, " + std::to_string(d_model) +
                             ")");
    return false;
  }
  if (!HeedDtype(tensor.dtype, &table->dtype)) {
    *why =
        TensorProblem(tensor.file, name,
                      "dtype " + tensor.dtype + "; expected F32, F16 or BF16");
    return false;
  }
  return true;
}

// Adds row `row` to x [d_model].
bool AddRow(const Table& table, const char* what, int64_t row, float* x,
            std::string* why) {
  const CheckpointTensor& tensor = table.tensor;
  if (row < 0 || row >= tensor.shape[0]) {
    *why = TensorProblem(tensor.file, table.name,
                         std::string("no row for ") + what + " " +
                             std::to_string(row) + "; it has " +
                             std::to_string(tensor.shape[0]));
    return false;
  }
  const auto width = static_cast<size_t>(tensor.shape[1]);
  const size_t row_bytes = tensor.bytes / static_cast<size_t>(tensor.shape[0]);
  // A file's tensors may lie at any address, floats may not.
  std::vector<float> aligned(width), values(width);
  std::memcpy(aligned.data(),
              tensor.data + static_cast<size_t>(row) * row_bytes, row_bytes);
  Widen(table.dtype, aligned.data(), width, values.data());
  for (size_t i = 0; i < width; ++i) x[i] += values[i];
  return true;
}

}  // namespace

bool EmbedTokens(const std::vector<int64_t>& tokens, const LayerNames& names,
                 int64_t d_model, Checkpoint* checkpoint, std::vector<float>* x,
                 std::string* why) {
  const bool is_gpt2 = names.style == LayerNames::Style::kGpt2;
  Table ids, places;
  if (!FindTable(
          names.prefix + (is_gpt2 ? "wte.weight" : "embed_tokens.weight"),
          d_model, checkpoint, &ids, why) ||
      (is_gpt2 && !FindTable(names.prefix + "wpe.weight", d_model, checkpoint,
                             &places, why))) {
    return false;
  }
  const auto width = static_cast<size_t>(d_model);
  x->assign(tokens.size() * width, 0.0f);
  for (size_t t = 0; t < tokens.size(); ++t) {
    float* row = x->data() + t * width;
    if (!AddRow(ids, "token", tokens[t], row, why) ||
        (is_gpt2 &&
         !AddRow(places, "position", static_cast<int64_t>(t), row, why))) {
      return false;
    }
  }
  return true;
}

}  // namespace heed
