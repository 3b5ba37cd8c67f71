#include "runtime/rope_angles.h"

#include <cmath>

namespace heed {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kLn2 = 0.69314718055994530942;

// The powers below are of a base rounded once, so that an error of the exponent
// by 20 * 2^-52 is one of 3e-15 of the result.

// ln x for x > 0, by its atanh series: ln m = 2 (s + s^3 / 3 + s^5 / 5 ..) with
// s = (m - 1) / (m + 1), |s| < 0.172. 12 terms leave s^25 / 25 < 1e-20.
double Ln(double x) {
  int exponent;
  double m = std::frexp(x, &exponent);  // [0.5, 1)
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 11; k >= 0; --k) sum = sum * square + 1.0 / (2 * k + 1);
  return exponent * kLn2 + 2 * s * sum;
}

// e^x for |x| < 700, by halving the argument's range to ln 2 / 2 and Taylor's
// series: 0.347^15 / 15! < 1e-19.
double Exp(double x) {
  const double n = std::nearbyint(x / kLn2);
  const double r = x - n * kLn2;
  double sum = 1;
  for (int k = 14; k >= 1; --k) sum = 1 + sum * r / k;
  return std::ldexp(sum, static_cast<int>(n));
}

// Cosine and sine of x, |x| <= pi / 4, by Taylor's series: the first terms left
// out are below 1e-17.
void CosineAndSine(double x, double* cosine, double* sine) {
  const double square = x * x;
  double c = 1, s = 1;
  for (int k = 8; k >= 1; --k) {
    c = 1 - c * square / ((2 * k - 1) * (2 * k));
    s = 1 - s * square / ((2 * k) * (2 * k + 1));
  }
  *cosine = c;
  *sine = s * x;
}

// The frequency in radians as the scaling of Llama 3.1 has it: Hugging Face
// transformers, modeling_rope_utils.py, _compute_llama3_parameters.
double ScaledForLlama3(const heed_block_desc& desc, double frequency) {
  const double wavelength = 2 * kPi / frequency;
  const auto length = static_cast<double>(desc.rope_original_len);
  const double low = desc.rope_low_freq_factor;
  const double high = desc.rope_high_freq_factor;
  if (wavelength < length / high) return frequency;
  if (wavelength > length / low) return frequency / desc.rope_factor;
  const double smooth = (length / wavelength - low) / (high - low);
  return (1 - smooth) * frequency / desc.rope_factor + smooth * frequency;
}

}  // namespace

std::vector<double> RopeTurns(const heed_block_desc& desc) {
  const int64_t width = desc.rope_width == 0 ? desc.dim_qk : desc.rope_width;
  std::vector<double> turns(static_cast<size_t>(width / 2));
  const double ln_theta = Ln(desc.rope_theta);
  for (size_t i = 0; i < turns.size(); ++i) {
    const double power =
        -2 * static_cast<double>(i) / static_cast<double>(width);
    double frequency = Exp(power * ln_theta);
    if (desc.rope_scaling == HEED_ROPE_SCALING_LINEAR) {
      frequency /= desc.rope_factor;
    } else if (desc.rope_scaling == HEED_ROPE_SCALING_LLAMA3) {
      frequency = ScaledForLlama3(desc, frequency);
    }
    turns[i] = frequency / (2 * kPi);
  }
  return turns;
}

void RopeAngles(const std::vector<double>& turns, int64_t position,
                float* cosine, float* sine) {
  const auto p = static_cast<double>(position);
  for (size_t i = 0; i < turns.size(); ++i) {
    // The product's rounding error is kept: whole turns leave all the bits of
    // what remains.
    const double product = p * turns[i];
    const double error = std::fma(p, turns[i], -product);
    const double rest = product - std::nearbyint(product) + error;
    const double quarters = std::nearbyint(4 * rest);
    double c, s;
    CosineAndSine((rest - quarters / 4) * (2 * kPi), &c, &s);
    switch (static_cast<int>(quarters) & 3) {
      case 0:
        break;
      case 1: {
        const double old = c;
        c = -s;
        s = old;
        break;
      }
      case 2:
        c = -c;
        s = -s;
        break;
      default: {
        const double old = c;
        c = s;
        s = -old;
        break;
      }
    }
    cosine[i] = static_cast<float>(c);
    sine[i] = static_cast<float>(s);
  }
}

}  // namespace heed
