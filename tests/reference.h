// Attention in double precision, one row at a time, written as the formula of
// the definition: the specification of heed's accuracy. Each number comes with
// a bound on how far the float program may be from it.
#ifndef HEED_TESTS_REFERENCE_H_
#define HEED_TESTS_REFERENCE_H_

#include <heed.h>

#include <cstdint>
#include <string>
#include <vector>

namespace heed::test {

// Half of the distance of floats next to 1: the error of one rounding.
inline constexpr double kUnit = 0x1p-24;

// The error of a chain of n roundings, relative to the sum of magnitudes.
inline double Gamma(double n) { return n * kUnit / (1 - n * kUnit); }

struct ReferenceRow {
  std::vector<double> out;        // [dim_v]
  std::vector<double> out_bound;  // [dim_v], on |got - out|
  double lse = 0;
  double lse_bound = 0;
};

// Row (batch, head, token) of a valid f32 call; the token is counted within its
// sequence. A row that sees no key is 0, and -inf or its sink.
ReferenceRow Reference(const heed_problem& problem, const heed_call& call,
                       int64_t batch, int64_t head, int64_t token);

// Where a finished f32 call is first out of these bounds, looking at every
// `row_step`-th row; empty if nowhere. NaN must be NaN.
std::string FirstOutOfBound(const heed_problem& problem, const heed_call& call,
                            int64_t row_step = 1);

}  // namespace heed::test

#endif  // HEED_TESTS_REFERENCE_H_
