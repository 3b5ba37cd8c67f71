// The standard shapes: one table for the benchmarks, the tests and the tuner.
#ifndef HEED_TUNE_SHAPES_H_
#define HEED_TUNE_SHAPES_H_

#include <string>
#include <vector>

#include "runtime/include/heed.h"

namespace heed {

struct StandardShape {
  const char* name;     // e.g. "gpt2_prefill"
  const char* problem;  // its problem string
  const char* what;     // one line, for people
  bool core;            // one of the eleven that `heed tune` takes by default
};

// The table, in the order it is to be printed; the core ones first.
const std::vector<StandardShape>& StandardShapes();

// The shape of that name, or null.
const StandardShape* FindStandardShape(const std::string& name);

// A problem together with the name it goes by: a standard shape's, else its
// problem string.
struct NamedProblem {
  std::string name;
  std::string text;  // problem string
  heed_problem problem;
};

// Parses a comma-separated list of names, problem strings and the words "core"
// (the eleven) and "all". What is named twice is taken once. On failure returns
// false and says which item is wrong in one line.
bool ParseShapeList(const std::string& list, std::vector<NamedProblem>* shapes,
                    std::string* why);

// Pairs of a query row and a key it sees, per (batch, query head).
// `causal_offset` is read only if the problem says HEED_CAUSAL_OFFSET.
double VisiblePairs(const heed_problem& problem, int64_t causal_offset = 0);

// Floating-point operations of one call, the two products only:
// batch * heads_q * visible pairs * 2 * (dim_qk + dim_v).
double AttentionFlops(const heed_problem& problem, int64_t causal_offset = 0);

// Bytes that a call cannot avoid to move: q, k, v and out once each.
double CompulsoryBytes(const heed_problem& problem);

}  // namespace heed

#endif  // HEED_TUNE_SHAPES_H_
