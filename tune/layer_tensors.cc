#include "tune/layer_tensors.h"

#include "tune/printable.h"

namespace heed {

bool HeedDtype(const std::string& dtype, int32_t* heed) {
  const struct {
    const char* name;
    int32_t dtype;
  } kKnown[] = {{"F32", HEED_F32}, {"F16", HEED_F16}, {"BF16", HEED_BF16}};
  for (const auto& known : kKnown) {
    if (dtype != known.name) continue;
    *heed = known.dtype;
    return true;
  }
  return false;
}

bool LayerTensors::FailTensor(const std::string& name,
                              const std::string& reason) {
  CheckpointTensor tensor;
  std::string ignored;
  const bool is_there = checkpoint_->Find(layer_ + name, &tensor, &ignored);
  if (ok_) {
    *why_ = TensorProblem(is_there ? tensor.file : checkpoint_->path(),
                          layer_ + name, reason);
  }
  ok_ = false;
  return false;
}

bool LayerTensors::FailLayer(const std::string& reason) {
  if (ok_) *why_ = checkpoint_->path() + ": " + reason;
  ok_ = false;
  return false;
}

bool LayerTensors::Find(const std::string& name, CheckpointTensor* tensor) {
  ok_ = ok_ && checkpoint_->Find(layer_ + name, tensor, why_);
  return ok_;
}

bool LayerTensors::Find(const std::string& name,
                        const std::vector<int64_t>& shape,
                        CheckpointTensor* tensor, int32_t* dtype) {
  if (!Find(name, tensor)) return false;
  if (tensor->shape != shape) {
    return FailTensor(name, "shape " + ShapeText(tensor->shape) +
                                "; expected " + ShapeText(shape));
  }
  if (!HeedDtype(tensor->dtype, dtype)) {
    return FailTensor(name,
                      "dtype " + tensor->dtype + "; expected F32, F16 or BF16");
  }
  return true;
}

int64_t LayerTensors::Length(const std::string& name) {
  CheckpointTensor tensor;
  if (!Find(name, &tensor)) return 0;
  if (tensor.shape.size() != 1 || tensor.shape[0] < 1) {
    FailTensor(name, "shape " + ShapeText(tensor.shape) +
                         "; expected one dimension of 1 or more");
    return 0;
  }
  return tensor.shape[0];
}

heed_vector LayerTensors::Vector(const std::string& name, int64_t count) {
  CheckpointTensor tensor;
  heed_vector vector = {};
  int32_t dtype;
  if (!Find(name, {count}, &tensor, &dtype)) return vector;
  vector.data = tensor.data;
  vector.dtype = dtype;
  return vector;
}

heed_matrix LayerTensors::Matrix(const std::string& name, heed_layout layout,
                                 int64_t in, int64_t out, Bias bias) {
  heed_matrix matrix = {};
  CheckpointTensor tensor;
  int32_t dtype;
  const std::vector<int64_t> shape = layout == HEED_LAYOUT_IN_OUT
                                         ? std::vector<int64_t>{in, out}
                                         : std::vector<int64_t>{out, in};
  if (!Find(name + ".weight", shape, &tensor, &dtype)) return matrix;
  matrix.data = tensor.data;
  matrix.dtype = dtype;
  matrix.layout = layout;
  if (bias == Bias::kThere || Has(name + ".bias")) {
    matrix.bias = Vector(name + ".bias", out);
  }
  return matrix;
}

}  // namespace heed
