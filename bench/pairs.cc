#include "bench/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace heed {
namespace {

struct OptionPair {
  const char* name;
  const char* with;  // {} is the head width
  const char* base;
};

// Two heads, so that two threads have something to share; eight with ALiBi,
// for all of its slopes. As short as the question allows: on a shared machine
// calls of 50 ms have no quiet rounds.
const OptionPair kOptionPairs[] = {
    {"causal / not", "b1_hq2_hkv2_q4096_k4096_d{}_causal_f32",
     "b1_hq2_hkv2_q4096_k4096_d{}_f32"},
    {"mask of bytes, all visible",
     "b1_hq2_hkv2_q1024_k1024_d{}_causal_maskbool_f32",
     "b1_hq2_hkv2_q1024_k1024_d{}_causal_f32"},
    {"mask of numbers", "b1_hq2_hkv2_q1024_k1024_d{}_causal_maskf32_f32",
     "b1_hq2_hkv2_q1024_k1024_d{}_causal_f32"},
    {"soft cap", "b1_hq2_hkv2_q1024_k1024_d{}_causal_cap30_f32",
     "b1_hq2_hkv2_q1024_k1024_d{}_causal_f32"},
    {"ALiBi", "b1_hq8_hkv8_q1024_k1024_d{}_causal_alibi_f32",
     "b1_hq8_hkv8_q1024_k1024_d{}_causal_f32"},
    {"sinks", "b1_hq2_hkv2_q1024_k1024_d{}_causal_sinks_f32",
     "b1_hq2_hkv2_q1024_k1024_d{}_causal_f32"},
    {"window of 256 of 8192 / causal",
     "b1_hq2_hkv2_q8192_k8192_d{}_causal_win255x0_f32",
     "b1_hq2_hkv2_q8192_k8192_d{}_causal_f32"},
    {"window of 128, 8192 / 4096",
     "b1_hq2_hkv2_q8192_k8192_d{}_causal_win127x0_f32",
     "b1_hq2_hkv2_q4096_k4096_d{}_causal_win127x0_f32"},
    {"a tenth of blocks of 64 / dense",
     "b1_hq2_hkv2_q8192_k8192_d{}_maskbool64x64_f32",
     "b1_hq2_hkv2_q8192_k8192_d{}_f32"},
    {"f16 / f32", "b1_hq2_hkv2_q1024_k1024_d{}_causal_f16",
     "b1_hq2_hkv2_q1024_k1024_d{}_causal_f32"},
    {"bf16 / f32", "b1_hq2_hkv2_q1024_k1024_d{}_causal_bf16",
     "b1_hq2_hkv2_q1024_k1024_d{}_causal_f32"},
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

bool MeasurePair(const BenchOptions& options, const ProblemPair& pair,
                 const BenchTarget& target, BenchContext* context, PairRow* row,
                 std::string* why) {
  const size_t last_level = LastLevelBytes(ThisMachine());
  AttentionCase base_case(pair.base, last_level);
  AttentionCase with_case(pair.with, last_level);
  AttentionRun base(&base_case, target.name, row->threads);
  AttentionRun with(&with_case, target.name, row->threads);
  for (AttentionRun* run : {&base, &with}) {
    const std::string wrong = run->Verify();
    if (wrong.empty()) continue;
    *why = pair.name + ": " + wrong;
    return false;
  }
  row->flop_ratio = with_case.flops() / base_case.flops();
  MeasureRounds(
      options, &context->RoofOf(target, row->threads), [&base] { base.Run(); },
      [&with] { with.Run(); }, row);
  return true;
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
        row.name = pair.name;
        row.with = pair.with.text;
        row.base = pair.base.text;
        row.target = target.name;
        row.threads = threads;
        if (!MeasurePair(options, pair, target, context, &row, why))
          return false;
        rows->push_back(row);
      }
    }
  }
  SetBestCanary(context, rows);
  return true;
}

}  // namespace heed
