// Which configurations are worth a race. Pure: no clock, no files.
#ifndef HEED_TUNE_CANDIDATES_H_
#define HEED_TUNE_CANDIDATES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/config.h"
#include "runtime/include/heed.h"
#include "runtime/machine.h"

namespace heed {

struct Candidate {
  std::string target;  // SIMD target
  Config config;

  friend bool operator==(const Candidate& a, const Candidate& b) {
    return a.target == b.target && a.config == b.config;
  }
};

// e.g. "AVX2.rb96.kt192.pk0.pv1.pf0"
std::string ToString(const Candidate& candidate);

// The model's choice on the best of `targets`.
Candidate DefaultCandidate(const heed_problem& problem,
                           const std::vector<Kernels>& targets,
                           const Machine& machine, int threads);

// The default first, then its neighbours, nearest first, at most `max` in all,
// each feasible and none twice.
//
// In row blocks a neighbour differs in row block (half, twice or four times),
// key tile (48 to a whole chunk), packing of k or v, prefetch, or in two of
// these; or it runs on another of `targets`, all of which must give the same
// bits. Few rows (decoding) read no tile: there neighbours differ in the tasks
// that each thread gets, or take the rows as a row block. Rows up to
// kMaxDecodeRows may also be decoded. Tiles whose scratch would not fit the L2
// and this thread's share of the L3 are left out.
std::vector<Candidate> Candidates(const heed_problem& problem,
                                  const std::vector<Kernels>& targets,
                                  const Machine& machine, int threads,
                                  size_t max);

// The kernels of the best target, then of all others with the same bits.
std::vector<Kernels> EqualTargets(DType dtype);

// Those of `all`, best first, that give the best one's bits: with fused
// multiply-add if it has it, else itself alone.
std::vector<Kernels> WithEqualBits(const std::vector<Kernels>& all);

}  // namespace heed

#endif  // HEED_TUNE_CANDIDATES_H_
