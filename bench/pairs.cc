#include "bench/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/interleaved.h"

namespace heed {
namespace {

constexpr double kAlpha = 0.05;

struct OptionPair {
  const char* name;
  const char* with;  // {} is the head width
  const char* base;
};

// Two heads, so that two threads have something to share.
const OptionPair kOptionPairs[] = {
    {"causal / not", "b1_hq2_hkv2_q4096_k4096_d{}_causal_f32",
     "b1_hq2_hkv2_q4096_k4096_d{}_f32"},
    {"mask of bytes, all visible",
     "b1_hq2_hkv2_q4096_k4096_d{}_causal_maskbool_f32",
     "b1_hq2_hkv2_q4096_k4096_d{}_causal_f32"},
    {"mask of numbers", "b1_hq2_hkv2_q4096_k4096_d{}_causal_maskf32_f32",
     "b1_hq2_hkv2_q4096_k4096_d{}_causal_f32"},
    {"soft cap", "b1_hq2_hkv2_q4096_k4096_d{}_causal_cap30_f32",
     "b1_hq2_hkv2_q4096_k4096_d{}_causal_f32"},
    {"ALiBi", "b1_hq2_hkv2_q4096_k4096_d{}_causal_alibi_f32",
     "b1_hq2_hkv2_q4096_k4096_d{}_causal_f32"},
    {"sinks", "b1_hq2_hkv2_q4096_k4096_d{}_causal_sinks_f32",
     "b1_hq2_hkv2_q4096_k4096_d{}_causal_f32"},
    {"window of 256 of 8192 / causal",
     "b1_hq2_hkv2_q8192_k8192_d{}_causal_win255x0_f32",
     "b1_hq2_hkv2_q8192_k8192_d{}_causal_f32"},
    {"window of 128, 8192 / 4096",
     "b1_hq2_hkv2_q8192_k8192_d{}_causal_win127x0_f32",
     "b1_hq2_hkv2_q4096_k4096_d{}_causal_win127x0_f32"},
    {"a tenth of blocks of 64 / dense",
     "b1_hq2_hkv2_q8192_k8192_d{}_maskbool64x64_f32",
     "b1_hq2_hkv2_q8192_k8192_d{}_f32"},
    {"f16 / f32", "b1_hq2_hkv2_q4096_k4096_d{}_causal_f16",
     "b1_hq2_hkv2_q4096_k4096_d{}_causal_f32"},
    {"bf16 / f32", "b1_hq2_hkv2_q4096_k4096_d{}_causal_bf16",
     "b1_hq2_hkv2_q4096_k4096_d{}_causal_f32"},
    {"decoding from pages of 16", "b1_hq32_hkv8_q1_k4096_d{}_page16_f32",
     "b1_hq32_hkv8_q1_k4096_d{}_f32"},
};

bool ParseProblem(const std::string& item, NamedProblem* problem,
                  std::string* why) {
  std::vector<NamedProblem> shapes;
  if (!ParseShapeList(item, &shapes, why)) return false;
  if (shapes.size() != 1) {
    *why = "'" + item + "' is a list; expected one shape";
    return false;
  }
  *problem = shapes[0];
  return true;
}

bool IsQuiet(const PairRound& round, double best_canary) {
  Round gate;
  gate.canary_before = round.canary_before;
  gate.canary_after = round.canary_after;
  return heed::IsQuiet(gate, best_canary);
}

PairRound MeasureRound(Roof* roof, AttentionRun* base, int base_calls,
                       AttentionRun* with, int with_calls) {
  PairRound round;
  round.canary_before = roof->CanaryRate();
  round.base_seconds[0] = TimeCalls([=] { base->Run(); }, base_calls);
  round.with_seconds[0] = TimeCalls([=] { with->Run(); }, with_calls);
  round.with_seconds[1] = TimeCalls([=] { with->Run(); }, with_calls);
  round.base_seconds[1] = TimeCalls([=] { base->Run(); }, base_calls);
  round.canary_after = roof->CanaryRate();
  return round;
}

bool MeasurePair(const BenchOptions& options, const BenchTarget& target,
                 BenchContext* context, PairRow* row, std::string* why) {
  const size_t last_level = LastLevelBytes(ThisMachine());
  AttentionCase base_case(row->pair.base, last_level);
  AttentionCase with_case(row->pair.with, last_level);
  AttentionRun base(&base_case, target.name, row->threads);
  AttentionRun with(&with_case, target.name, row->threads);
  for (AttentionRun* run : {&base, &with}) {
    const std::string wrong = run->Verify();
    if (wrong.empty()) continue;
    *why = row->pair.name + ": " + wrong;
    return false;
  }
  row->flop_ratio = with_case.flops() / base_case.flops();
  const int base_calls = CallsFor([&base] { base.Run(); }, kSampleSeconds);
  const int with_calls = CallsFor([&with] { with.Run(); }, kSampleSeconds);
  Roof& roof = context->RoofOf(target, row->threads);
  const double start = Now();
  int quiet = 0;
  while (row->rounds.size() < RoundsNeeded(kAlpha) ||
         (quiet < options.rounds && Now() - start < options.seconds)) {
    row->rounds.push_back(
        MeasureRound(&roof, &base, base_calls, &with, with_calls));
    if (IsQuiet(row->rounds.back(), roof.best_canary())) ++quiet;
  }
  return true;
}

Interval Exp(const Interval& log) {
  return {std::exp(log.low), std::exp(log.median), std::exp(log.high)};
}

}  // namespace

bool ParsePairs(const std::string& list, std::vector<ProblemPair>* pairs,
                std::string* why) {
  pairs->clear();
  if (list == "options") {
    for (const int dim : {64, 128}) {
      for (const OptionPair& option : kOptionPairs) {
        ProblemPair pair;
        pair.name = fmt::format("{}, D {}", option.name, dim);
        if (!ParseProblem(fmt::format(fmt::runtime(option.with), dim),
                          &pair.with, why) ||
            !ParseProblem(fmt::format(fmt::runtime(option.base), dim),
                          &pair.base, why)) {
          return false;
        }
        pairs->push_back(pair);
      }
    }
    return true;
  }
  size_t begin = 0;
  while (begin <= list.size()) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string item = list.substr(begin, end - begin);
    begin = end + 1;
    const size_t slash = item.find('/');
    ProblemPair pair;
    pair.name = item;
    *why = "expected options or WITH/BASE";
    if (slash == std::string::npos ||
        !ParseProblem(item.substr(0, slash), &pair.with, why) ||
        !ParseProblem(item.substr(slash + 1), &pair.base, why)) {
      *why = "'" + item + "': " + *why;
      return false;
    }
    pairs->push_back(pair);
  }
  return true;
}

PairSummary SummarizePair(const PairRow& row) {
  PairSummary summary;
  std::vector<double> ratios, noise, base, with;
  for (const PairRound& round : row.rounds) {
    if (!IsQuiet(round, row.best_canary)) {
      ++summary.dropped;
      continue;
    }
    const double base_sum = round.base_seconds[0] + round.base_seconds[1];
    const double with_sum = round.with_seconds[0] + round.with_seconds[1];
    ratios.push_back(std::log(with_sum / base_sum));
    noise.push_back(std::log(round.base_seconds[1] / round.base_seconds[0]));
    base.insert(base.end(), {round.base_seconds[0], round.base_seconds[1]});
    with.insert(with.end(), {round.with_seconds[0], round.with_seconds[1]});
  }
  summary.kept = static_cast<int>(ratios.size());
  if (ratios.empty()) return summary;
  summary.ratio = Exp(MedianInterval(ratios, kAlpha));
  summary.noise = Exp(MedianInterval(noise, kAlpha));
  summary.min_ratio = *std::min_element(with.begin(), with.end()) /
                      *std::min_element(base.begin(), base.end());
  summary.base_seconds = Median(base);
  summary.with_seconds = Median(with);
  return summary;
}

bool MeasurePairs(const BenchOptions& options,
                  const std::vector<ProblemPair>& pairs, BenchContext* context,
                  std::vector<PairRow>* rows, std::string* why) {
  const size_t total =
      pairs.size() * context->targets().size() * context->threads().size();
  for (const ProblemPair& pair : pairs) {
    for (const BenchTarget& target : context->targets()) {
      for (const int threads : context->threads()) {
        fmt::print(stderr, "[{}/{}] {} threads:{} target:{}\n",
                   rows->size() + 1, total, pair.name, threads, target.name);
        PairRow row;
        row.pair = pair;
        row.target = target.name;
        row.threads = threads;
        if (!MeasurePair(options, target, context, &row, why)) return false;
        rows->push_back(row);
      }
    }
  }
  // The last round may have had the best canary.
  for (PairRow& row : *rows) {
    for (const BenchTarget& target : context->targets()) {
      if (target.name == row.target) {
        row.best_canary = context->RoofOf(target, row.threads).best_canary();
      }
    }
  }
  return true;
}

}  // namespace heed
