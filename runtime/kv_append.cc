// heed_kv_append(): new tokens of k and v into a cache of any storage type and
// layout.
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstring>
#include <exception>
#include <new>
#include <type_traits>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/convert.h"
#include "runtime/error.h"
#include "runtime/lengths.h"
#include "runtime/problem.h"
#include "runtime/tensor.h"

namespace heed {
namespace {

// Where the new tokens of one sequence come from and go to.
struct NewTokens {
  int64_t batch;
  int64_t from;  // first token of k_new and v_new within the batch element
  int64_t count;
  int64_t to;  // first key of the cache, within its batch element or run
  int64_t position;
};

int64_t PositionOf(const heed_append& append, int64_t batch) {
  return append.positions != nullptr ? append.positions[batch]
                                     : append.positions_i32[batch];
}

NewTokens TokensOf(const heed_append& append, int64_t batch) {
  NewTokens tokens = {batch, 0, append.len_new, 0, PositionOf(append, batch)};
  if (append.cu_seqlens_new != nullptr) {
    tokens.from = append.cu_seqlens_new[batch];
    tokens.count = append.cu_seqlens_new[batch + 1] - tokens.from;
  }
  tokens.to = tokens.position;
  if (append.cu_seqlens_cache != nullptr) {
    tokens.to += append.cu_seqlens_cache[batch];
  }
  return tokens;
}

// Keys that a sequence's part of the cache has room for.
int64_t RoomOf(const heed_append& append, int64_t batch) {
  if (append.page_size > 0) {
    int64_t room;
    return __builtin_mul_overflow(append.block_table.max_pages,
                                  append.page_size, &room)
               ? INT64_MAX
               : room;
  }
  if (append.cu_seqlens_cache == nullptr) return append.len_cache;
  return int64_t{append.cu_seqlens_cache[batch + 1]} -
         append.cu_seqlens_cache[batch];
}

heed_status ValidateNumbers(const heed_append& a) {
  if (a.struct_size != sizeof(heed_append)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "append.struct_size is %zu; expected %zu, as "
                "heed_append_init() sets it",
                a.struct_size, sizeof(heed_append));
  }
  const struct {
    const char* name;
    int64_t value;
  } sizes[] = {{"batch", a.batch},        {"heads_kv", a.heads_kv},
               {"len_new", a.len_new},    {"len_cache", a.len_cache},
               {"dim_qk", a.dim_qk},      {"dim_v", a.dim_v},
               {"page_size", a.page_size}};
  for (const auto& size : sizes) {
    if (size.value >= 0) continue;
    return Fail(HEED_INVALID_ARGUMENT,
                "append.%s is %" PRId64 "; expected 0 or more", size.name,
                size.value);
  }
  const struct {
    const char* name;
    int32_t value;
  } dtypes[] = {{"dtype_new", a.dtype_new}, {"dtype_cache", a.dtype_cache}};
  for (const auto& dtype : dtypes) {
    if (DtypeName(dtype.value) != nullptr) continue;
    return Fail(HEED_INVALID_ARGUMENT,
                "append.%s is %" PRId32
                "; expected HEED_F32 (1), HEED_F16 (2) or HEED_BF16 (3)",
                dtype.name, dtype.value);
  }
  if ((a.positions == nullptr) == (a.positions_i32 == nullptr)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "append.positions and append.positions_i32 are both %s; "
                "expected one of them",
                a.positions == nullptr ? "NULL" : "given");
  }
  if (a.page_size == 0) return HEED_OK;
  if (a.cu_seqlens_cache != nullptr) {
    return Fail(HEED_INVALID_ARGUMENT,
                "append.cu_seqlens_cache is %p; expected NULL with pages, of "
                "which block_table says where they are",
                static_cast<const void*>(a.cu_seqlens_cache));
  }
  return ValidateTableSizes("append", a.block_table);
}

// The arrays that say how far the tensors reach.
heed_status ValidateArrays(const heed_append& a, Tensor* arrays,
                           size_t* count) {
  const auto add = [&](const char* name, const auto* data, int64_t elements) {
    if (data == nullptr) return;
    arrays[(*count)++] =
        DescribeArray("append", name, data, elements, sizeof *data);
  };
  int64_t ends;
  if (__builtin_add_overflow(a.batch, 1, &ends)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "append.batch is %" PRId64 "; expected less", a.batch);
  }
  add("positions", a.positions, a.batch);
  add("positions_i32", a.positions_i32, a.batch);
  add("cu_seqlens_new", a.cu_seqlens_new, ends);
  add("cu_seqlens_cache", a.cu_seqlens_cache, ends);
  if (a.page_size > 0) {
    arrays[(*count)++] = {"append",
                          "block_table",
                          a.block_table.data,
                          {a.batch, 1, 1, a.block_table.max_pages},
                          {a.block_table.stride_batch, 0, 0, 1},
                          sizeof(int32_t),
                          false};
  }
  heed_status status = HEED_OK;
  for (size_t i = 0; i < *count && status == HEED_OK; ++i) {
    status = ValidateTensor(&arrays[i]);
  }
  if (status == HEED_OK && a.cu_seqlens_new != nullptr) {
    status = ValidateCumulative("append", "cu_seqlens_new", a.cu_seqlens_new,
                                a.batch, "append.len_new", a.len_new);
  }
  if (status == HEED_OK && a.cu_seqlens_cache != nullptr) {
    status =
        ValidateCumulative("append", "cu_seqlens_cache", a.cu_seqlens_cache,
                           a.batch, "append.len_cache", a.len_cache);
  }
  return status;
}

struct Axes {
  int64_t batch, heads, len;
};

Axes AxesOfNew(const heed_append& a) {
  if (a.cu_seqlens_new == nullptr) return {a.batch, a.heads_kv, a.len_new};
  return {1, a.heads_kv, a.cu_seqlens_new[a.batch]};
}

Axes AxesOfCache(const heed_append& a) {
  if (a.page_size > 0) {
    return {a.block_table.num_pages, a.heads_kv, a.page_size};
  }
  if (a.cu_seqlens_cache == nullptr) return {a.batch, a.heads_kv, a.len_cache};
  return {1, a.heads_kv, a.cu_seqlens_cache[a.batch]};
}

heed_status ValidateTensors(const heed_append& a) {
  // Four arrays, the table, and two tensors each way.
  std::array<Tensor, 9> tensors;
  size_t count = 0;
  heed_status status = ValidateArrays(a, tensors.data(), &count);
  if (status != HEED_OK) return status;
  const size_t first = count;
  const Axes from = AxesOfNew(a), to = AxesOfCache(a);
  const auto add = [&](const char* name, const auto& tensor, const Axes& axes,
                       int64_t dim, int32_t dtype, bool is_output) {
    tensors[count++] =
        DescribeTensor("append", name, tensor, axes.batch, axes.heads, axes.len,
                       dim, ElementBytes(dtype), is_output);
  };
  add("k_new", a.k_new, from, a.dim_qk, a.dtype_new, false);
  add("v_new", a.v_new, from, a.dim_v, a.dtype_new, false);
  add("k_cache", a.k_cache, to, a.dim_qk, a.dtype_cache, true);
  add("v_cache", a.v_cache, to, a.dim_v, a.dtype_cache, true);
  for (size_t i = first; i < count && status == HEED_OK; ++i) {
    status = ValidateTensor(&tensors[i]);
  }
  return status == HEED_OK ? ValidateDisjoint(tensors.data(), count) : status;
}

// Every sequence's new tokens lie in its room, and in pages that exist.
heed_status ValidatePlaces(const heed_append& a) {
  for (int64_t b = 0; b < a.batch; ++b) {
    const NewTokens tokens = TokensOf(a, b);
    if (tokens.count == 0) continue;
    const int64_t room = RoomOf(a, b);
    if (tokens.position < 0 || tokens.count > room ||
        tokens.position > room - tokens.count) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "append.positions%s of sequence %" PRId64 " is %" PRId64
                  "; expected 0 or more, and room for %" PRId64
                  " new tokens among %" PRId64,
                  a.positions != nullptr ? "" : "_i32", b, tokens.position,
                  tokens.count, room);
    }
    if (a.page_size == 0) continue;
    const int64_t end = tokens.position + tokens.count;
    const heed_status status = ValidatePages(
        "append", a.block_table, a.page_size, b, end, tokens.position, end);
    if (status != HEED_OK) return status;
  }
  return HEED_OK;
}

// Keys [begin, end) of one page, which one sequence writes through one entry.
struct PageRun {
  int32_t page;
  int64_t begin, end;
  int64_t batch, entry;
};

// Calls visit(run, first new token) for each page that a sequence writes to.
template <typename Visit>
void ForEachPage(const heed_append& a, const NewTokens& tokens,
                 const Visit& visit) {
  const int32_t* row = TableRow(a.block_table, tokens.batch);
  for (int64_t done = 0; done < tokens.count;) {
    const int64_t key = tokens.position + done;
    const int64_t entry = key / a.page_size, begin = key % a.page_size;
    const int64_t keys = std::min(a.page_size - begin, tokens.count - done);
    visit(PageRun{row[entry], begin, begin + keys, tokens.batch, entry}, done);
    done += keys;
  }
}

// No two new tokens go to one place. Sorted by place, runs that overlap have
// neighbours that do.
heed_status ValidateApart(const heed_append& a) {
  std::array<PageRun, 256> few;
  std::vector<PageRun> many;
  size_t count = 0;
  for (int64_t b = 0; b < a.batch; ++b) {
    ForEachPage(a, TokensOf(a, b), [&](const PageRun& run, int64_t) {
      if (count < few.size()) few[count] = run;
      if (count == few.size()) many.assign(few.begin(), few.end());
      if (count >= few.size()) many.push_back(run);
      ++count;
    });
  }
  PageRun* runs = count <= few.size() ? few.data() : many.data();
  std::sort(runs, runs + count, [](const PageRun& x, const PageRun& y) {
    return x.page != y.page ? x.page < y.page : x.begin < y.begin;
  });
  for (size_t i = 1; i < count; ++i) {
    if (runs[i].page != runs[i - 1].page || runs[i].begin >= runs[i - 1].end) {
      continue;
    }
    // The later of the two is the one that is wrong, as people see it.
    const bool in_order = runs[i].batch > runs[i - 1].batch ||
                          (runs[i].batch == runs[i - 1].batch &&
                           runs[i].entry > runs[i - 1].entry);
    const PageRun& later = in_order ? runs[i] : runs[i - 1];
    const PageRun& earlier = in_order ? runs[i - 1] : runs[i];
    return Fail(HEED_INVALID_ARGUMENT,
                "append.block_table of sequence %" PRId64 ": entry %" PRId64
                " is %" PRId32 ", where entry %" PRId64 " of sequence %" PRId64
                " puts a new token in the same place; expected each at its own",
                later.batch, later.entry, later.page, earlier.entry,
                earlier.batch);
  }
  return HEED_OK;
}

using Copy = void (*)(const void* from, void* to, size_t count);

template <typename From, typename To>
void CopyAs(const void* from, void* to, size_t count) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, from, count * sizeof(From));
  } else {
    const From* x = static_cast<const From*>(from);
    To* y = static_cast<To*>(to);
    for (size_t i = 0; i < count; ++i) FromFloat(ToFloat(x[i]), &y[i]);
  }
}

template <typename From>
Copy CopyTo(int32_t dtype) {
  switch (KernelDType(dtype)) {
    case DType::kF16:
      return CopyAs<From, F16>;
    case DType::kBF16:
      return CopyAs<From, BF16>;
    default:
      return CopyAs<From, float>;
  }
}

Copy CopyBetween(int32_t from, int32_t to) {
  switch (KernelDType(from)) {
    case DType::kF16:
      return CopyTo<F16>(to);
    case DType::kBF16:
      return CopyTo<BF16>(to);
    default:
      return CopyTo<float>(to);
  }
}

// k or v on its way.
struct Stream {
  heed_input from;
  heed_output to;
  int64_t dim;
};

// Copies `count` tokens of every head, from token `from` of a batch element of
// the new ones to token `to` of a batch element (page) of the cache.
void CopyTokens(const heed_append& a, const Stream& stream, Copy copy,
                int64_t from_batch, int64_t from, int64_t to_batch, int64_t to,
                int64_t count) {
  const int64_t from_bytes = ElementBytes(a.dtype_new);
  const int64_t to_bytes = ElementBytes(a.dtype_cache);
  for (int64_t head = 0; head < a.heads_kv; ++head) {
    for (int64_t token = 0; token < count; ++token) {
      copy(At(stream.from, from_bytes, from_batch, head, from + token),
           At(stream.to, to_bytes, to_batch, head, to + token),
           static_cast<size_t>(stream.dim));
    }
  }
}

void CopyStream(const heed_append& a, Stream stream) {
  const Axes new_axes = AxesOfNew(a), cache_axes = AxesOfCache(a);
  ClearUnused(&stream.from, new_axes.batch, new_axes.heads, new_axes.len,
              stream.dim);
  ClearUnused(&stream.to, cache_axes.batch, cache_axes.heads, cache_axes.len,
              stream.dim);
  if (stream.from.data == nullptr || stream.to.data == nullptr) return;
  const Copy copy = CopyBetween(a.dtype_new, a.dtype_cache);
  for (int64_t b = 0; b < a.batch; ++b) {
    const NewTokens tokens = TokensOf(a, b);
    if (a.page_size == 0) {
      CopyTokens(a, stream, copy, b, tokens.from, b, tokens.to, tokens.count);
      continue;
    }
    ForEachPage(a, tokens, [&](const PageRun& run, int64_t done) {
      CopyTokens(a, stream, copy, b, tokens.from + done, run.page, run.begin,
                 run.end - run.begin);
    });
  }
}

heed_status Append(const heed_append& a) {
  heed_status status = ValidateNumbers(a);
  if (status == HEED_OK) status = ValidateTensors(a);
  if (status == HEED_OK) status = ValidatePlaces(a);
  if (status == HEED_OK && a.page_size > 0) status = ValidateApart(a);
  if (status != HEED_OK) return status;
  CopyStream(a, {a.k_new, a.k_cache, a.dim_qk});
  CopyStream(a, {a.v_new, a.v_cache, a.dim_v});
  return HEED_OK;
}

}  // namespace
}  // namespace heed

extern "C" {

void heed_append_init(heed_append* append) {
  if (append == nullptr) return;
  *append = heed_append{};
  append->struct_size = sizeof(heed_append);
}

heed_status heed_kv_append(const heed_append* append) {
  if (append == nullptr) {
    return heed::Fail(HEED_INVALID_ARGUMENT,
                      "append is NULL; expected a heed_append");
  }
  try {
    return heed::Append(*append);
  } catch (const std::bad_alloc&) {
    return heed::Fail(HEED_OUT_OF_MEMORY, "no memory to check the pages");
  } catch (const std::exception& error) {
    return heed::Fail(HEED_INTERNAL, "heed_kv_append: %s", error.what());
  }
}

}  // extern "C"
