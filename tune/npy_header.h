// The header of a .npy file: bytes in, a value or a reason out. No I/O.
//
// Format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#ifndef HEED_TUNE_NPY_HEADER_H_
#define HEED_TUNE_NPY_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heed {

struct NpyHeader {
  std::string descr;  // e.g. "<f4"; empty if it was not a plain string
  bool fortran_order = false;
  std::vector<int64_t> shape;  // [] is a scalar
  size_t header_bytes = 0;     // where the data begin
};

// Longest header that is read. A tensor's takes 128 bytes; the limit keeps a
// hostile length field from asking for memory.
constexpr size_t kMaxNpyHeaderBytes = 1 << 16;

// Parses a file's first bytes (all of it, or at least kMaxNpyHeaderBytes). On
// failure returns false and says why in one line. Checks the form only; which
// dtype and rank are wanted is the caller's business.
bool ParseNpyHeader(const std::string& bytes, NpyHeader* header,
                    std::string* why);

// A version 1.0 header, padded so that the data begin at a multiple of 64.
std::string MakeNpyHeader(const std::string& descr,
                          const std::vector<int64_t>& shape);

// Product of the dimensions, or -1 if it exceeds 2^62.
int64_t NpyElementCount(const std::vector<int64_t>& shape);

}  // namespace heed

#endif  // HEED_TUNE_NPY_HEADER_H_
