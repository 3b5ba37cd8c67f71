// What finding a tuning entry costs each plan, once the records are read: the
// class and a hash look-up. A record of a thousand entries, so that the
// table does not sit in the L1.

#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "bench/register.h"
#include "runtime/shape_class.h"
#include "runtime/tile_choice.h"

namespace heed {
namespace {

constexpr int kThreads = 2;

heed_problem Problem(int64_t dim, int64_t len) {
  heed_problem problem;
  heed_problem_init(&problem);
  problem.batch = 1;
  problem.heads_q = problem.heads_kv = 8;
  problem.len_q = problem.len_k = len;
  problem.dim_qk = problem.dim_v = dim;
  problem.dtype = HEED_F32;
  problem.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  return problem;
}

std::unique_ptr<RecordSet> ManyEntries() {
  auto set = std::make_unique<RecordSet>();
  set->records.emplace_back();
  Record& record = set->records.back().record;
  for (int64_t dim = 1; dim <= 200; ++dim) {
    for (const int64_t len : {128, 512, 1024, 2048, 8192}) {
      RecordEntry entry;
      entry.shape_class = ClassOf(Problem(dim, len), kThreads);
      record.entries.push_back(entry);
    }
  }
  set->index.Add(set->records.back(), [](const std::string&) { return true; });
  return set;
}

void RunLookup(benchmark::State& state, int64_t len) {
  const std::unique_ptr<RecordSet> set = ManyEntries();
  heed_problem problem = Problem(1, len);
  int64_t dim = 0;
  for (auto _ : state) {
    dim = dim % 200 + 1;
    problem.dim_qk = problem.dim_v = dim;
    benchmark::DoNotOptimize(FindHit(*set, problem, kThreads));
  }
}

}  // namespace

void RegisterLookupBenchmarks() {
  benchmark::RegisterBenchmark("lookup/hit", RunLookup, 1024);
  // Lengths that no entry is near.
  benchmark::RegisterBenchmark("lookup/miss", RunLookup, 1 << 20);
}

}  // namespace heed
