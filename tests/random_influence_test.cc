// Random problems on which a call must not depend on, nor touch, what its rows
// do not see: promises P2 and P6 for everything a call can say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/fenced_buffer.h"
#include "tests/input_families.h"
#include "tests/kernel_call.h"
#include "tests/random_problems.h"
#include "tests/row_program.h"
#include "tests/special_values.h"
#include "tests/stored_case.h"

namespace heed::test {
namespace {

// The elements of x that hold the rows of the keys that a row sees.
std::vector<bool> SeenElements(const Row& row, const KeyRows& keys, size_t dim,
                               const std::vector<float>& x) {
  std::vector<bool> seen(x.size(), false);
  for (int64_t key = row.begin; key < row.end && dim > 0; ++key) {
    if (!row.Sees(key)) continue;
    std::fill_n(seen.begin() + (keys.Key(key) - x.data()), dim, true);
  }
  return seen;
}

// Everything but what the row sees and its own query, slope and sink becomes
// the poison: other rows and heads, keys beyond lengths and behind lines and
// masks, pages of nobody, the mask's entries of keys that are out of range.
Case PoisonedBut(const Case& c, const Row& row, int64_t head, float poison) {
  Case poisoned = c;
  const auto spread = [poison](const std::vector<bool>& seen,
                               std::vector<float>* x) {
    for (size_t i = 0; i < x->size(); ++i) {
      if (!seen[i]) (*x)[i] = poison;
    }
  };
  std::vector<bool> own(c.q.size(), false);
  if (!c.q.empty()) {
    std::fill_n(own.begin() + (row.q - c.q.data()), row.dim_qk, true);
  }
  spread(own, &poisoned.q);
  spread(SeenElements(row, row.k, row.dim_qk, c.k), &poisoned.k);
  spread(SeenElements(row, row.v, row.dim_v, c.v), &poisoned.v);
  CaseMask& mask = poisoned.mask;
  std::fill(mask.bytes.begin(), mask.bytes.end(), 255);
  std::fill(mask.values.begin(), mask.values.end(), poison);
  for (int64_t key = row.begin; key < row.end; ++key) {
    if (row.visible != nullptr) {
      const uint8_t* element = row.visible + key / row.visible_block;
      mask.bytes[element - c.mask.bytes.data()] = *element;
    }
    if (row.added != nullptr) {
      mask.values[row.added + key - c.mask.values.data()] = row.added[key];
    }
  }
  for (size_t h = 0; h < static_cast<size_t>(c.problem.heads_q); ++h) {
    if (h == static_cast<size_t>(head)) continue;
    if (!c.slopes.empty()) poisoned.slopes[h] = poison;
    if (!c.sinks.empty()) poisoned.sinks[h] = poison;
  }
  return poisoned;
}

// One key that the row does not see becomes the poison, among others that stay
// finite: which code is careful depends on what it finds.
Case WithOnePoisonedKey(const Case& c, const Row& row, uint64_t seed,
                        float poison) {
  Case poisoned = c;
  const std::vector<bool> seen_k = SeenElements(row, row.k, row.dim_qk, c.k);
  const std::vector<bool> seen_v = SeenElements(row, row.v, row.dim_v, c.v);
  std::vector<int64_t> hidden;
  for (int64_t key = row.begin; key < row.end; ++key) {
    // A shared page may hold a key that is hidden and another that is not.
    const bool is_seen =
        row.Sees(key) ||
        (row.dim_qk > 0 && seen_k[row.k.Key(key) - c.k.data()]) ||
        (row.dim_v > 0 && seen_v[row.v.Key(key) - c.v.data()]);
    if (!is_seen) hidden.push_back(key);
  }
  if (hidden.empty()) return poisoned;
  Random random(seed);
  const int64_t key = hidden[random.Below(static_cast<int64_t>(hidden.size()))];
  const bool whole = random.Below(2) == 0;
  if (row.dim_qk > 0) {
    std::fill_n(poisoned.k.begin() + (row.k.Key(key) - c.k.data()),
                whole ? row.dim_qk : 1, poison);
  }
  if (row.dim_v > 0) {
    const auto column = static_cast<int64_t>(
        whole ? 0 : random.Below(static_cast<int64_t>(row.dim_v)));
    std::fill_n(poisoned.v.begin() + (row.v.Key(key) - c.v.data()) + column,
                whole ? row.dim_v : 1, poison);
  }
  return poisoned;
}

TEST(RandomInfluence, WhatARowDoesNotSeeHasNoInfluenceWhateverItHolds) {
  ForEachProblem(6000000, 0.1, 0, [](uint64_t seed, const Case& c) {
    Result from;
    RowPlace place;
    if (!RandomRow(seed, c, &from, &place)) return std::string();
    const float poison =
        std::vector<float>{kNan, kInfinity, -kInfinity, 1e38f}[seed % 4];
    Result ignored;
    const heed_call call = DenseCall(c, &ignored);
    const Row row =
        RowOf(c.problem, call, place.batch, place.head, place.token);
    const Case poisoned = seed / 24 % 2 == 0
                              ? PoisonedBut(c, row, place.head, poison)
                              : WithOnePoisonedKey(c, row, seed, poison);
    const std::string how = "token " + std::to_string(place.token) + " head " +
                            std::to_string(place.head) + " batch " +
                            std::to_string(place.batch) + " poison " +
                            std::to_string(poison) + " ";
    std::string wrong = RowDifference(c, RunRowProgram(poisoned),
                                      RunRowProgram(c), from, place);
    if (!wrong.empty()) return "the row program itself, " + how + wrong;
    if (seed / 4 % 3 == 0) {
      const Settings settings = RandomFusedSettings(seed);
      wrong = RowDifference(c, RunHeed(poisoned, settings),
                            RunHeed(c, settings), from, place);
      return wrong.empty() ? "" : how + NameOf(settings) + ": " + wrong;
    }
    const KernelCut cut = RandomCut(seed, c.problem);
    if (seed / 4 % 3 == 1) {
      wrong = RowDifference(c, RunKernels(poisoned, cut), RunKernels(c, cut),
                            from, place);
      return wrong.empty() ? "" : how + NameOf(cut) + ": " + wrong;
    }
    const int32_t dtype = kStoredDtypes[seed / 12 % 2];
    const KernelCut stored_cut = [&] {
      heed_problem p = c.problem;
      p.dtype = dtype;
      return RandomCut(seed, p);
    }();
    wrong = RowDifference(c, RunStored(Store(poisoned, dtype), stored_cut),
                          RunStored(Store(c, dtype), stored_cut), from, place);
    return wrong.empty() ? ""
                         : how + std::to_string(dtype) + " " +
                               NameOf(stored_cut) + ": " + wrong;
  });
}

// A call all of whose arrays are copies with a no-access page behind (or
// before) them, as long as the call may read or write them.
class FencedCall {
 public:
  FencedCall(const StoredCase& c, const heed_call& call, bool fence_after)
      : call_(call), fence_after_(fence_after) {
    const Case& w = c.widened;
    const size_t element = c.problem.dtype == HEED_F32 ? 4 : 2;
    Fence(w.q.size() * element, &call_.q.data);
    Fence(w.k.size() * element, &call_.k.data);
    Fence(w.v.size() * element, &call_.v.data);
    const int64_t block = std::max(w.problem.mask_block_k, 1);
    const int64_t columns = (w.problem.len_k + block - 1) / block;
    // No row's mask is read past its last key or block.
    const size_t unread = static_cast<size_t>(w.mask.room - columns);
    size_t mask_element = sizeof(float);
    if (c.problem.mask == HEED_MASK_BOOL) mask_element = 1;
    if (c.problem.mask == HEED_MASK_DTYPE) mask_element = element;
    const size_t mask_size = w.mask.bytes.size() + w.mask.values.size();
    if (mask_size > 0) {
      Fence((mask_size - unread) * mask_element, &call_.mask.data);
    }
    FenceVector(w.slopes, &call_.alibi_slopes);
    FenceVector(w.sinks, &call_.sinks);
    FenceVector(w.seqused_k, &call_.seqused_k);
    FenceVector(w.cu_seqlens_q, &call_.cu_seqlens_q);
    FenceVector(w.cu_seqlens_k, &call_.cu_seqlens_k);
    FenceVector(w.causal_offsets, &call_.causal_offsets);
    FenceVector(w.block_table, &call_.block_table.data);
  }

  void FenceOutputs(size_t out_bytes, size_t lse_bytes) {
    out_ = call_.out.data;
    lse_ = call_.lse.data;
    out_bytes_ = out_bytes;
    lse_bytes_ = lse_bytes;
    FenceWritten(out_bytes, &call_.out.data);
    FenceWritten(lse_bytes, &call_.lse.data);
  }

  const heed_call& call() const { return call_; }

  // What was written, to where it would have been without fences.
  void CopyBack() {
    std::memcpy(out_, call_.out.data, out_bytes_);
    std::memcpy(lse_, call_.lse.data, lse_bytes_);
  }

 private:
  void Fence(size_t bytes, const void** data) {
    void* copy = const_cast<void*>(*data);
    FenceWritten(bytes, &copy);
    *data = copy;
  }
  void FenceWritten(size_t bytes, void** data) {
    if (bytes == 0) return;
    const char* from = static_cast<const char*>(*data);
    buffers_.push_back(std::make_unique<FencedBuffer<char>>(
        std::vector<char>(from, from + bytes), fence_after_));
    *data = buffers_.back()->data();
  }
  template <typename T>
  void FenceVector(const std::vector<T>& x, const T** data) {
    if (*data == nullptr) return;
    const void* copy = *data;
    Fence(x.size() * sizeof(T), &copy);
    *data = static_cast<const T*>(copy);
  }

  heed_call call_;
  bool fence_after_;
  void *out_ = nullptr, *lse_ = nullptr;
  size_t out_bytes_ = 0, lse_bytes_ = 0;
  std::vector<std::unique_ptr<FencedBuffer<char>>> buffers_;
};

TEST(RandomInfluence, NothingIsTouchedOutsideTheArraysOfACall) {
  ForEachProblem(8000000, 0.1, 0, [](uint64_t seed, const Case& c) {
    const int32_t dtype = seed % 3 == 0   ? HEED_F32
                          : seed % 3 == 1 ? HEED_F16
                                          : HEED_BF16;
    StoredCase stored;
    Result got;
    std::vector<uint16_t> words;
    heed_call call;
    if (dtype == HEED_F32) {
      stored.problem = c.problem;
      stored.widened = c;
      call = DenseCall(c, &got);
    } else {
      stored = Store(c, dtype);
      call = StoredCall(stored, &words, &got.lse);
    }
    const Result want = dtype == HEED_F32
                            ? RunRowProgram(c)
                            : Rounded(RunRowProgram(stored.widened), dtype);
    FencedCall fenced(stored, call, /*fence_after=*/seed / 3 % 2 == 0);
    fenced.FenceOutputs(
        want.out.size() * (dtype == HEED_F32 ? 4 : sizeof(uint16_t)),
        want.lse.size() * sizeof(float));
    std::string how;
    if (seed / 6 % 2 == 0) {
      const Settings settings = RandomFusedSettings(seed);
      how = NameOf(settings);
      if (RunCall(stored.problem, fenced.call(), settings) != HEED_OK) {
        return std::string(heed_last_error());
      }
    } else {
      const KernelCut cut = RandomCut(seed, stored.problem);
      how = NameOf(cut);
      RunKernels(stored.problem, fenced.call(), cut);
    }
    fenced.CopyBack();
    if (dtype != HEED_F32) got.out = ValuesOf(dtype, words);
    return Compared(got, want, std::to_string(dtype) + " " + how);
  });
}

}  // namespace
}  // namespace heed::test
