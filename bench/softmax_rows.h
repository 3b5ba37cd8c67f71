#ifndef HEED_BENCH_SOFTMAX_ROWS_H_
#define HEED_BENCH_SOFTMAX_ROWS_H_

#include <cstddef>

namespace heed {

// Of the first `visible` of `width` numbers, at least one; the others become 0.
void SoftmaxRow(float* row, size_t visible, size_t width);

}  // namespace heed

#endif  // HEED_BENCH_SOFTMAX_ROWS_H_
