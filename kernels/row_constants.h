// The numbers of the row program: part of a result's bits, so part of the
// contract.
//
// tests/row_program.cc is the program in scalar code; the kernels and it share
// these values and nothing else.
#ifndef HEED_KERNELS_ROW_CONSTANTS_H_
#define HEED_KERNELS_ROW_CONSTANTS_H_

#include <cfloat>

namespace heed {

// 1.5 * 2^23: adding it rounds a float of magnitude below 2^22 to the nearest
// integer, ties to even, and leaves that integer in the low mantissa bits.
constexpr float kRound = 12582912.0f;

// A weight 2^(s - m) with s - m below this is 2^-127 or nothing: flushed.
constexpr float kFlush = -127.0f;

// Up to here kRound - m is exact, so the fraction of a score does not depend on
// m.
constexpr float kExactMaximum = 4194304.0f;  // 2^22

// The running maximum before any key.
constexpr float kNoMaximum = -FLT_MAX;

// 2^f = 1 + f * (c1 + f * (c2 + ...)) on [-0.5, 0.5]: minimax with the value at
// 0 exact; in float at most 1.72e-7 relative error (tests/weight_test.cc sweeps
// every f that can occur; the worst is near -0.5).
constexpr float kExp2C1 = 0.6931470036506653f;
constexpr float kExp2C2 = 0.24022242426872253f;
constexpr float kExp2C3 = 0.05550733581185341f;
constexpr float kExp2C4 = 0.009671512991189957f;
constexpr float kExp2C5 = 0.001326472731307149f;

// log2(1 + r) = r * (p0 + r * (p1 + ...)) on [sqrt(1/2) - 1, sqrt(2) - 1]:
// minimax (Remez) of degree 8, relative error 3.9e-8 before float rounding.
constexpr float kLog2Coefficients[9] = {
    1.442695004887487f,   -0.7213471993117132f,  0.48091027979382894f,
    -0.3607162640918821f, 0.28793909496959313f,  -0.23867567494497133f,
    0.21521224274935194f, -0.20893385002133555f, 0.12926436471436592f};
constexpr float kSqrt2 = 1.41421356237309505f;
constexpr float kLn2 = 0.69314718055994531f;

// Natural units to the log2 domain.
constexpr float kLog2E = 1.44269504088896341f;

// tanh is 1 in float far below this: 2^60 - 1 and 2^60 + 1 are one float.
constexpr float kLargestCapExponent = 60.0f;

}  // namespace heed

#endif  // HEED_KERNELS_ROW_CONSTANTS_H_
