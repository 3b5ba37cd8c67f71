#include "tune/head_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace heed {
namespace {

using Verdict = HeadCheck::Verdict;

Verdict HoldsIf(bool holds) {
  return holds ? Verdict::kHolds : Verdict::kFails;
}

double MeanPeak(const HeadTensors& tensors) {
  double sum = 0;
  for (int64_t head = 0; head < tensors.heads_q; ++head) {
    sum += FiguresOf(ViewOf(tensors, head)).peak;
  }
  return sum / static_cast<double>(tensors.heads_q);
}

double MeanShareAbove(const HeadTensors& tensors) {
  double sum = 0;
  for (int64_t head = 0; head < tensors.heads_q; ++head) {
    sum += ShareAbove(ViewOf(tensors, head));
  }
  return sum / static_cast<double>(tensors.heads_q);
}

HeadCheck RowsSumToOne(const HeadTensors& base) {
  double worst = 0;
  for (int64_t head = 0; head < base.heads_q; ++head) {
    const PatternView view = ViewOf(base, head);
    for (int64_t row = 0; row < base.len; ++row) {
      double sum = 0;
      for (int64_t key = 0; key < base.len; ++key) sum += view.Weight(row, key);
      worst = std::fmax(worst, std::isnan(sum) ? INFINITY : std::fabs(sum - 1));
    }
  }
  // The sum that weights are divided by is rounded once per key, the weights a
  // few times each; u = 2^-24.
  const double limit = static_cast<double>(base.len + 16) * 0x1p-24;
  return {HoldsIf(worst <= limit), "rows sum to 1",
          fmt::format("largest |sum - 1| = {:.2g} of {} rows, limit {:.2g}",
                      worst, base.heads_q * base.len, limit)};
}

HeadCheck HiddenWeightsAreZero(const HeadTensors& causal) {
  int64_t hidden = 0, wrong = 0;
  for (int64_t head = 0; head < causal.heads_q; ++head) {
    const PatternView view = ViewOf(causal, head);
    for (int64_t row = 0; row < causal.len; ++row) {
      for (int64_t key = 0; key < causal.len; ++key) {
        if (!view.IsHidden(row, key)) continue;
        ++hidden;
        wrong += view.Weight(row, key) != 0;
      }
    }
  }
  const char* what = "hidden weights are exactly 0";
  if (hidden == 0) return {Verdict::kNotTried, what, "there is one token"};
  return {HoldsIf(wrong == 0), what,
          fmt::format("{} of {} are not", wrong, hidden)};
}

// Rows (of any head) of [begin, end) that differ in any byte.
int64_t DifferentRows(const HeadTensors& a, const HeadTensors& b, int64_t begin,
                      int64_t end) {
  const std::vector<NamedTensor> all_a = AllTensors(a), all_b = AllTensors(b);
  int64_t different = 0;
  for (int64_t row = begin; row < end; ++row) {
    bool same = true;
    for (size_t i = 0; i < all_a.size(); ++i) {
      const auto heads =
          static_cast<size_t>(std::max<int64_t>(all_a[i].heads, 1));
      const size_t per_head = all_a[i].values->size() / heads;
      const size_t width = per_head / static_cast<size_t>(a.len);
      for (size_t head = 0; head < heads; ++head) {
        const size_t at = head * per_head + static_cast<size_t>(row) * width;
        same = same && std::memcmp(all_a[i].values->data() + at,
                                   all_b[i].values->data() + at,
                                   width * sizeof(float)) == 0;
      }
    }
    different += same ? 0 : 1;
  }
  return different;
}

bool ChangedTokenLeavesEarlierRows(const heed_block_desc& desc,
                                   const HeadModel& model,
                                   const HeadTensors& causal, int threads,
                                   HeadCheck* check, std::string* why) {
  check->what = "a changed token leaves the rows before it as they are";
  check->verdict = Verdict::kNotTried;
  const int64_t token = model.len / 2;
  if (token == 0) {
    check->figure = "there is one token";
    return true;
  }
  std::vector<float> x = model.x;
  const auto width = static_cast<size_t>(desc.d_model);
  for (size_t i = 0; i < width; ++i) {
    // Not a multiple of the row plus a constant, which a norm would not notice.
    float* value = &x[static_cast<size_t>(token) * width + i];
    *value = static_cast<float>(i % 3) - *value;
  }
  HeadTensors changed;
  if (!RunHead(desc, x.data(), model.len, threads, &changed, why)) return false;
  const int64_t before = DifferentRows(causal, changed, 0, token);
  const int64_t after = DifferentRows(causal, changed, token, model.len);
  check->verdict = HoldsIf(before == 0 && after > 0);
  check->figure = fmt::format(
      "with token {} changed, {} of the {} rows before it differ in a byte of "
      "any tensor, and {} of the {} from it on",
      token, before, token, after, model.len - token);
  return true;
}

bool WithoutScaleIsSharper(const HeadModel& model, const HeadTensors& base,
                           int threads, HeadCheck* check, std::string* why) {
  heed_block_desc desc = model.desc;
  desc.scale_mode = HEED_SCALE_VALUE;
  desc.scale = 1;
  check->what = "without the divisor of the scores the pattern is sharper";
  check->verdict = Verdict::kNotTried;
  if (model.desc.dim_qk < 2 ||
      (model.desc.scale_mode == HEED_SCALE_VALUE &&
       !(model.desc.scale > 0 && model.desc.scale < 1))) {
    check->figure = "the scores are not divided";
    return true;
  }
  HeadTensors tensors;
  if (!RunHead(desc, model.x.data(), model.len, threads, &tensors, why)) {
    return false;
  }
  const double before = MeanPeak(base), after = MeanPeak(tensors);
  check->verdict = model.len < 2 ? Verdict::kNotTried : HoldsIf(after > before);
  check->figure =
      fmt::format("mean peak {:.4f} with it, {:.4f} without", before, after);
  return true;
}

// The largest difference between the queries of tokens 0 and len - 1, which
// are the same token.
bool QueryDifference(heed_block_desc desc, bool rope, const HeadModel& model,
                     const std::vector<float>& x, int threads, double* most,
                     std::string* why) {
  if (!rope) {
    desc.rope = HEED_ROPE_NONE;
  } else if (desc.rope == HEED_ROPE_NONE) {
    desc.rope = HEED_ROPE_HALF;
    desc.rope_width = desc.dim_qk - desc.dim_qk % 2;
    desc.rope_theta = 10000;
  }
  HeadTensors tensors;
  if (!RunHead(desc, x.data(), model.len, threads, &tensors, why)) return false;
  *most = 0;
  const auto dim = static_cast<size_t>(desc.dim_qk);
  const auto len = static_cast<size_t>(model.len);
  for (size_t head = 0; head < static_cast<size_t>(desc.heads_q); ++head) {
    const float* first = tensors.q.data() + head * len * dim;
    const float* last = first + (len - 1) * dim;
    for (size_t i = 0; i < dim; ++i) {
      *most = std::fmax(*most, std::fabs(first[i] - last[i]));
    }
  }
  return true;
}

bool PositionIsRopeAlone(const HeadModel& model, int threads, HeadCheck* check,
                         std::string* why) {
  check->what = "a token at two places has one query without RoPE, two with it";
  check->verdict = Verdict::kNotTried;
  if (model.len < 2 || model.desc.dim_qk < 2) {
    check->figure = model.len < 2 ? "there is one token" : "heads are 1 wide";
    return true;
  }
  std::vector<float> x = model.x;
  const auto width = static_cast<size_t>(model.desc.d_model);
  std::copy_n(x.begin(), width, x.end() - static_cast<ptrdiff_t>(width));
  double without, with;
  if (!QueryDifference(model.desc, false, model, x, threads, &without, why) ||
      !QueryDifference(model.desc, true, model, x, threads, &with, why)) {
    return false;
  }
  check->verdict = HoldsIf(without == 0 && with > 0);
  check->figure = fmt::format(
      "row 0 also at place {}: largest difference of the queries {:.3g} "
      "without, {:.3g} with RoPE{}",
      model.len - 1, without, with,
      model.desc.rope == HEED_ROPE_NONE
          ? " (theta 10000, put on: the model has none)"
          : "");
  return true;
}

HeadCheck NoMaskFillsTheTriangle(const HeadTensors& causal,
                                 const HeadTensors& open) {
  const char* what = "without a mask the upper triangle is filled";
  if (causal.len < 2) return {Verdict::kNotTried, what, "there is one token"};
  const double with = MeanShareAbove(causal), without = MeanShareAbove(open);
  return {HoldsIf(with == 0 && without > 0), what,
          fmt::format("weight on later keys, a row's mean: {:.4f} without a "
                      "mask, {} with one",
                      without, with)};
}

}  // namespace

PatternView ViewOf(const HeadTensors& tensors, int64_t head) {
  const int64_t at = head * tensors.len * tensors.len;
  return {tensors.pattern.data() + at, tensors.scores.data() + at, tensors.len};
}

const char* VerdictName(HeadCheck::Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "holds";
    case Verdict::kFails:
      return "FAILS";
    case Verdict::kNotTried:
      break;
  }
  return "not tried";
}

bool CheckHead(const HeadModel& model, const HeadTensors& base, int threads,
               std::vector<HeadCheck>* checks, std::string* why) {
  // The block as it is, and with the mask put on or taken off.
  const bool is_causal = model.desc.causal != 0;
  heed_block_desc causal_desc = model.desc, other_desc = model.desc;
  causal_desc.causal = 1;
  other_desc.causal = is_causal ? 0 : 1;
  other_desc.window = 0;
  HeadTensors other;
  if (!RunHead(other_desc, model.x.data(), model.len, threads, &other, why)) {
    return false;
  }
  const HeadTensors& causal = is_causal ? base : other;
  const HeadTensors& open = is_causal ? other : base;
  HeadCheck hidden = HiddenWeightsAreZero(causal);
  HeadCheck changed, sharper, rope;
  if (!ChangedTokenLeavesEarlierRows(causal_desc, model, causal, threads,
                                     &changed, why) ||
      !WithoutScaleIsSharper(model, base, threads, &sharper, why) ||
      !PositionIsRopeAlone(model, threads, &rope, why)) {
    return false;
  }
  if (!is_causal) {
    for (HeadCheck* check : {&hidden, &changed}) {
      check->figure += " (with a causal mask put on)";
    }
  }
  *checks = {RowsSumToOne(base),
             hidden,
             changed,
             sharper,
             rope,
             NoMaskFillsTheTriangle(causal, open)};
  return true;
}

}  // namespace heed
