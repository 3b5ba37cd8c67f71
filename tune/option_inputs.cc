#include "tune/option_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "runtime/problem.h"
#include "tune/storage.h"

namespace heed {
namespace {

// One block of this many is visible.
constexpr uint32_t kBlocksPerVisible = 10;

int64_t MaxPages(const heed_problem& p) {
  return (p.len_k + p.page_size - 1) / p.page_size;
}

bool HasBlocks(const heed_problem& p) {
  return p.mask == HEED_MASK_BOOL && (p.mask_block_q > 1 || p.mask_block_k > 1);
}

}  // namespace

OptionInputs::OptionInputs(const heed_problem& problem) : problem_(problem) {
  const heed_problem& p = problem_;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int64_t h = 0; p.alibi != 0 && h < p.heads_q; ++h) {
    slopes_.push_back(std::exp2(-8.0f * static_cast<float>(h + 1) /
                                static_cast<float>(p.heads_q)));
  }
  for (int64_t h = 0; p.sinks != 0 && h < p.heads_q; ++h) {
    sinks_.push_back(normal(random));
  }
  if (p.ragged != 0) {
    for (int64_t b = 0; b < p.batch; ++b) {
      seqused_k_.push_back(
          static_cast<int32_t>(((b + 1) * p.len_k + p.batch - 1) / p.batch));
    }
    std::shuffle(seqused_k_.begin(), seqused_k_.end(), random);
    for (size_t b = 0; b < seqused_k_.size(); ++b) {
      offsets_.push_back(KeysOf(b) - p.len_q);
    }
  }
  if (p.page_size > 0) {
    block_table_.resize(static_cast<size_t>(p.batch * MaxPages(p)));
    std::iota(block_table_.begin(), block_table_.end(), 0);
    std::shuffle(block_table_.begin(), block_table_.end(), random);
  }
  if (p.mask != HEED_MASK_NONE) FillMask();
  CountPairs();
}

void OptionInputs::FillMask() {
  const heed_problem& p = problem_;
  const int64_t rows = MaskExtent(p.len_q, p.mask_block_q);
  const int64_t columns = MaskExtent(p.len_k, p.mask_block_k);
  const auto count = static_cast<size_t>(rows * columns);
  std::mt19937 random(2);
  if (p.mask == HEED_MASK_BOOL) {
    mask_.assign(count, 1);
    if (HasBlocks(p)) {
      const int64_t block_q = std::max(p.mask_block_q, 1);
      const int64_t block_k = std::max(p.mask_block_k, 1);
      for (size_t i = 0; i < count; ++i) {
        const int64_t row = static_cast<int64_t>(i) / columns;
        const int64_t own = (row * block_q + p.len_k - p.len_q) / block_k;
        mask_[i] = random() % kBlocksPerVisible == 0 ||
                   own == static_cast<int64_t>(i) % columns;
      }
    }
  } else {
    std::normal_distribution<float> normal;
    mask_f32_.resize(count);
    for (float& x : mask_f32_) x = normal(random);
    const int32_t dtype = p.mask == HEED_MASK_F32 ? HEED_F32 : p.dtype;
    mask_.resize(count * static_cast<size_t>(ElementBytes(dtype)));
    Narrow(dtype, mask_f32_.data(), count, mask_.data());
    Widen(dtype, mask_.data(), count, mask_f32_.data());
  }
  mask_view_ = {mask_.data(), 0, 0, columns, 1};
}

int64_t OptionInputs::KeysOf(size_t sequence) const {
  return seqused_k_.empty() ? problem_.len_k : seqused_k_[sequence];
}

int64_t OptionInputs::OffsetOf(size_t sequence) const {
  const heed_problem& p = problem_;
  const bool top_left = p.causal == HEED_CAUSAL_NONE
                            ? p.align == HEED_ALIGN_TOP_LEFT
                            : p.causal == HEED_CAUSAL_TOP_LEFT;
  return top_left ? 0 : KeysOf(sequence) - p.len_q;
}

int64_t OptionInputs::VisibleKeys(int64_t token, int64_t begin,
                                  int64_t end) const {
  if (!HasBlocks(problem_)) return std::max<int64_t>(end - begin, 0);
  const int64_t block_q = std::max(problem_.mask_block_q, 1);
  const int64_t block_k = std::max(problem_.mask_block_k, 1);
  const char* row =
      mask_.data() + token / block_q * MaskExtent(problem_.len_k, block_k);
  int64_t keys = 0;
  for (int64_t key = begin; key < end;) {
    const int64_t next = std::min((key / block_k + 1) * block_k, end);
    if (row[key / block_k] != 0) keys += next - key;
    key = next;
  }
  return keys;
}

void OptionInputs::CountPairs() {
  const heed_problem& p = problem_;
  double pairs = 0;
  for (size_t b = 0; b < static_cast<size_t>(p.batch); ++b) {
    const int64_t keys = KeysOf(b);
    const int64_t offset = OffsetOf(b);
    keys_in_use_ += static_cast<double>(keys);
    for (int64_t i = 0; i < p.len_q; ++i) {
      int64_t begin = 0, end = keys;
      if (p.causal != HEED_CAUSAL_NONE) end = std::min(end, i + offset + 1);
      if (p.window != 0 && p.window_left >= 0) {
        begin = std::max(begin, i + offset - p.window_left);
      }
      if (p.window != 0 && p.window_right >= 0) {
        end = std::min(end, i + offset + p.window_right + 1);
      }
      pairs += static_cast<double>(VisibleKeys(i, begin, end));
    }
  }
  visible_pairs_ = pairs * static_cast<double>(p.heads_q);
}

void OptionInputs::Describe(heed_call* call) const {
  const heed_problem& p = problem_;
  call->causal_offset = p.len_k - p.len_q;
  call->mask = mask_view_;
  if (!slopes_.empty()) call->alibi_slopes = slopes_.data();
  if (!sinks_.empty()) call->sinks = sinks_.data();
  if (!seqused_k_.empty()) {
    call->seqused_k = seqused_k_.data();
    call->causal_offsets = offsets_.data();
  }
  if (p.page_size > 0) {
    call->block_table = {block_table_.data(), MaxPages(p), MaxPages(p),
                         pages()};
  }
}

void OptionInputs::Describe(ReferenceInputs* inputs) const {
  heed_call call;
  heed_call_init(&call);
  Describe(&call);
  inputs->causal_offset = call.causal_offset;
  inputs->mask = call.mask;
  if (!mask_f32_.empty()) inputs->mask.data = mask_f32_.data();
  inputs->alibi_slopes = call.alibi_slopes;
  inputs->sinks = call.sinks;
  inputs->seqused_k = call.seqused_k;
  inputs->causal_offsets = call.causal_offsets;
  inputs->block_table = call.block_table.data;
  inputs->max_pages = call.block_table.max_pages;
}

}  // namespace heed
