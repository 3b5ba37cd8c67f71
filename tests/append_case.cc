#include "tests/append_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/input_families.h"

namespace heed::test {
namespace {

size_t BytesOf(int32_t dtype) { return dtype == HEED_F32 ? 4 : 2; }

// The nearest f16 or bf16, by search: written to be right, not fast.
uint16_t Nearest(float x, int32_t dtype) {
  const int mantissa_bits = dtype == HEED_F16 ? 10 : 7;
  const int bias = dtype == HEED_F16 ? 15 : 127;
  const int all_ones = dtype == HEED_F16 ? 31 : 255;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) {
    return static_cast<uint16_t>(sign | (all_ones << mantissa_bits) |
                                 (1 << (mantissa_bits - 1)));
  }
  const double a = std::fabs(static_cast<double>(x));
  int exponent = 0;
  std::frexp(a, &exponent);
  // The spacing of results around a.
  const int lowest = 1 - bias - mantissa_bits;
  const int spacing = a == 0 || std::isinf(a)
                          ? lowest
                          : std::max(exponent - 1 - mantissa_bits, lowest);
  const double steps = std::nearbyint(std::ldexp(a, -spacing));
  const double rounded = std::ldexp(steps, spacing);
  if (rounded >= std::ldexp(2.0 - std::ldexp(1.0, -mantissa_bits - 1),
                            all_ones - 1 - bias)) {
    return static_cast<uint16_t>(sign | (all_ones << mantissa_bits));
  }
  if (rounded == 0) return sign;
  std::frexp(rounded, &exponent);
  const int field = std::max(exponent - 1 + bias, 0);
  const double fraction =
      field == 0 ? std::ldexp(rounded, bias - 1 + mantissa_bits)
                 : std::ldexp(rounded, mantissa_bits - exponent + 1) -
                       (1 << mantissa_bits);
  return static_cast<uint16_t>(sign + (field << mantissa_bits) +
                               static_cast<int>(fraction));
}

}  // namespace

float WidenBits(uint16_t bits, int32_t dtype) {
  if (dtype == HEED_BF16) {
    const uint32_t wide = uint32_t{bits} << 16;
    float x;
    std::memcpy(&x, &wide, sizeof x);
    return x;
  }
  const int field = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (field == 31) {
    return mantissa != 0 ? std::nanf("") : sign * HUGE_VALF;
  }
  return sign * (field == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                            : std::ldexp(static_cast<float>(mantissa + 1024),
                                         field - 25));
}

Buffer::Buffer(int32_t type, size_t count, char fill)
    : dtype(type), bytes(count * BytesOf(type), fill) {}

float Buffer::At(int64_t i) const {
  float x;
  if (dtype == HEED_F32) {
    std::memcpy(&x, bytes.data() + 4 * i, 4);
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, bytes.data() + 2 * i, 2);
  return WidenBits(bits, dtype);
}

void Buffer::Set(int64_t i, float x) {
  if (dtype == HEED_F32) {
    std::memcpy(bytes.data() + 4 * i, &x, 4);
    return;
  }
  const uint16_t bits = Nearest(x, dtype);
  std::memcpy(bytes.data() + 2 * i, &bits, 2);
}

AppendCase MakeAppend(int64_t batch, int64_t new_batch, int64_t new_len,
                      int64_t cache_batch, int64_t cache_len, int32_t from,
                      int32_t to) {
  constexpr int64_t kHeads = AppendCase::kHeads;
  constexpr int64_t kDimQk = AppendCase::kDimQk, kDimV = AppendCase::kDimV;
  const auto count = [](int64_t b, int64_t len, int64_t dim) {
    return static_cast<size_t>(b * kHeads * len * dim);
  };
  AppendCase c = {{},
                  Buffer(from, count(new_batch, new_len, kDimQk), 0),
                  Buffer(from, count(new_batch, new_len, kDimV), 0),
                  Buffer(to, count(cache_batch, cache_len, kDimQk), 0x55),
                  Buffer(to, count(cache_batch, cache_len, kDimV), 0x55)};
  Random random(1);
  for (Buffer* x : {&c.k_new, &c.v_new}) {
    const size_t elements = x->bytes.size() / BytesOf(from);
    for (size_t i = 0; i < elements; ++i) {
      x->Set(static_cast<int64_t>(i), random.Normal());
    }
  }
  heed_append_init(&c.append);
  c.append.batch = batch;
  c.append.heads_kv = kHeads;
  c.append.len_new = new_len;
  c.append.len_cache = cache_len;
  c.append.dim_qk = kDimQk;
  c.append.dim_v = kDimV;
  c.append.dtype_new = from;
  c.append.dtype_cache = to;
  c.append.k_new =
      heed_dense_input(c.k_new.bytes.data(), kHeads, new_len, kDimQk);
  c.append.v_new =
      heed_dense_input(c.v_new.bytes.data(), kHeads, new_len, kDimV);
  c.append.k_cache =
      heed_dense_output(c.k_cache.bytes.data(), kHeads, cache_len, kDimQk);
  c.append.v_cache =
      heed_dense_output(c.v_cache.bytes.data(), kHeads, cache_len, kDimV);
  return c;
}

}  // namespace heed::test
