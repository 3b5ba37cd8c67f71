// The attention block in plain scalar C++: the specification of its bits, as
// runtime/include/heed_block.h has it in words.
//
// Compiled with -ffp-contract=off: std::fma where the program says so, one
// rounding per operation everywhere else.
#ifndef HEED_TESTS_BLOCK_PROGRAM_H_
#define HEED_TESTS_BLOCK_PROGRAM_H_

#include "tests/block_case.h"

namespace heed::test {

// All but scores and pattern, which attention has no need of.
BlockValues BlockProgram(const BlockCase& c);

// The attention of a case's tokens among themselves.
heed_problem AttentionOf(const BlockCase& c);

}  // namespace heed::test

#endif  // HEED_TESTS_BLOCK_PROGRAM_H_
