#include "tune/run_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "runtime/problem.h"
#include "tune/run_mask.h"

namespace heed {
namespace {

// How a dtype is called on the command line and stored in files.
const struct {
  int32_t dtype;
  const char* name;
  NpyType type;
} kDtypes[] = {{HEED_F32, "f32", NpyType::kFloat32},
               {HEED_F16, "f16", NpyType::kFloat16},
               {HEED_BF16, "bf16", NpyType::kUint16}};

// All three files hold the same type: the one that --dtype names, else q's.
bool FindDtype(const RunOptions& options, RunInputs* in, std::string* why) {
  NpyType type = in->q.type;
  if (options.dtype.empty() && type == NpyType::kUint16) {
    *why = fmt::format(
        "{}: uint16 elements; if they are bfloat16, say --dtype bf16",
        options.q);
    return false;
  }
  for (const auto& known : kDtypes) {
    if (options.dtype == known.name) type = known.type;
  }
  for (const auto& known : kDtypes) {
    if (type == known.type) in->problem.dtype = known.dtype;
  }
  const struct {
    const std::string& path;
    const NpyTensor& tensor;
  } files[] = {{options.q, in->q}, {options.k, in->k}, {options.v, in->v}};
  for (const auto& file : files) {
    if (file.tensor.type == type) continue;
    *why =
        fmt::format("{}: {} elements; expected {}, as {}", file.path,
                    NpyTypeName(file.tensor.type), NpyTypeName(type),
                    options.dtype.empty() ? "q's" : "--dtype " + options.dtype);
    return false;
  }
  return true;
}

bool ReadTensors(const RunOptions& options, RunInputs* in, std::string* why) {
  in->packed_q = !options.cu_seqlens_q.empty();
  in->packed_k = !options.cu_seqlens_k.empty();
  const auto read = [&](const std::string& path, bool packed,
                        NpyTensor* tensor) {
    const size_t rank = packed ? 3 : 4;
    return ReadNpy(
        path,
        {rank, rank, {NpyType::kFloat32, NpyType::kFloat16, NpyType::kUint16}},
        tensor, why);
  };
  return read(options.q, in->packed_q, &in->q) &&
         read(options.k, in->packed_k, &in->k) &&
         read(options.v, in->packed_k, &in->v) && FindDtype(options, in, why);
}

// The dimension `axis` of the tensor in `path` must be what something else
// says.
bool Agree(const std::string& path, const std::vector<int64_t>& shape,
           size_t axis, int64_t want, const std::string& as, std::string* why) {
  if (shape[axis] == want) return true;
  *why = fmt::format("{}: dimension {} is {}; expected {}, as {}", path, axis,
                     shape[axis], want, as);
  return false;
}

// Integers of either width, as heed wants them. Nothing without a path.
template <typename Element>
bool ReadIntegers(const std::string& path, size_t rank,
                  std::vector<int64_t>* shape, std::vector<Element>* elements,
                  std::string* why) {
  if (path.empty()) return true;
  NpyTensor tensor;
  if (!ReadNpy(path, {rank, rank, {NpyType::kInt32, NpyType::kInt64}}, &tensor,
               why)) {
    return false;
  }
  *shape = tensor.shape;
  elements->resize(tensor.count());
  for (size_t i = 0; i < elements->size(); ++i) {
    const int64_t value = tensor.type == NpyType::kInt32
                              ? tensor.elements<int32_t>()[i]
                              : tensor.elements<int64_t>()[i];
    (*elements)[i] = static_cast<Element>(value);
    if ((*elements)[i] == value) continue;
    *why =
        fmt::format("{}: element {} is {}; expected 32 bits", path, i, value);
    return false;
  }
  return true;
}

// Where sequences begin in one run of tokens, and the longest.
bool ReadStarts(const std::string& path, const std::string& tensor_name,
                int64_t tokens, std::vector<int32_t>* starts, int64_t* longest,
                std::string* why) {
  std::vector<int64_t> shape;
  if (!ReadIntegers(path, 1, &shape, starts, why)) return false;
  if (starts->empty()) {
    *why = fmt::format(
        "{}: 0 elements; expected one more than there are sequences", path);
    return false;
  }
  if (starts->back() != tokens) {
    *why =
        fmt::format("{}: the last element is {}; expected {}, the tokens of {}",
                    path, starts->back(), tokens, tensor_name);
    return false;
  }
  *longest = 0;
  for (size_t i = 1; i < starts->size(); ++i) {
    *longest =
        std::max(*longest, int64_t{(*starts)[i]} - int64_t{(*starts)[i - 1]});
  }
  return true;
}

// Sizes of q and k, from their files and those that say where sequences begin.
bool FindSizes(const RunOptions& options, RunInputs* in, std::string* why) {
  heed_problem& p = in->problem;
  const auto& q = in->q.shape;
  const auto& k = in->k.shape;
  p.heads_q = q[1];
  p.heads_kv = k[1];
  p.dim_qk = q.back();
  p.dim_v = in->v.shape.back();
  if (!Agree(options.k, k, k.size() - 1, p.dim_qk, "q's head width", why)) {
    return false;
  }
  std::vector<const char*> axes = {"k's batch", "k's heads", "k's length"};
  if (!options.block_table.empty()) {
    axes = {"k's pages", "k's heads", "k's page size"};
  }
  if (in->packed_k) axes = {"k's tokens", "k's heads"};
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (!Agree(options.v, in->v.shape, axis, k[axis], axes[axis], why)) {
      return false;
    }
  }
  if (in->packed_q) {
    if (!ReadStarts(options.cu_seqlens_q, "q", q[0], &in->cu_seqlens_q,
                    &p.len_q, why)) {
      return false;
    }
    p.batch = static_cast<int64_t>(in->cu_seqlens_q.size()) - 1;
  } else {
    p.batch = q[0];
    p.len_q = q[2];
  }
  if (in->packed_k) {
    return ReadStarts(options.cu_seqlens_k, "k", k[0], &in->cu_seqlens_k,
                      &p.len_k, why);
  }
  p.len_k = k[2];
  return true;
}

// The files that have an element, or a row, for every sequence.
bool ReadSequences(const RunOptions& options, RunInputs* in, std::string* why) {
  heed_problem& p = in->problem;
  std::vector<int64_t> used, offsets, table;
  if (!ReadIntegers(options.seqused_k, 1, &used, &in->seqused_k, why) ||
      !ReadIntegers(options.causal_offsets, 1, &offsets, &in->causal_offsets,
                    why) ||
      !ReadIntegers(options.block_table, 2, &table, &in->block_table, why)) {
    return false;
  }
  const std::string batch =
      in->packed_q ? "cu_seqlens_q's sequences" : "q's batch";
  if (!used.empty() &&
      !Agree(options.seqused_k, used, 0, p.batch, batch, why)) {
    return false;
  }
  if (!offsets.empty() &&
      !Agree(options.causal_offsets, offsets, 0, p.batch, batch, why)) {
    return false;
  }
  if (in->packed_k) {
    const auto sequences = static_cast<int64_t>(in->cu_seqlens_k.size()) - 1;
    if (sequences != p.batch) {
      *why = fmt::format("{}: {} sequences; expected {}, as {}",
                         options.cu_seqlens_k, sequences, p.batch, batch);
      return false;
    }
  } else if (table.empty()) {
    if (!Agree(options.k, in->k.shape, 0, p.batch, batch, why)) return false;
  } else {
    if (!Agree(options.block_table, table, 0, p.batch, batch, why)) {
      return false;
    }
    p.page_size = in->k.shape[2];
    if (p.page_size == 0) {
      *why = fmt::format("{}: dimension 2 is 0; expected the keys of a page",
                         options.k);
      return false;
    }
    if (__builtin_mul_overflow(table[1], p.page_size, &p.len_k)) {
      p.len_k = INT64_MAX;  // which heed refuses
    }
  }
  p.ragged = in->packed_q || in->packed_k || !used.empty() || !offsets.empty();
  return true;
}

// A float for every query head.
bool ReadPerHead(const std::string& path, int64_t heads,
                 std::vector<float>* values, std::string* why) {
  NpyTensor tensor;
  if (!ReadNpy(path, {1, 1, {NpyType::kFloat32}}, &tensor, why) ||
      !Agree(path, tensor.shape, 0, heads, "q's heads", why)) {
    return false;
  }
  values->assign(tensor.elements<float>(),
                 tensor.elements<float>() + tensor.count());
  return true;
}

bool ReadBiases(const RunOptions& options, RunInputs* in, std::string* why) {
  heed_problem& p = in->problem;
  p.softcap = options.softcap;
  p.sinks = !options.sinks.empty();
  p.alibi = !options.alibi.empty();
  if (options.alibi == "auto") {
    in->alibi_slopes = AlibiSlopes(p.heads_q);
  } else if (p.alibi != 0 &&
             !ReadPerHead(options.alibi, p.heads_q, &in->alibi_slopes, why)) {
    return false;
  }
  if (p.sinks != 0 && !ReadPerHead(options.sinks, p.heads_q, &in->sinks, why)) {
    return false;
  }
  return options.mask.empty() || ReadRunMask(options, in, why);
}

// What needs no file.
void SetPlaces(const RunOptions& options, heed_problem* p) {
  const auto place = [](const std::string& name) -> int32_t {
    return name == "top_left"       ? HEED_ALIGN_TOP_LEFT
           : name == "bottom_right" ? HEED_ALIGN_BOTTOM_RIGHT
           : name == "offset"       ? HEED_ALIGN_OFFSET
                                    : 0;
  };
  // Of the same values: static_assert in runtime/problem.cc.
  p->causal = place(options.causal);
  p->align = place(options.align);
  const bool has_offset =
      options.causal_offset.has_value() || !options.causal_offsets.empty();
  if (has_offset && options.align.empty()) p->causal = HEED_CAUSAL_OFFSET;
  p->window = options.has_window;
  p->window_left = options.window.first;
  p->window_right = options.window.second;
  p->scale_mode = HEED_SCALE_INV_SQRT_DIM;
  if (options.scale.has_value()) {
    p->scale_mode = HEED_SCALE_VALUE;
    p->scale = *options.scale;
  }
}

// As a file has it: packed, or with the batch as an axis.
heed_input Dense(const NpyTensor& tensor, bool packed) {
  const auto& shape = tensor.shape;
  if (!packed) {
    return heed_dense_input(tensor.bytes.data(), shape[1], shape[2], shape[3]);
  }
  // [tokens, heads, width] is a dense [1, tokens, heads, width].
  heed_input view =
      heed_dense_input(tensor.bytes.data(), 1, shape[1], shape[2]);
  std::swap(view.stride_head, view.stride_token);
  return view;
}

}  // namespace

std::vector<float> AlibiSlopes(int64_t heads) {
  int64_t power = 1;
  while (power <= heads / 2) power *= 2;
  std::vector<float> slopes;
  // 2^(-8 i / power), i = 1, 2, ..; then every other one of twice as many.
  const auto add = [&slopes](double i, int64_t count) {
    slopes.push_back(
        static_cast<float>(std::exp2(-8 * i / static_cast<double>(count))));
  };
  for (int64_t i = 1; i <= std::min(power, heads); ++i) {
    add(static_cast<double>(i), power);
  }
  for (int64_t i = 1; static_cast<int64_t>(slopes.size()) < heads; i += 2) {
    add(static_cast<double>(i), 2 * power);
  }
  return slopes;
}

bool ParseMaskBlock(const std::string& text, int32_t* queries, int32_t* keys) {
  const char* const end = text.data() + text.size();
  auto result = std::from_chars(text.data(), end, *queries);
  if (result.ec != std::errc() || result.ptr == end || *result.ptr != 'x') {
    return false;
  }
  result = std::from_chars(result.ptr + 1, end, *keys);
  return result.ec == std::errc() && result.ptr == end && *queries >= 1 &&
         *keys >= 1;
}

bool ReadRunInputs(const RunOptions& options, RunInputs* inputs,
                   std::string* why) {
  heed_problem_init(&inputs->problem);
  SetPlaces(options, &inputs->problem);
  return ReadTensors(options, inputs, why) && FindSizes(options, inputs, why) &&
         ReadSequences(options, inputs, why) &&
         ReadBiases(options, inputs, why);
}

heed_call CallOn(const RunOptions& options, const RunInputs& inputs) {
  heed_call call;
  heed_call_init(&call);
  call.q = Dense(inputs.q, inputs.packed_q);
  call.k = Dense(inputs.k, inputs.packed_k);
  call.v = Dense(inputs.v, inputs.packed_k);
  call.causal_offset = options.causal_offset.value_or(0);
  call.mask = inputs.mask_view;
  call.alibi_slopes = inputs.alibi_slopes.data();
  call.sinks = inputs.sinks.data();
  // heed takes an array that is not there for one that was not given.
  const auto given = [](const auto& array) {
    return array.empty() ? nullptr : array.data();
  };
  call.seqused_k = given(inputs.seqused_k);
  call.cu_seqlens_q = given(inputs.cu_seqlens_q);
  call.cu_seqlens_k = given(inputs.cu_seqlens_k);
  call.causal_offsets = given(inputs.causal_offsets);
  const int64_t page_size = inputs.problem.page_size;
  if (page_size > 0) {
    const int64_t max_pages = inputs.problem.len_k / page_size;
    call.block_table = {inputs.block_table.data(), max_pages, max_pages,
                        inputs.k.shape[0]};
  }
  return call;
}

}  // namespace heed
