#include "bench/table.h"

#include <fmt/format.h>

#include <cstdio>

namespace heed {

bool MeasureTable(const BenchOptions& options, BenchContext* context,
                  std::vector<TableRow>* rows, std::string* why) {
  const size_t total = context->problems().size() * context->targets().size() *
                       context->threads().size();
  for (const NamedProblem& problem : context->problems()) {
    AttentionCase& attention = context->CaseOf(problem);
    for (const BenchTarget& target : context->targets()) {
      for (const int threads : context->threads()) {
        fmt::print(stderr, "[{}/{}] {} threads:{} target:{}\n",
                   rows->size() + 1, total, problem.name, threads, target.name);
        AttentionRun run(&attention, target.name, threads);
        const std::string wrong = run.Verify();
        if (!wrong.empty()) {
          *why = problem.name + ": " + wrong;
          return false;
        }
        RoundsWanted wanted;
        wanted.quiet = options.rounds;
        wanted.seconds = options.seconds;
        // Only in decoding is memory the roof, and only there may the caches
        // be emptied between two calls: they hold nothing of use.
        wanted.read = attention.sets() > 1;
        Roof& roof = context->RoofOf(target, threads);
        TableRow row;
        row.shape = problem.name;
        row.problem = problem.text;
        row.target = target.name;
        row.threads = threads;
        row.tile = run.Tile();
        row.tier = run.Tier();
        row.flops = attention.flops();
        row.bytes = attention.bytes();
        row.rounds = Interleave(wanted, &roof, [&run] { run.Run(); });
        row.task_seconds = run.TaskSeconds(options.seconds);
        rows->push_back(row);
      }
    }
  }
  // The last round may have had the best canary.
  for (TableRow& row : *rows) {
    row.best_canary = context->BestCanary(row.target, row.threads);
  }
  return true;
}

}  // namespace heed
