#include "tests/stored_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed::test {
namespace {

// A binary format of 16 bits as IEEE 754 describes them.
struct Format {
  int mantissa_bits;
  int lowest_exponent;     // of normal numbers
  uint16_t infinity_bits;  // positive; larger magnitudes are NaN
};

Format FormatOf(int32_t dtype) {
  if (dtype == HEED_F16) return {10, -14, 0x7C00};
  return {7, -126, 0x7F80};
}

}  // namespace

float ValueOf(int32_t dtype, uint16_t bits) {
  const Format format = FormatOf(dtype);
  const int magnitude = bits & 0x7FFF;
  double value = 0;
  if (magnitude > format.infinity_bits) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (magnitude == format.infinity_bits) {
    value = std::numeric_limits<double>::infinity();
  } else {
    const int one = 1 << format.mantissa_bits;
    const int field = magnitude / one;
    const int significand = magnitude % one + (field == 0 ? 0 : one);
    const int exponent = format.lowest_exponent + std::max(field, 1) - 1;
    value = std::ldexp(significand, exponent - format.mantissa_bits);
  }
  return static_cast<float>((bits & 0x8000) != 0 ? -value : value);
}

uint16_t NearestTo(int32_t dtype, float x) {
  const Format format = FormatOf(dtype);
  const int sign = std::signbit(x) ? 0x8000 : 0;
  int magnitude = format.infinity_bits;
  if (std::isnan(x)) {
    magnitude += 1;
  } else if (x == 0) {
    magnitude = 0;
  } else if (!std::isinf(x)) {
    // In double both steps but nearbyint() are exact, and that rounds to even.
    const int exponent = std::max(std::ilogb(x), format.lowest_exponent);
    const double in_units = std::ldexp(std::fabs(static_cast<double>(x)),
                                       format.mantissa_bits - exponent);
    const double bits =
        std::nearbyint(in_units) +
        std::ldexp(exponent - format.lowest_exponent, format.mantissa_bits);
    magnitude = static_cast<int>(
        std::min(bits, static_cast<double>(format.infinity_bits)));
  }
  return static_cast<uint16_t>(sign | magnitude);
}

std::vector<float> ValuesOf(int32_t dtype, const std::vector<uint16_t>& bits) {
  std::vector<float> values;
  for (const uint16_t b : bits) values.push_back(ValueOf(dtype, b));
  return values;
}

std::vector<uint16_t> NearestTo(int32_t dtype, const std::vector<float>& x) {
  std::vector<uint16_t> bits;
  for (const float value : x) bits.push_back(NearestTo(dtype, value));
  return bits;
}

StoredCase Store(const Case& c, int32_t dtype) {
  StoredCase stored;
  stored.problem = c.problem;
  stored.problem.dtype = dtype;
  stored.q = NearestTo(dtype, c.q);
  stored.k = NearestTo(dtype, c.k);
  stored.v = NearestTo(dtype, c.v);
  stored.widened = c;
  stored.widened.q = ValuesOf(dtype, stored.q);
  stored.widened.k = ValuesOf(dtype, stored.k);
  stored.widened.v = ValuesOf(dtype, stored.v);
  if (c.problem.mask == HEED_MASK_DTYPE) {
    stored.mask = NearestTo(dtype, c.mask.values);
    stored.widened.mask.values = ValuesOf(dtype, stored.mask);
  }
  return stored;
}

heed_call StoredCall(const StoredCase& c, std::vector<uint16_t>* out,
                     std::vector<float>* lse) {
  // The f32 case knows the sizes and strides, which count elements.
  Result sizes;
  heed_call call = DenseCall(c.widened, &sizes);
  out->assign(sizes.out.size(), 0xFFFF);
  lse->assign(sizes.lse.size(), std::numeric_limits<float>::quiet_NaN());
  static uint16_t nothing[1] = {0};
  const auto in = [](const std::vector<uint16_t>& x) {
    return x.empty() ? nothing : x.data();
  };
  call.q.data = in(c.q);
  call.k.data = in(c.k);
  call.v.data = in(c.v);
  call.out.data = out->empty() ? nothing : out->data();
  if (!lse->empty()) call.lse.data = lse->data();
  if (!c.mask.empty()) call.mask.data = c.mask.data();
  return call;
}

Result RunStored(const StoredCase& c, const Settings& settings) {
  Result result;
  std::vector<uint16_t> out;
  const heed_call call = StoredCall(c, &out, &result.lse);
  result.status = RunCall(c.problem, call, settings);
  if (result.status != HEED_OK) result.error = heed_last_error();
  result.out = ValuesOf(c.problem.dtype, out);
  return result;
}

Result RunStored(const StoredCase& c, const KernelCut& cut) {
  Result result;
  std::vector<uint16_t> out;
  const heed_call call = StoredCall(c, &out, &result.lse);
  RunKernels(c.problem, call, cut);
  result.out = ValuesOf(c.problem.dtype, out);
  return result;
}

Result Rounded(const Result& result, int32_t dtype) {
  Result rounded = result;
  rounded.out = ValuesOf(dtype, NearestTo(dtype, result.out));
  return rounded;
}

}  // namespace heed::test
