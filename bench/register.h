// The benchmarks, by kind. Each function registers its kind for all targets and
// thread counts of the context, which must outlive the runs.
#ifndef HEED_BENCH_REGISTER_H_
#define HEED_BENCH_REGISTER_H_

#include "bench/bench_context.h"

namespace heed {

// machine/<probe>/threads:N/target:T
void RegisterMachineBenchmarks(BenchContext* context);
// micro/<piece>/d:D/rows:R/keys:K/threads:1/target:T
void RegisterMicroBenchmarks(BenchContext* context);
// attention/<shape name>/<problem string>/threads:N/target:T
void RegisterAttentionBenchmarks(BenchContext* context);
// project/in:K/out:N/<type>/tokens:T/threads:N/target:T, beside OpenBLAS and
// oneDNN where they are installed
void RegisterProjectBenchmarks(BenchContext* context);
// block/gpt2_small/tokens:N/threads:N/target:T
void RegisterBlockBenchmarks(BenchContext* context);

// lookup/hit and lookup/miss: a tuning entry of a thousand
void RegisterLookupBenchmarks();

}  // namespace heed

#endif  // HEED_BENCH_REGISTER_H_
