#include "tune/run_mask.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <vector>

#include "runtime/problem.h"
#include "tune/npy_header.h"

namespace heed {
namespace {

// bool, float32, or the type of q, as a kind of mask.
int32_t MaskKind(NpyType type) {
  switch (type) {
    case NpyType::kBool:
    case NpyType::kUint8:
      return HEED_MASK_BOOL;
    case NpyType::kFloat32:
      return HEED_MASK_F32;
    default:
      return HEED_MASK_DTYPE;
  }
}

bool SetKind(const RunOptions& options, RunInputs* in, std::string* why) {
  heed_problem& p = in->problem;
  p.mask = MaskKind(in->mask.type);
  if (options.mask_block.empty()) return true;
  if (p.mask != HEED_MASK_BOOL) {
    *why = fmt::format(
        "{}: {} elements; expected bool or uint8 with "
        "--mask-block",
        options.mask, NpyTypeName(in->mask.type));
    return false;
  }
  return ParseMaskBlock(options.mask_block, &p.mask_block_q, &p.mask_block_k);
}

// The file's extents for batch, heads, queries and keys: 1 for the leading ones
// that it lacks. Each must be 1 or what the problem says.
bool FindExtents(const std::string& path, const NpyTensor& mask,
                 const int64_t (&want)[4], int64_t (&extents)[4],
                 std::string* why) {
  const char* const names[] = {"the batch", "the heads of q", "the queries",
                               "the keys"};
  const size_t missing = 4 - mask.shape.size();
  for (size_t axis = 0; axis < 4; ++axis) {
    extents[axis] = axis < missing ? 1 : mask.shape[axis - missing];
    if (extents[axis] == 1 || extents[axis] == want[axis]) continue;
    *why = fmt::format("{}: dimension {} is {}; expected {}, {}, or 1", path,
                       axis - missing, extents[axis], want[axis], names[axis]);
    return false;
  }
  return true;
}

// Writes an extent of 1 out `keys` times, since heed broadcasts all axes but
// that one.
bool RepeatKeys(const std::string& path, int64_t keys, NpyTensor* mask,
                std::string* why) {
  const size_t rows = mask->count();
  if (rows == 0) return true;
  const size_t element_bytes = mask->bytes.size() / rows;
  const std::vector<unsigned char> from = mask->bytes;
  try {
    mask->Resize(static_cast<size_t>(
        NpyElementCount({static_cast<int64_t>(rows), keys})));
  } catch (const std::exception&) {
    *why =
        fmt::format("{}: no memory for {} rows of {} keys", path, rows, keys);
    return false;
  }
  unsigned char* to = mask->bytes.data();
  for (size_t row = 0; row < rows; ++row) {
    for (int64_t key = 0; key < keys; ++key, to += element_bytes) {
      std::memcpy(to, from.data() + row * element_bytes, element_bytes);
    }
  }
  return true;
}

}  // namespace

bool ReadRunMask(const RunOptions& options, RunInputs* inputs,
                 std::string* why) {
  const heed_problem& p = inputs->problem;
  std::vector<NpyType> types = {NpyType::kBool, NpyType::kUint8,
                                NpyType::kFloat32};
  if (inputs->q.type != NpyType::kFloat32) types.push_back(inputs->q.type);
  NpyTensor& mask = inputs->mask;
  if (!ReadNpy(options.mask, {2, 4, types}, &mask, why) ||
      !SetKind(options, inputs, why)) {
    return false;
  }
  const int64_t want[4] = {p.batch, p.heads_q,
                           MaskExtent(p.len_q, p.mask_block_q),
                           MaskExtent(p.len_k, p.mask_block_k)};
  int64_t extents[4];
  if (!FindExtents(options.mask, mask, want, extents, why)) return false;
  if (extents[3] != want[3] && !RepeatKeys(options.mask, want[3], &mask, why)) {
    return false;
  }
  const heed_input dense =
      heed_dense_input(mask.bytes.data(), extents[1], extents[2], want[3]);
  inputs->mask_view = {dense.data, extents[0] == 1 ? 0 : dense.stride_batch,
                       extents[1] == 1 ? 0 : dense.stride_head,
                       extents[2] == 1 ? 0 : dense.stride_token, 1};
  return true;
}

}  // namespace heed
