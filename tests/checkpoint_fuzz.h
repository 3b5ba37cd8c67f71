// Checkpoints that somebody made to harm: one input taken through all that
// reads a checkpoint, and inputs to begin with. For the test that changes them
// in a fixed order, and for libFuzzer (checkpoint_fuzzer.cc).
#ifndef HEED_TESTS_CHECKPOINT_FUZZ_H_
#define HEED_TESTS_CHECKPOINT_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace heed {

// What the input is, its first byte says:
//   'f'  a .safetensors file
//   'i'  an index
//   'm'  a model: config.json, NUL, the header of a .safetensors file, NUL, its
//        data; the header's length is put before it, so that a change of one
//        does not end in the length being wrong
// Reads it, describes layer 0, embeds two tokens, makes a block of it and runs
// that on three. Ends the process with a message if a failure comes without a
// reason, or with one of more than a line. Returns how far it came: 0 refused,
// 1 read, 2 described, 3 run (an index: read).
int TryCheckpoint(const uint8_t* input, size_t size);

// Good inputs of every kind.
std::vector<std::string> CheckpointSeeds();

// Changes an input: a byte, a run of bytes, a number, a word of the format.
void MutateCheckpoint(std::mt19937* random, std::string* input);

}  // namespace heed

#endif  // HEED_TESTS_CHECKPOINT_FUZZ_H_
