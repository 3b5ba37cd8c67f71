// `heed_bench --heed_compare BASE,HEAD`: is one libheed slower than another?
// Both are loaded into this program and take turns on the same tensors.
#ifndef HEED_BENCH_COMPARE_H_
#define HEED_BENCH_COMPARE_H_

#include <string>
#include <vector>

#include "bench/bench_context.h"
#include "bench/options.h"
#include "bench/pair_rounds.h"
#include "bench/provenance.h"

namespace heed {

// Short and long prompts, heads of 40 to 256, 16 bits, grouped queries, one
// token: what a change that makes anything slower would hit, in a minute.
extern const char kHeadlineShapes[];

// HEAD may be this much slower before it counts: base / head.
constexpr double kSlowerBelow = 0.95;

enum class Verdict {
  kNotSlower,     // surely above kSlowerBelow
  kSlower,        // surely below it
  kInconclusive,  // the interval holds it: the machine was not quiet enough
};

// Of one measurement: `with` is HEAD.
Verdict Judge(const PairSummary& summary);

// A shape's rounds, and fresh ones if those said kSlower.
struct ComparedShape {
  PairRow row;
  PairRow confirmation;  // no rounds: not asked for
};

// kSlower only if both say so; what the second does not confirm is
// kInconclusive.
Verdict Judge(const ComparedShape& shape);

// The two of options.compare. As MeasureTable().
bool Compare(const BenchOptions& options, BenchContext* context,
             std::vector<ComparedShape>* shapes, std::string* why);

// Pure.
std::string CompareMarkdown(const Provenance& provenance,
                            const std::vector<ComparedShape>& shapes);
std::string CompareJson(const Provenance& provenance,
                        const std::vector<ComparedShape>& shapes);

}  // namespace heed

#endif  // HEED_BENCH_COMPARE_H_
