// A tensor with any strides inside a buffer whose every other element is a
// guard.
#ifndef HEED_TESTS_GUARDED_TENSOR_H_
#define HEED_TESTS_GUARDED_TENSOR_H_

#include <heed.h>

#include <array>
#include <cstdint>
#include <vector>

namespace heed::test {

template <typename T>
class BasicGuardedTensor {
 public:
  // `strides` of batch, head and token in elements, of any sign; the last
  // dimension is contiguous.
  BasicGuardedTensor(std::array<int64_t, 4> extents,
                     std::array<int64_t, 3> strides, T guard);

  T& At(int64_t batch, int64_t head, int64_t token, int64_t dim);
  heed_input Input() const;
  heed_output Output();

  // Copies a dense tensor in, or out.
  void Set(const std::vector<T>& dense);
  std::vector<T> Dense();

  // Every byte outside the tensor is what it was made.
  bool GuardsAreIntact() const;

 private:
  int64_t Index(int64_t batch, int64_t head, int64_t token, int64_t dim) const;

  std::array<int64_t, 4> extents_;
  std::array<int64_t, 3> strides_;
  T guard_;
  int64_t origin_ = 0;  // of element (0, 0, 0, 0)
  std::vector<T> buffer_;
};

// These two types only.
using GuardedTensor = BasicGuardedTensor<float>;
using GuardedWords = BasicGuardedTensor<uint16_t>;

}  // namespace heed::test

#endif  // HEED_TESTS_GUARDED_TENSOR_H_
