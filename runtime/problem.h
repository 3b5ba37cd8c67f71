// A problem's validation and what follows from its numbers alone.
#ifndef HEED_RUNTIME_PROBLEM_H_
#define HEED_RUNTIME_PROBLEM_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/kernels.h"
#include "runtime/include/heed.h"

namespace heed {

// HEED_OK, or Fail() naming the field, its value and what was expected. After
// HEED_OK every element count and byte size of the tensors fits an int64_t.
heed_status ValidateProblem(const heed_problem& problem);

// The functions below presume a valid problem.

// Query heads that share one kv head; 1 if there are no heads.
int64_t Group(const heed_problem& problem);

// What places query i at key i + offset: the causal line, or the alignment of a
// window or ALiBi without one. The two enums agree in value; kNowhere if the
// problem needs no such place.
enum class Placement { kNowhere = 0, kTopLeft, kBottomRight, kOffset };
Placement PlacementOf(const heed_problem& problem);

// heed_problem.align is read.
bool ReadsAlign(const heed_problem& problem);

// Elements of the mask for so many queries or keys, of which one stands for
// `block`.
inline int64_t MaskExtent(int64_t tokens, int32_t block) {
  return block <= 1 ? tokens : tokens / block + (tokens % block != 0);
}

// How the kernels read heed_call.mask, and the bytes of one of its elements.
MaskType KernelMask(const heed_problem& problem);
int64_t MaskBytes(const heed_problem& problem);

// No query row exists, so there is nothing to write.
bool HasNoRows(const heed_problem& problem);

// scale * log2(e) as the one float the row program multiplies q by, saturated
// to the largest finite float of its sign.
float QueryScale(const heed_problem& problem);

// "f32", "f16" or "bf16"; null if `dtype` is none of heed_dtype.
const char* DtypeName(int32_t dtype);

// The kernels' word for a heed_dtype.
DType KernelDType(int32_t dtype);

// Bytes of one element of q, k, v and out.
int64_t ElementBytes(int32_t dtype);

// The problem string (problem_string.cc has the grammar); empty if there is
// none. The reverse gives HEED_OK or Fail() naming the token; whether the
// numbers make a valid problem it does not ask.
std::string ToString(const heed_problem& problem);
heed_status ParseProblem(std::string_view text, heed_problem* problem);

}  // namespace heed

#endif  // HEED_RUNTIME_PROBLEM_H_
