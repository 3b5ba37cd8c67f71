// A case stored in 16 bits, beside the f32 case of the same values; and the
// conversions between the two in plain arithmetic, independent of heed's.
#ifndef HEED_TESTS_STORED_CASE_H_
#define HEED_TESTS_STORED_CASE_H_

#include <heed.h>

#include <cstdint>
#include <vector>

#include "tests/attention_case.h"
#include "tests/kernel_call.h"

namespace heed::test {

// HEED_F16 and HEED_BF16.
constexpr int32_t kStoredDtypes[] = {HEED_F16, HEED_BF16};

// The value of a stored element.
float ValueOf(int32_t dtype, uint16_t bits);

// The element nearest to x, of two equally near the even one.
uint16_t NearestTo(int32_t dtype, float x);

std::vector<float> ValuesOf(int32_t dtype, const std::vector<uint16_t>& bits);
std::vector<uint16_t> NearestTo(int32_t dtype, const std::vector<float>& x);

struct StoredCase {
  heed_problem problem;  // as widened.problem, but for the dtype
  std::vector<uint16_t> q, k, v;
  std::vector<uint16_t> mask;  // HEED_MASK_DTYPE
  Case widened;                // in f32
};

// The case with its inputs rounded to the dtype.
StoredCase Store(const Case& c, int32_t dtype);

// A call on the case's inputs and on *out and *lse, which are sized and filled
// with NaN. All must outlive the call.
heed_call StoredCall(const StoredCase& c, std::vector<uint16_t>* out,
                     std::vector<float>* lse);

// The result of the 16-bit call, with the values of out as floats.
Result RunStored(const StoredCase& c, const Settings& settings = {});
Result RunStored(const StoredCase& c, const KernelCut& cut);

// The result with its out rounded to the dtype: what a 16-bit call must give
// if this is the f32 call's.
Result Rounded(const Result& result, int32_t dtype);

}  // namespace heed::test

#endif  // HEED_TESTS_STORED_CASE_H_
