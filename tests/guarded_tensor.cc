#include "tests/guarded_tensor.h"

#include <cstring>

namespace heed::test {
namespace {

// More than any vector and any prefetch of a row.
constexpr int64_t kGuardElements = 300;

}  // namespace

template <typename T>
BasicGuardedTensor<T>::BasicGuardedTensor(std::array<int64_t, 4> extents,
                                          std::array<int64_t, 3> strides,
                                          T guard)
    : extents_(extents), strides_(strides), guard_(guard) {
  int64_t lowest = 0, highest = extents[3];
  for (int axis = 0; axis < 3; ++axis) {
    if (extents[axis] == 0) continue;
    const int64_t reach = (extents[axis] - 1) * strides[axis];
    (reach < 0 ? lowest : highest) += reach;
  }
  origin_ = kGuardElements - lowest;
  buffer_.assign(static_cast<size_t>(highest - lowest + 2 * kGuardElements),
                 guard);
}

template <typename T>
int64_t BasicGuardedTensor<T>::Index(int64_t batch, int64_t head, int64_t token,
                                     int64_t dim) const {
  return origin_ + batch * strides_[0] + head * strides_[1] +
         token * strides_[2] + dim;
}

template <typename T>
T& BasicGuardedTensor<T>::At(int64_t batch, int64_t head, int64_t token,
                             int64_t dim) {
  return buffer_[Index(batch, head, token, dim)];
}

template <typename T>
heed_input BasicGuardedTensor<T>::Input() const {
  return {buffer_.data() + origin_, strides_[0], strides_[1], strides_[2], 1};
}

template <typename T>
heed_output BasicGuardedTensor<T>::Output() {
  return {buffer_.data() + origin_, strides_[0], strides_[1], strides_[2], 1};
}

template <typename T>
void BasicGuardedTensor<T>::Set(const std::vector<T>& dense) {
  size_t i = 0;
  for (int64_t b = 0; b < extents_[0]; ++b) {
    for (int64_t h = 0; h < extents_[1]; ++h) {
      for (int64_t t = 0; t < extents_[2]; ++t) {
        for (int64_t d = 0; d < extents_[3]; ++d) At(b, h, t, d) = dense[i++];
      }
    }
  }
}

template <typename T>
std::vector<T> BasicGuardedTensor<T>::Dense() {
  std::vector<T> dense;
  for (int64_t b = 0; b < extents_[0]; ++b) {
    for (int64_t h = 0; h < extents_[1]; ++h) {
      for (int64_t t = 0; t < extents_[2]; ++t) {
        for (int64_t d = 0; d < extents_[3]; ++d) {
          dense.push_back(At(b, h, t, d));
        }
      }
    }
  }
  return dense;
}

template <typename T>
bool BasicGuardedTensor<T>::GuardsAreIntact() const {
  std::vector<bool> owned(buffer_.size(), false);
  for (int64_t b = 0; b < extents_[0]; ++b) {
    for (int64_t h = 0; h < extents_[1]; ++h) {
      for (int64_t t = 0; t < extents_[2]; ++t) {
        for (int64_t d = 0; d < extents_[3]; ++d)
          owned[Index(b, h, t, d)] = true;
      }
    }
  }
  for (size_t i = 0; i < buffer_.size(); ++i) {
    if (!owned[i] && std::memcmp(&buffer_[i], &guard_, sizeof(guard_)) != 0) {
      return false;
    }
  }
  return true;
}

template class BasicGuardedTensor<float>;
template class BasicGuardedTensor<uint16_t>;

}  // namespace heed::test
