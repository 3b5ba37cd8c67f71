#include "tests/sequence_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/input_families.h"

namespace heed::test {
namespace {

Lengths LengthsOf(const Case& c, int64_t b) {
  Lengths lengths = {c.problem.len_q, c.problem.len_k};
  if (!c.cu_seqlens_q.empty()) {
    lengths.len_q = c.cu_seqlens_q[b + 1] - c.cu_seqlens_q[b];
  }
  if (!c.cu_seqlens_k.empty()) {
    lengths.len_k = c.cu_seqlens_k[b + 1] - c.cu_seqlens_k[b];
  }
  if (!c.seqused_k.empty()) lengths.len_k = c.seqused_k[b];
  return lengths;
}

// Element (batch, head, token, 0) of a tensor of floats.
template <typename Tensor>
const float* At(const Tensor& x, int64_t batch, int64_t head, int64_t token) {
  return static_cast<const float*>(x.data) + batch * x.stride_batch +
         head * x.stride_head + token * x.stride_token;
}

// Appends a row of `dim` elements.
void Take(const float* row, int64_t dim, std::vector<float>* to) {
  to->insert(to->end(), row, row + dim);
}

const float* KeyRow(const Case& c, const heed_input& x, int64_t b, int64_t head,
                    int64_t key) {
  if (c.problem.page_size > 0) {
    const int64_t size = c.problem.page_size;
    const int32_t page = c.block_table[b * c.max_pages + key / size];
    return At(x, page, head, key % size);
  }
  if (!c.cu_seqlens_k.empty()) return At(x, 0, head, c.cu_seqlens_k[b] + key);
  return At(x, b, head, key);
}

template <typename Element>
std::vector<Element> TakeMask(const CaseMask& mask,
                              const std::vector<Element>& from, int64_t b,
                              int64_t len_q, int64_t len_k) {
  std::vector<Element> to;
  for (int64_t h = 0; h < mask.heads; ++h) {
    for (int64_t i = 0; i < len_q; ++i) {
      const int64_t row =
          ((mask.batch == 1 ? 0 : b) * mask.heads + h) * mask.len_q +
          (mask.len_q == 1 ? 0 : i);
      to.insert(to.end(), from.begin() + row * mask.room,
                from.begin() + row * mask.room + len_k);
    }
  }
  return to;
}

void FillMask(Random* random, Case* c) {
  const heed_problem& p = c->problem;
  if (p.mask == HEED_MASK_NONE) return;
  CaseMask& mask = c->mask;
  mask.batch = p.batch;
  mask.heads = p.heads_q;
  mask.len_q = p.len_q;
  mask.room = p.len_k + 3;
  const auto count =
      static_cast<size_t>(mask.batch * mask.heads * mask.len_q * mask.room);
  for (size_t i = 0; i < count; ++i) {
    const bool hidden = random->Below(4) == 0;
    mask.bytes.push_back(hidden ? 0 : static_cast<uint8_t>(i % 255 + 1));
    mask.values.push_back(hidden ? -HUGE_VALF : random->Normal());
  }
  if (p.mask == HEED_MASK_BOOL) {
    mask.values.clear();
  } else {
    mask.bytes.clear();
  }
}

void FillHeads(Random* random, Case* c) {
  const auto heads = static_cast<size_t>(c->problem.heads_q);
  if (c->problem.alibi != 0) {
    c->slopes.resize(heads);
    for (float& x : c->slopes) x = random->Normal() / 8;
  }
  if (c->problem.sinks != 0) {
    c->sinks.resize(heads);
    random->FillNormal(&c->sinks);
  }
}

}  // namespace

heed_problem HeadsOf(int64_t heads_q, int64_t heads_kv, int32_t causal) {
  return MakeProblem(0, heads_q, heads_kv, 0, 0, 24, 17, causal);
}

std::vector<Lengths> MixedLengths() {
  return {{1, 40},  {130, 130}, {0, 7},   {3, 0},    {1, 1000},
          {70, 95}, {1, 1},     {2, 801}, {17, 130}, {0, 0}};
}

Case RaggedCase(heed_problem problem, const std::vector<Lengths>& lengths,
                Told told, uint64_t seed) {
  problem.ragged = 1;
  problem.batch = static_cast<int64_t>(lengths.size());
  problem.len_q = problem.len_k = 0;
  std::vector<int32_t> ends_q = {0}, ends_k = {0}, used;
  for (const Lengths& sequence : lengths) {
    problem.len_q = std::max(problem.len_q, sequence.len_q);
    problem.len_k = std::max(problem.len_k, sequence.len_k);
    ends_q.push_back(ends_q.back() + static_cast<int32_t>(sequence.len_q));
    ends_k.push_back(ends_k.back() + static_cast<int32_t>(sequence.len_k));
    used.push_back(static_cast<int32_t>(sequence.len_k));
  }
  Case c;
  c.problem = problem;
  if (told != Told::kUsedKeys) c.cu_seqlens_q = ends_q;
  if (told == Told::kPacked) {
    c.cu_seqlens_k = ends_k;
  } else {
    c.seqused_k = used;
  }
  SizeInputs(&c);
  Random random(seed);
  random.FillNormal(&c.q);
  random.FillNormal(&c.k);
  random.FillNormal(&c.v);
  FillHeads(&random, &c);
  FillMask(&random, &c);
  return c;
}

Case InPages(const Case& c, int64_t page_size, uint64_t seed) {
  Case paged = c;
  const heed_problem& p = c.problem;
  paged.problem.page_size = page_size;
  paged.max_pages = (p.len_k + page_size - 1) / page_size + 1;
  std::vector<int64_t> pages_of;
  int64_t pages = 0;
  for (int64_t b = 0; b < p.batch; ++b) {
    pages_of.push_back((LengthsOf(c, b).len_k + page_size - 1) / page_size);
    pages += pages_of.back();
  }
  // Two more than are in use.
  paged.num_pages = pages + 2;
  std::vector<int32_t> order(static_cast<size_t>(paged.num_pages));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(
        order[i - 1],
        order[static_cast<size_t>(random.Below(static_cast<int64_t>(i)))]);
  }
  paged.block_table.assign(static_cast<size_t>(p.batch * paged.max_pages), -1);
  SizeInputs(&paged);
  std::fill(paged.k.begin(), paged.k.end(), std::nanf(""));
  std::fill(paged.v.begin(), paged.v.end(), std::nanf(""));
  Result ignored;
  const heed_call from = DenseCall(c, &ignored);
  size_t next = 0;
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t entry = 0; entry < pages_of[b]; ++entry) {
      paged.block_table[b * paged.max_pages + entry] = order[next++];
    }
    const heed_call to = DenseCall(paged, &ignored);
    for (int64_t h = 0; h < p.heads_kv; ++h) {
      for (int64_t key = 0; key < LengthsOf(c, b).len_k; ++key) {
        std::copy_n(KeyRow(c, from.k, b, h, key), p.dim_qk,
                    const_cast<float*>(KeyRow(paged, to.k, b, h, key)));
        std::copy_n(KeyRow(c, from.v, b, h, key), p.dim_v,
                    const_cast<float*>(KeyRow(paged, to.v, b, h, key)));
      }
    }
  }
  return paged;
}

Case SequenceAlone(const Case& c, int64_t b) {
  const Lengths lengths = LengthsOf(c, b);
  Case alone;
  alone.problem = c.problem;
  alone.problem.batch = 1;
  alone.problem.len_q = lengths.len_q;
  alone.problem.len_k = lengths.len_k;
  alone.problem.ragged = 0;
  alone.problem.page_size = 0;
  alone.causal_offset =
      c.causal_offsets.empty() ? c.causal_offset : c.causal_offsets[b];
  alone.slopes = c.slopes;
  alone.sinks = c.sinks;
  alone.mask = c.mask;
  alone.mask.batch = 1;
  alone.mask.len_q = lengths.len_q;
  alone.mask.room = lengths.len_k;
  if (!c.mask.bytes.empty()) {
    alone.mask.bytes =
        TakeMask(c.mask, c.mask.bytes, b, lengths.len_q, lengths.len_k);
  }
  if (!c.mask.values.empty()) {
    alone.mask.values =
        TakeMask(c.mask, c.mask.values, b, lengths.len_q, lengths.len_k);
  }
  Result ignored;
  const heed_call call = DenseCall(c, &ignored);
  const bool packed = !c.cu_seqlens_q.empty();
  for (int64_t h = 0; h < c.problem.heads_q; ++h) {
    for (int64_t i = 0; i < lengths.len_q; ++i) {
      Take(At(call.q, packed ? 0 : b, h, packed ? c.cu_seqlens_q[b] + i : i),
           c.problem.dim_qk, &alone.q);
    }
  }
  for (int64_t h = 0; h < c.problem.heads_kv; ++h) {
    for (int64_t key = 0; key < lengths.len_k; ++key) {
      Take(KeyRow(c, call.k, b, h, key), c.problem.dim_qk, &alone.k);
      Take(KeyRow(c, call.v, b, h, key), c.problem.dim_v, &alone.v);
    }
  }
  return alone;
}

Result SequenceOfResult(const Case& c, const Result& whole, int64_t b) {
  Result ignored;
  heed_call call = DenseCall(c, &ignored);
  call.out.data = const_cast<float*>(whole.out.data());
  call.lse.data = const_cast<float*>(whole.lse.data());
  Result part;
  part.status = whole.status;
  part.error = whole.error;
  const bool packed = !c.cu_seqlens_q.empty();
  for (int64_t h = 0; h < c.problem.heads_q; ++h) {
    for (int64_t i = 0; i < LengthsOf(c, b).len_q; ++i) {
      const int64_t token = packed ? c.cu_seqlens_q[b] + i : i;
      Take(At(call.out, packed ? 0 : b, h, token), c.problem.dim_v, &part.out);
      Take(At(call.lse, packed ? 0 : b, h, token), 1, &part.lse);
    }
  }
  return part;
}

void ExpectAsAlone(const Case& c, const std::vector<Settings>& all,
                   const std::string& where) {
  std::vector<Result> alone;
  Settings baseline;
  baseline.runner = SerialRunner();
  for (int64_t b = 0; b < c.problem.batch; ++b) {
    alone.push_back(RunHeed(SequenceAlone(c, b), baseline));
    ASSERT_EQ(alone.back().status, HEED_OK) << alone.back().error;
  }
  for (const Settings& settings : all) {
    const Result whole = RunHeed(c, settings);
    ASSERT_EQ(whole.status, HEED_OK) << whole.error;
    for (int64_t b = 0; b < c.problem.batch; ++b) {
      ASSERT_EQ(Difference(SequenceOfResult(c, whole, b), alone[b]), "")
          << where << " " << NameOf(c) << " " << NameOf(settings)
          << " sequence " << b;
    }
  }
}

std::vector<Settings> VariedSettings() {
  std::vector<Settings> all;
  for (const heed_runner* runner :
       {DefaultRunner(), SerialRunner(), ThreadRunner()}) {
    for (const int threads : {1, 2, 5}) {
      Settings settings;
      settings.threads = threads;
      settings.runner = runner;
      all.push_back(settings);
    }
  }
  for (const int threads : {1, 3}) {
    for (const heed_tile& tile : VariedTiles()) {
      Settings settings;
      settings.threads = threads;
      settings.pinned = true;
      settings.tile = tile;
      all.push_back(settings);
    }
  }
  return all;
}

}  // namespace heed::test
