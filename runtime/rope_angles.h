// The angles of RoPE, by fixed operations in double: the same bits on every
// machine, whatever its mathematics library.
#ifndef HEED_RUNTIME_ROPE_ANGLES_H_
#define HEED_RUNTIME_ROPE_ANGLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/include/heed_block.h"

namespace heed {

// Frequencies of the pairs of a valid block with RoPE, scaled as it says, in
// turns per position: radians / 2 pi. Within 4e-15 of the formula.
std::vector<double> RopeTurns(const heed_block_desc& desc);

// Cosine and sine of the angle of each pair at a position, within 2^-24 of the
// value + position * 4e-15.
void RopeAngles(const std::vector<double>& turns, int64_t position,
                float* cosine, float* sine);

}  // namespace heed

#endif  // HEED_RUNTIME_ROPE_ANGLES_H_
