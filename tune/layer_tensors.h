// The tensors of one layer of a checkpoint, as a block takes them, checked
// against the shapes they must have.
#ifndef HEED_TUNE_LAYER_TENSORS_H_
#define HEED_TUNE_LAYER_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/include/heed_block.h"
#include "tune/checkpoint.h"

namespace heed {

// Whether safetensors' `dtype` is one that heed computes with, which *heed is
// then.
bool HeedDtype(const std::string& dtype, int32_t* heed);

// Takes tensors by the part of their name that follows the layer's. The first
// that is wrong fails the whole, and is named by `why` together with its file;
// after that every call gives nothing.
class LayerTensors {
 public:
  enum class Bias { kThere, kMaybe };

  LayerTensors(std::string layer, Checkpoint* checkpoint, std::string* why)
      : layer_(std::move(layer)), checkpoint_(checkpoint), why_(why) {}

  bool ok() const { return ok_; }
  bool Has(const std::string& name) const {
    return checkpoint_->Has(layer_ + name);
  }

  // Elements of a vector, 1 or more. 0 after a failure.
  int64_t Length(const std::string& name);
  heed_vector Vector(const std::string& name, int64_t count);
  // <name>.weight and <name>.bias.
  heed_matrix Matrix(const std::string& name, heed_layout layout, int64_t in,
                     int64_t out, Bias bias);

  // Each returns false.
  bool FailTensor(const std::string& name, const std::string& reason);
  bool FailLayer(const std::string& reason);

 private:
  bool Find(const std::string& name, CheckpointTensor* tensor);
  // Of that shape, and of a dtype that heed computes with.
  bool Find(const std::string& name, const std::vector<int64_t>& shape,
            CheckpointTensor* tensor, int32_t* dtype);

  const std::string layer_;  // "transformer.h.0."
  Checkpoint* checkpoint_;
  std::string* why_;
  bool ok_ = true;
};

}  // namespace heed

#endif  // HEED_TUNE_LAYER_TENSORS_H_
