// Random problems over everything a call can say, all options together: the
// scalar row program judges the bits, the definition in double precision judges
// both.
#include "tests/random_problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/kernel_call.h"
#include "tests/reference.h"
#include "tests/row_program.h"
#include "tests/stored_case.h"

namespace heed::test {
namespace {

TEST(RandomProblems, HeedGivesTheBitsOfTheRowProgram) {
  ForEachProblem(1000000, 0.25, 0, [](uint64_t seed, const Case& c) {
    const Settings settings = RandomFusedSettings(seed);
    return Compared(RunHeed(c, settings), RunRowProgram(c), NameOf(settings));
  });
}

TEST(RandomProblems, EveryPathOfTheKernelsGivesTheBitsOfTheRowProgram) {
  ForEachProblem(2000000, 0.25, 0, [](uint64_t seed, const Case& c) {
    const KernelCut cut = RandomCut(seed, c.problem);
    return Compared(RunKernels(c, cut), RunRowProgram(c), NameOf(cut));
  });
}

TEST(RandomProblems, SixteenBitCallsGiveTheRoundedBitsOfTheRowProgram) {
  ForEachProblem(3000000, 0.2, 0, [](uint64_t seed, const Case& c) {
    const StoredCase stored = Store(c, kStoredDtypes[seed % 2]);
    const Result want =
        Rounded(RunRowProgram(stored.widened), stored.problem.dtype);
    if (seed / 2 % 2 == 0) {
      const Settings settings = RandomFusedSettings(seed);
      return Compared(
          RunStored(stored, settings), want,
          std::to_string(stored.problem.dtype) + " " + NameOf(settings));
    }
    const KernelCut cut = RandomCut(seed, stored.problem);
    return Compared(RunStored(stored, cut), want,
                    std::to_string(stored.problem.dtype) + " " + NameOf(cut));
  });
}

// The definition, in double precision; also of targets that have other bits.
TEST(RandomProblems, EveryTargetIsWithinTheDerivedBound) {
  const std::vector<std::string> targets = TargetNames(false);
  ForEachProblem(4000000, 0.1, kModerate, [&](uint64_t seed, const Case& c) {
    Settings settings = RandomSettings(seed);
    settings.target = targets[seed % targets.size()];
    Result result;
    const heed_call call = DenseCall(c, &result);
    if (RunCall(c.problem, call, settings) != HEED_OK) {
      return std::string(heed_last_error());
    }
    const std::string found = FirstOutOfBound(c.problem, call);
    return found.empty() ? "" : NameOf(settings) + ": " + found;
  });
}

// What judges the rest is itself judged by the definition.
TEST(RandomProblems, RowProgramIsWithinTheDerivedBound) {
  ForEachProblem(5000000, 0.05, kModerate, [](uint64_t, const Case& c) {
    Result result;
    const heed_call call = DenseCall(c, &result);
    RowProgramAttention(c.problem, call);
    return FirstOutOfBound(c.problem, call);
  });
}

// One token of one sequence of a call, as a decode step would ask for it; the
// keys keep their numbers.
void NarrowToToken(const RowPlace& place, heed_problem* p, heed_call* call) {
  const int64_t b = place.batch;
  const auto move = [](heed_input* x, int64_t elements, size_t bytes) {
    x->data = static_cast<const char*>(x->data) +
              elements * static_cast<int64_t>(bytes);
  };
  int64_t len_q = p->len_q, used_k = p->len_k, first_q = 0, batch_q = b;
  if (call->cu_seqlens_q != nullptr) {
    first_q = call->cu_seqlens_q[b];
    len_q = call->cu_seqlens_q[b + 1] - first_q;
    batch_q = 0;
    call->cu_seqlens_q = nullptr;
  }
  move(&call->q,
       batch_q * call->q.stride_batch +
           (first_q + place.token) * call->q.stride_token,
       sizeof(float));
  if (p->page_size > 0) {
    call->block_table.data += b * call->block_table.stride_batch;
  } else {
    for (heed_input* x : {&call->k, &call->v}) {
      move(x,
           call->cu_seqlens_k != nullptr
               ? call->cu_seqlens_k[b] * x->stride_token
               : b * x->stride_batch,
           sizeof(float));
    }
  }
  if (call->cu_seqlens_k != nullptr) {
    used_k = p->len_k = call->cu_seqlens_k[b + 1] - call->cu_seqlens_k[b];
    call->cu_seqlens_k = nullptr;
  }
  if (call->seqused_k != nullptr) used_k = *(call->seqused_k += b);
  const int32_t align = p->causal != HEED_CAUSAL_NONE ? p->causal : p->align;
  int64_t offset = 0;
  if (align == HEED_ALIGN_BOTTOM_RIGHT) offset = used_k - len_q;
  if (align == HEED_ALIGN_OFFSET) {
    offset = call->causal_offsets != nullptr ? call->causal_offsets[b]
                                             : call->causal_offset;
  }
  call->causal_offsets = nullptr;
  call->causal_offset = offset + place.token;
  if (p->causal != HEED_CAUSAL_NONE) p->causal = HEED_CAUSAL_OFFSET;
  if (p->align != 0) p->align = HEED_ALIGN_OFFSET;
  if (p->mask != HEED_MASK_NONE) {
    const int64_t mask_row = place.token / std::max(p->mask_block_q, 1);
    move(&call->mask,
         b * call->mask.stride_batch + mask_row * call->mask.stride_token,
         p->mask == HEED_MASK_BOOL ? 1 : sizeof(float));
  }
  p->batch = p->len_q = 1;
}

TEST(RandomProblems, EachTokenAloneHasTheBitsItHasInTheWholeCall) {
  ForEachProblem(7000000, 0.05, 0, [](uint64_t seed, const Case& c) {
    Result whole;
    RowPlace place;
    if (!RandomRow(seed, c, &whole, &place)) return std::string();
    const Settings settings = RandomFusedSettings(seed);
    const heed_call call = DenseCall(c, &whole);
    if (RunCall(c.problem, call, settings) != HEED_OK) {
      return std::string(heed_last_error());
    }
    heed_problem p = c.problem;
    heed_call alone = call;
    NarrowToToken(place, &p, &alone);
    Result got, want;
    got.out.resize(static_cast<size_t>(p.heads_q * p.dim_v) + 1);
    got.lse.resize(static_cast<size_t>(p.heads_q));
    alone.out = heed_dense_output(got.out.data(), p.heads_q, 1, p.dim_v);
    alone.lse = heed_dense_output(got.lse.data(), p.heads_q, 1, 1);
    if (RunCall(p, alone, RandomFusedSettings(seed + 1)) != HEED_OK) {
      return std::string(heed_last_error());
    }
    want = got;
    ForEachRow(c.problem, call, [&](const RowPlace& row) {
      if (row.batch != place.batch || row.token != place.token) return;
      std::copy_n(row.out, p.dim_v, want.out.begin() + row.head * p.dim_v);
      want.lse[row.head] = *row.lse;
    });
    return Compared(got, want,
                    "token " + std::to_string(place.token) + " of batch " +
                        std::to_string(place.batch));
  });
}

// That the generator makes what it is to make. The 20000 problems mean nothing
// where it does not.
TEST(RandomProblems, CoverEveryOptionAndKindOfRow) {
  std::set<std::string> seen;
  for (uint64_t seed = 1000000; seed < 1003000; ++seed) {
    const Case c = RandomCase(seed);
    const heed_problem& p = c.problem;
    const auto note = [&seen](bool holds, const std::string& what) {
      if (holds) seen.insert(what);
    };
    const auto number = [](int64_t x) { return std::to_string(x); };
    seen.insert("causal " + number(p.causal));
    seen.insert("align " + number(p.align));
    seen.insert("mask " + number(p.mask));
    seen.insert("group " + number(p.heads_q / p.heads_kv));
    for (const int64_t dim : {15, 40, 72, 80}) {
      note(p.dim_qk == dim, "dim_qk " + number(dim));
      note(p.dim_v == dim, "dim_v " + number(dim));
    }
    note(p.window != 0 && p.window_left < 0, "window without a left side");
    note(p.window != 0 && p.window_right < 0, "window without a right side");
    note(p.window != 0 && p.window_right > 0 && p.causal == 0,
         "window beyond the diagonal");
    note(p.softcap != 0 && p.alibi != 0 && p.mask > HEED_MASK_BOOL &&
             p.sinks != 0 && p.window != 0,
         "all that changes a score");
    note(!c.cu_seqlens_q.empty() && !c.cu_seqlens_k.empty() &&
             !c.seqused_k.empty(),
         "all lengths");
    note(p.page_size > 0 && !c.seqused_k.empty(), "pages with lengths");
    note(p.page_size > 0 && c.num_pages < p.batch * c.max_pages,
         "shared pages");
    note(!c.causal_offsets.empty(), "offsets of their own");
    note(c.mask.batch == 1 && c.mask.heads > 1 && c.mask.len_q == 1,
         "mask by head alone");
    note(c.mask.batch > 1 && c.mask.heads > 1 && c.mask.len_q > 1,
         "mask without broadcast");
    note(p.mask_block_q > 1 && p.mask_block_k > 1 && c.mask.len_q > 1,
         "mask of blocks");
    note(p.len_q > 48, "prefill");
    note(p.len_k == 0, "no keys");
    Result ignored;
    const heed_call call = DenseCall(c, &ignored);
    ForEachRow(p, call, [&](const RowPlace& place) {
      const Row row = RowOf(p, call, place.batch, place.head, place.token);
      const bool masked = row.visible != nullptr || row.added != nullptr;
      int64_t first = -1, count = 0;
      for (int64_t key = row.begin; key < row.end; ++key) {
        if (!row.Sees(key)) continue;
        if (first < 0) first = key;
        ++count;
      }
      note(count == 0 && row.begin < row.end, "row that the mask empties");
      note(count == 0 && row.begin >= row.end, "row without a range");
      note(count == 0 && row.sink != nullptr, "empty row with a sink");
      note(count > 0 && masked && first >= 96, "long hidden beginning");
      note(count > 0 && masked && first >= 768, "hidden first chunk");
      note(count > 0 && row.begin >= 48 && p.window != 0,
           "window that leaves a step out");
      note(row.end > 1536 && count > 0, "three chunks");
    });
  }
  const char* wanted[] = {"causal 0",
                          "causal 1",
                          "causal 2",
                          "causal 3",
                          "align 1",
                          "align 2",
                          "align 3",
                          "mask 0",
                          "mask 1",
                          "mask 2",
                          "mask 3",
                          "group 1",
                          "group 2",
                          "group 3",
                          "group 4",
                          "group 5",
                          "group 7",
                          "group 8",
                          "dim_qk 15",
                          "dim_qk 40",
                          "dim_qk 72",
                          "dim_qk 80",
                          "dim_v 15",
                          "dim_v 40",
                          "dim_v 72",
                          "dim_v 80",
                          "window without a left side",
                          "window without a right side",
                          "window beyond the diagonal",
                          "all that changes a score",
                          "all lengths",
                          "pages with lengths",
                          "shared pages",
                          "offsets of their own",
                          "mask by head alone",
                          "mask without broadcast",
                          "mask of blocks",
                          "prefill",
                          "no keys",
                          "row that the mask empties",
                          "row without a range",
                          "empty row with a sink",
                          "long hidden beginning",
                          "hidden first chunk",
                          "window that leaves a step out",
                          "three chunks"};
  for (const char* what : wanted) EXPECT_EQ(seen.count(what), 1u) << what;
}

}  // namespace
}  // namespace heed::test
