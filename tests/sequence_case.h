// One sequence of a batch of sequences of different lengths or of pages, as a
// problem of its own: dense, and computed without any of that.
#ifndef HEED_TESTS_SEQUENCE_CASE_H_
#define HEED_TESTS_SEQUENCE_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/attention_case.h"

namespace heed::test {

// Queries and keys in use of one sequence.
struct Lengths {
  int64_t len_q, len_k;
};

// How a batch's lengths are told.
enum class Told {
  kUsedKeys,  // seqused_k; q as long as the longest for all
  kPacked,    // cu_seqlens_q and cu_seqlens_k
  kPackedQ,   // cu_seqlens_q; seqused_k into k as long as the longest
};

// Two heads of widths that no tile divides.
heed_problem HeadsOf(int64_t heads_q, int64_t heads_kv,
                     int32_t causal = HEED_CAUSAL_NONE);

// Prefills and decodes, none and few and many, not in order of cost.
std::vector<Lengths> MixedLengths();

// A ragged case of these sequences with N(0, 1) data; what other options of
// `problem` ask for is filled in as well. Its sizes are set from `lengths`.
Case RaggedCase(heed_problem problem, const std::vector<Lengths>& lengths,
                Told told, uint64_t seed);

// Puts the keys of a case that is not packed into pages, permuted by `seed`;
// pages that no key is in hold NaN, entries beyond a sequence's keys are -1.
Case InPages(const Case& c, int64_t page_size, uint64_t seed);

// Sequence `batch` of a case, dense and alone.
Case SequenceAlone(const Case& c, int64_t batch);

// What a result of the whole case says of the sequence.
Result SequenceOfResult(const Case& c, const Result& whole, int64_t batch);

// Fails the test where heed's results under these settings are not those of
// each sequence alone on one thread.
void ExpectAsAlone(const Case& c, const std::vector<Settings>& settings,
                   const std::string& where);

// One thread and several, the model's tile and VariedTiles(), with tasks in
// order and on threads.
std::vector<Settings> VariedSettings();

}  // namespace heed::test

#endif  // HEED_TESTS_SEQUENCE_CASE_H_
