// What a problem asks of a call beside q, k and v, made up for timing: mask,
// slopes, sinks, lengths, pages.
#ifndef HEED_TUNE_OPTION_INPUTS_H_
#define HEED_TUNE_OPTION_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/include/heed.h"
#include "tune/reference.h"

namespace heed {

// The same for the same problem.
//   mask      of bytes: all keys visible, which is the most there is to look
//             at and nothing to skip; of blocks: the block of each row's own
//             keys and every tenth other one, at random. Of numbers: N(0, 1).
//             One for all sequences and heads.
//   slopes    2^(-8 (h + 1) / heads_q) (Press, Smith and Lewis 2022)
//   sinks     N(0, 1)
//   lengths   the keys in use of the sequences of a batch: even steps up to
//             len_k, in random order. All queries are there.
//   offsets   len_k - len_q, or keys in use - len_q
//   pages     each in one place, in random order
class OptionInputs {
 public:
  explicit OptionInputs(const heed_problem& problem);

  // Pages that k and v need; 0 without pages.
  int64_t pages() const { return static_cast<int64_t>(block_table_.size()); }

  // Sets all of `call` but tensors and workspace; `this` must outlive it.
  void Describe(heed_call* call) const;
  // The same for the reference, but q, k and v.
  void Describe(ReferenceInputs* inputs) const;

  // Pairs of a query row and a key that it sees, over batch and query heads.
  double visible_pairs() const { return visible_pairs_; }
  // Keys in use, over the batch.
  double keys_in_use() const { return keys_in_use_; }
  // The mask's bytes, which a call reads at least once.
  size_t mask_bytes() const { return mask_.size(); }

 private:
  int64_t KeysOf(size_t sequence) const;
  int64_t OffsetOf(size_t sequence) const;
  int64_t VisibleKeys(int64_t token, int64_t begin, int64_t end) const;
  void FillMask();
  void CountPairs();

  heed_problem problem_;
  std::vector<char> mask_;       // elements of the problem's kind of mask
  std::vector<float> mask_f32_;  // of numbers: the same for the reference
  heed_input mask_view_ = {};
  std::vector<float> slopes_, sinks_;
  std::vector<int32_t> seqused_k_;
  std::vector<int64_t> offsets_;
  std::vector<int32_t> block_table_;
  double visible_pairs_ = 0, keys_in_use_ = 0;
};

}  // namespace heed

#endif  // HEED_TUNE_OPTION_INPUTS_H_
