// Elements of any dtype as floats and back, for tensors that are made up and
// results that are checked; a call of heed converts for itself.
#ifndef HEED_TUNE_STORAGE_H_
#define HEED_TUNE_STORAGE_H_

#include <cstddef>
#include <cstdint>

namespace heed {

// Exact.
float WidenF16(uint16_t bits);
float WidenBF16(uint16_t bits);

// To nearest, ties to even; NaN stays NaN.
uint16_t NarrowToF16(float x);
uint16_t NarrowToBF16(float x);

// `count` elements of a heed_dtype at `from` or `to`.
void Widen(int32_t dtype, const void* from, size_t count, float* to);
void Narrow(int32_t dtype, const float* from, size_t count, void* to);

// The largest relative error of storing a float in the dtype (f16 below 2^-14
// aside); 0 for f32.
double StorageRounding(int32_t dtype);

}  // namespace heed

#endif  // HEED_TUNE_STORAGE_H_
