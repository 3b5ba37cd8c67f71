// A call run on the kernels' own table, without the runtime: each path of a
// target by itself, cut as the test says.
//
// Knows no test framework.
#ifndef HEED_TESTS_KERNEL_CALL_H_
#define HEED_TESTS_KERNEL_CALL_H_

#include <heed.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "tests/attention_case.h"

namespace heed::test {

enum class KernelPath {
  kAttend,  // tasks of tile.row_block rows
  kDecode,  // decode() of so many rows at once
  kParts,   // decode_part() in pieces of chunks, last piece first, and merge()
};

struct KernelCut {
  int64_t target = 0;  // one of SupportedTargets()
  KernelPath path = KernelPath::kAttend;
  Tile tile;          // read by kAttend
  size_t rows = 1;    // read by the others
  size_t chunks = 1;  // of a piece of kParts
};
std::string NameOf(const KernelCut& cut);

// Runs all rows of a valid call of any dtype. Writes call.out and, if it is
// wanted, call.lse.
void RunKernels(const heed_problem& problem, const heed_call& call,
                const KernelCut& cut);

Result RunKernels(const Case& c, const KernelCut& cut);

// A cut that the problem allows, of a target with fused multiply-add.
KernelCut RandomCut(uint64_t seed, const heed_problem& problem);

// Every target, also without fused multiply-add, and every path: tiles of many
// sizes that the problem allows, decodes of few and many rows, whole and in
// parts.
std::vector<KernelCut> EveryCut(const heed_problem& problem);

}  // namespace heed::test

#endif  // HEED_TESTS_KERNEL_CALL_H_
