// heed_merge_states(): the attention over the union of two sets of keys.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "runtime/error.h"
#include "runtime/tensor.h"

namespace heed {
namespace {

// Inputs, then outputs.
enum Place { kOutA, kLseA, kOutB, kLseB, kOut, kLse, kPlaces };

// The same elements in the same places.
bool Coincide(const Tensor& a, const Tensor& b) {
  if (a.data != b.data) return false;
  for (int axis = 0; axis < 4; ++axis) {
    if (a.extent[axis] != b.extent[axis]) return false;
    if (a.footprint.stride_bytes[axis] != b.footprint.stride_bytes[axis]) {
      return false;
    }
  }
  return true;
}

heed_status ValidateApart(const Tensor (&tensors)[kPlaces]) {
  for (const Place output : {kOut, kLse}) {
    for (int input = kOutA; input < output; ++input) {
      const Tensor pair[2] = {tensors[input], tensors[output]};
      // Of its own kind it may be the input itself: a row is read before it is
      // written.
      const bool same_kind = (input - output) % 2 == 0;
      if (same_kind && Coincide(pair[0], pair[1])) continue;
      const heed_status status = ValidateDisjoint(pair, 2);
      if (status != HEED_OK) return status;
    }
  }
  return HEED_OK;
}

heed_status Validate(const heed_merge& m) {
  if (m.struct_size != sizeof(heed_merge)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "merge.struct_size is %zu; expected %zu, as heed_merge_init() "
                "sets it",
                m.struct_size, sizeof(heed_merge));
  }
  const struct {
    const char* name;
    int64_t value;
  } sizes[] = {
      {"batch", m.batch}, {"heads", m.heads}, {"len", m.len}, {"dim", m.dim}};
  for (const auto& size : sizes) {
    if (size.value >= 0) continue;
    return Fail(HEED_INVALID_ARGUMENT, "merge.%s is %lld; expected 0 or more",
                size.name, static_cast<long long>(size.value));
  }
  const auto describe = [&m](const char* name, const auto& tensor, int64_t dim,
                             bool is_output) {
    return DescribeTensor("merge", name, tensor, m.batch, m.heads, m.len, dim,
                          4, is_output);
  };
  Tensor tensors[kPlaces] = {describe("out_a", m.out_a, m.dim, false),
                             describe("lse_a", m.lse_a, 1, false),
                             describe("out_b", m.out_b, m.dim, false),
                             describe("lse_b", m.lse_b, 1, false),
                             describe("out", m.out, m.dim, true),
                             describe("lse", m.lse, 1, true)};
  for (Tensor& tensor : tensors) {
    const heed_status status = ValidateTensor(&tensor);
    if (status != HEED_OK) return status;
  }
  return ValidateApart(tensors);
}

// One row's states, out [dim] each.
struct RowState {
  const float* out;
  float lse;
};

// Writes out[dim], which may be a.out or b.out, and returns lse.
float MergeRow(const RowState& a, const RowState& b, size_t dim, float* out) {
  constexpr float kEmpty = -std::numeric_limits<float>::infinity();
  if (a.lse == kEmpty || b.lse == kEmpty) {
    const RowState& only = b.lse == kEmpty ? a : b;
    if (only.out != out) std::copy(only.out, only.out + dim, out);
    return only.lse;
  }
  // The larger is subtracted, so that neither weight overflows; a NaN or +inf
  // makes both of them NaN or meets a NaN in the sum.
  const double largest = std::max(a.lse, b.lse);
  const double weight_a = std::exp(a.lse - largest);
  const double weight_b = std::exp(b.lse - largest);
  const double sum = weight_a + weight_b;
  for (size_t i = 0; i < dim; ++i) {
    out[i] =
        static_cast<float>((weight_a * a.out[i] + weight_b * b.out[i]) / sum);
  }
  return static_cast<float>(largest + std::log(sum));
}

void Merge(const heed_merge& m) {
  if (m.batch == 0 || m.heads == 0 || m.len == 0) return;
  heed_merge used = m;
  for (heed_input* input : {&used.out_a, &used.out_b}) {
    ClearUnused(input, m.batch, m.heads, m.len, m.dim);
  }
  for (heed_input* input : {&used.lse_a, &used.lse_b}) {
    ClearUnused(input, m.batch, m.heads, m.len, 1);
  }
  ClearUnused(&used.out, m.batch, m.heads, m.len, m.dim);
  ClearUnused(&used.lse, m.batch, m.heads, m.len, 1);
  const auto row = [](const heed_input& tensor, int64_t b, int64_t h,
                      int64_t i) {
    return static_cast<const float*>(At(tensor, 4, b, h, i));
  };
  for (int64_t b = 0; b < m.batch; ++b) {
    for (int64_t h = 0; h < m.heads; ++h) {
      for (int64_t i = 0; i < m.len; ++i) {
        float* out = static_cast<float*>(At(used.out, 4, b, h, i));
        *static_cast<float*>(At(used.lse, 4, b, h, i)) =
            MergeRow({row(used.out_a, b, h, i), *row(used.lse_a, b, h, i)},
                     {row(used.out_b, b, h, i), *row(used.lse_b, b, h, i)},
                     static_cast<size_t>(m.dim), out);
      }
    }
  }
}

}  // namespace
}  // namespace heed

extern "C" {

void heed_merge_init(heed_merge* merge) {
  if (merge == nullptr) return;
  *merge = heed_merge{};
  merge->struct_size = sizeof(heed_merge);
}

heed_status heed_merge_states(const heed_merge* merge) {
  if (merge == nullptr) {
    return heed::Fail(HEED_INVALID_ARGUMENT,
                      "merge is NULL; expected a heed_merge");
  }
  const heed_status status = heed::Validate(*merge);
  if (status == HEED_OK) heed::Merge(*merge);
  return status;
}

}  // extern "C"
