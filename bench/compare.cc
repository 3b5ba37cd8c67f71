#include "bench/compare.h"

#include <fmt/format.h>

#include <cstdio>

#include "bench/heed_library.h"

namespace heed {
namespace {

bool LoadBoth(const std::string& list, HeedLibrary* base, HeedLibrary* head,
              std::string* why) {
  const size_t comma = list.find(',');
  if (comma == std::string::npos || list.find(',', comma + 1) != list.npos) {
    *why = "'" + list + "'; expected two libraries, BASE,HEAD";
    return false;
  }
  return LoadHeed(list.substr(0, comma), base, why) &&
         LoadHeed(list.substr(comma + 1), head, why);
}

}  // namespace

const char kHeadlineShapes[] =
    "gpt2_short,gpt2_prefill,vit,sd_cross,odd,gemma,decode,decode_batch,"
    "b1_hq8_hkv2_q1024_k1024_d128_causal_f32,"
    "b1_hq12_hkv12_q1024_k1024_d64_causal_bf16";

Verdict Judge(const PairSummary& summary) {
  if (summary.kept == 0) return Verdict::kInconclusive;
  // `ratio` is head / base.
  if (1 / summary.ratio.low < kSlowerBelow) return Verdict::kSlower;
  if (1 / summary.ratio.high > kSlowerBelow) return Verdict::kNotSlower;
  return Verdict::kInconclusive;
}

Verdict Judge(const ComparedShape& shape) {
  const Verdict first = Judge(SummarizePair(shape.row));
  if (first != Verdict::kSlower) return first;
  const bool confirmed =
      Judge(SummarizePair(shape.confirmation)) == Verdict::kSlower;
  return confirmed ? Verdict::kSlower : Verdict::kInconclusive;
}

bool Compare(const BenchOptions& options, BenchContext* context,
             std::vector<ComparedShape>* shapes, std::string* why) {
  HeedLibrary base_library, head_library;
  if (!LoadBoth(options.compare, &base_library, &head_library, why)) {
    return false;
  }
  const size_t total = context->problems().size() * context->targets().size() *
                       context->threads().size();
  std::vector<PairRow> rows, confirmations;
  for (const NamedProblem& problem : context->problems()) {
    AttentionCase& attention = context->CaseOf(problem);
    for (const BenchTarget& target : context->targets()) {
      for (const int threads : context->threads()) {
        fmt::print(stderr, "[{}/{}] {} threads:{} target:{}\n", rows.size() + 1,
                   total, problem.name, threads, target.name);
        AttentionRun base(&attention, target.name, threads, base_library);
        AttentionRun head(&attention, target.name, threads, head_library);
        for (AttentionRun* run : {&base, &head}) {
          const std::string wrong = run->Verify();
          if (wrong.empty()) continue;
          *why = (run == &base ? base_library : head_library).path + ": " +
                 problem.name + ": " + wrong;
          return false;
        }
        PairRow row;
        row.name = problem.name;
        row.base = base_library.path;
        row.with = head_library.path;
        row.target = target.name;
        row.threads = threads;
        PairRow confirmation = row;
        Roof& roof = context->RoofOf(target, threads);
        const auto run_base = [&base] { base.Run(); };
        const auto run_head = [&head] { head.Run(); };
        MeasureRounds(options, &roof, run_base, run_head, &row);
        row.best_canary = roof.best_canary();
        if (Judge(SummarizePair(row)) == Verdict::kSlower) {
          fmt::print(stderr, "  seems slower; measuring again\n");
          MeasureRounds(options, &roof, run_base, run_head, &confirmation);
        }
        rows.push_back(row);
        confirmations.push_back(confirmation);
      }
    }
  }
  SetBestCanary(context, &rows);
  SetBestCanary(context, &confirmations);
  for (size_t i = 0; i < rows.size(); ++i) {
    shapes->push_back({rows[i], confirmations[i]});
  }
  return true;
}

}  // namespace heed
