// A block against its definition in double, stage by stage: each from the
// floats that the stage before it gave, within the bound that its chains of
// operations allow. Attention itself has its own bounds (reference.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/block_case.h"
#include "tests/block_program.h"
#include "tests/reference.h"
#include "tests/row_program.h"

namespace heed::test {
namespace {

struct Bounded {
  double value, bound;
};

// The norm of x [n].
//   Chains: sixteen of c - 4 elements and a tree of 4, so that a sum errs by
//   gamma(c) of its magnitudes.
//   m is any number near the mean; with a = x - m and A the mean of |a|, e errs
//   by delta = gamma(c + 2) A, and t = a - mean(a) by tau = u |a| + delta +
//   2 u |t|. The variance V errs by mean(2 |t| tau + tau^2) + gamma(c + 2)
//   mean((|t| + tau)^2), and r = (V + eps)^-1/2 by half of that relative to
//   V + eps, and four roundings. RMSNorm has t = x, without error.
std::vector<Bounded> NormReference(const BlockCase& c, const float* x) {
  const int64_t n = c.desc.d_model;
  const double width = static_cast<double>(n);
  const double chain = std::ceil(width / 16) + 4;
  const bool centred = c.desc.norm == HEED_NORM_LAYER;
  std::vector<double> t(x, x + n), tau(static_cast<size_t>(n), 0.0);
  if (centred) {
    double mean = 0, magnitude = 0;
    for (int64_t i = 0; i < n; ++i) mean += x[i] / width;
    for (int64_t i = 0; i < n; ++i) magnitude += std::abs(x[i]) / width;
    // How far m may be from the mean, and so a from x - mean.
    const double off = Gamma(chain + 1) * magnitude;
    double spread = 0;
    for (int64_t i = 0; i < n; ++i) {
      t[i] = x[i] - mean;
      spread += (std::abs(t[i]) + off) / width;
    }
    const double delta = Gamma(chain + 2) * spread;
    for (int64_t i = 0; i < n; ++i) {
      tau[i] =
          kUnit * (std::abs(t[i]) + off) + delta + 2 * kUnit * std::abs(t[i]);
    }
  }
  double variance = 0, error = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double reach = std::abs(t[i]) + tau[i];
    variance += t[i] * t[i] / width;
    error += (2 * std::abs(t[i]) * tau[i] + tau[i] * tau[i] +
              Gamma(chain + 2) * reach * reach) /
             width;
  }
  const double eps = static_cast<float>(c.desc.norm_eps);
  const double r = 1 / std::sqrt(variance + eps);
  // Half, and a little: (1 - z)^-1/2 - 1 < 0.6 z for z < 0.2.
  const double rho = 0.6 * error / (variance + eps) + 4 * kUnit;
  std::vector<Bounded> ln;
  for (int64_t i = 0; i < n; ++i) {
    const double gain = c.gain.empty() ? 1 : c.gain[i];
    const double bias = c.bias.empty() ? 0 : c.bias[i];
    const double value = t[i] * r * gain + bias;
    const double of_product =
        tau[i] * r * (1 + rho) + std::abs(t[i]) * r * (rho + kUnit);
    ln.push_back(
        {value, 1.01 * (std::abs(gain) * of_product + kUnit * std::abs(value)) +
                    1e-40});
  }
  return ln;
}

// Output o of a projection: heed_block.h has the bound.
Bounded ProjectReference(const std::vector<float>& w,
                         const std::vector<float>& biases, const float* x,
                         int64_t inputs, int64_t o) {
  const auto outputs = static_cast<int64_t>(biases.size());
  double value = biases[o], magnitude = std::abs(biases[o]);
  for (int64_t i = 0; i < inputs; ++i) {
    const double product =
        static_cast<double>(x[i]) * static_cast<double>(w[i * outputs + o]);
    value += product;
    magnitude += std::abs(product);
  }
  const double n = static_cast<double>(std::min<int64_t>(inputs, 256)) +
                   std::ceil(static_cast<double>(inputs) / 256);
  return {value, Gamma(n + 1) * magnitude + 1e-40};
}

// q or k of one head in place, by the definition; the bound takes in that of
// both elements of a pair, and three roundings.
void RopeReference(const heed_block_desc& desc, int64_t position,
                   Bounded* head) {
  const int64_t width = desc.rope_width == 0 ? desc.dim_qk : desc.rope_width;
  for (int64_t i = 0; i < width / 2; ++i) {
    double frequency = std::pow(desc.rope_theta, -2.0 * i / width);
    if (desc.rope_scaling == HEED_ROPE_SCALING_LINEAR) {
      frequency /= desc.rope_factor;
    } else if (desc.rope_scaling == HEED_ROPE_SCALING_LLAMA3) {
      const double wavelength = 2 * M_PI / frequency;
      const double ratio = desc.rope_original_len / wavelength;
      const double smooth = std::clamp(
          (ratio - desc.rope_low_freq_factor) /
              (desc.rope_high_freq_factor - desc.rope_low_freq_factor),
          0.0, 1.0);
      frequency *= smooth + (1 - smooth) / desc.rope_factor;
    }
    const double angle = frequency * static_cast<double>(position);
    const bool apart = desc.rope == HEED_ROPE_HALF;
    Bounded& first = head[apart ? i : 2 * i];
    Bounded& second = head[apart ? i + width / 2 : 2 * i + 1];
    const Bounded a = first, b = second;
    const double error =
        a.bound + b.bound +
        (std::abs(a.value) + std::abs(b.value)) * (4 * kUnit + angle * 1e-14);
    first = {a.value * std::cos(angle) - b.value * std::sin(angle), error};
    second = {b.value * std::cos(angle) + a.value * std::sin(angle), error};
  }
}

class Comparison {
 public:
  explicit Comparison(std::string where) : where_(std::move(where)) {}
  void Near(const char* name, float got, Bounded want) {
    IsWithin(name, got, want);
    if (want.bound > 0) {
      worst_ = std::max(worst_, std::abs(got - want.value) / want.bound);
    }
  }
  // The same of a single rounding, which may reach its bound.
  void IsWithin(const char* name, float got, Bounded want) {
    EXPECT_LE(std::abs(got - want.value), want.bound)
        << name << " is " << got << ", not " << want.value << "; " << where_;
  }
  double worst() const { return worst_; }

 private:
  std::string where_;
  double worst_ = 0;  // error of a bound
};

// Element (batch, head, token, i) of [batch, heads, len, dim].
size_t At(const BlockCase& c, int64_t row, int64_t heads, int64_t head,
          int64_t dim, int64_t i) {
  return static_cast<size_t>(
      ((row / c.len * heads + head) * c.len + row % c.len) * dim + i);
}

void CheckQkv(const BlockCase& c, const BlockValues& got, int64_t row,
              Comparison* compare) {
  const heed_block_desc& desc = c.desc;
  const bool before =
      desc.norm != HEED_NORM_NONE && desc.norm_place == HEED_NORM_PRE;
  const float* x = (before ? got.ln : c.x).data() + row * desc.d_model;
  const std::vector<float> w = c.QkvValues(), biases = c.QkvBiases();
  std::vector<Bounded> all;
  for (int64_t o = 0; o < c.QkvOutputs(); ++o) {
    all.push_back(ProjectReference(w, biases, x, desc.d_model, o));
  }
  const int64_t position =
      (c.positions.empty() ? 0 : c.positions[row / c.len]) + row % c.len;
  if (desc.rope != HEED_ROPE_NONE) {
    for (int64_t head = 0; head < desc.heads_q + desc.heads_kv; ++head) {
      RopeReference(desc, position, all.data() + head * desc.dim_qk);
    }
  }
  const struct {
    const char* name;
    const std::vector<float>& values;
    int64_t heads, dim;
  } parts[] = {{"q", got.q, desc.heads_q, desc.dim_qk},
               {"k", got.k, desc.heads_kv, desc.dim_qk},
               {"v", got.v, desc.heads_kv, desc.dim_v}};
  size_t o = 0;
  for (const auto& part : parts) {
    for (int64_t head = 0; head < part.heads; ++head) {
      for (int64_t i = 0; i < part.dim; ++i, ++o) {
        compare->Near(part.name,
                      part.values[At(c, row, part.heads, head, part.dim, i)],
                      all[o]);
      }
    }
  }
}

void CheckOut(const BlockCase& c, const BlockValues& got, int64_t row,
              Comparison* compare) {
  const heed_block_desc& desc = c.desc;
  std::vector<float> merged;
  for (int64_t head = 0; head < desc.heads_q; ++head) {
    for (int64_t i = 0; i < desc.dim_v; ++i) {
      merged.push_back(got.z[At(c, row, desc.heads_q, head, desc.dim_v, i)]);
    }
  }
  for (int64_t i = 0; i < desc.d_model; ++i) {
    const auto at = static_cast<size_t>(row * desc.d_model + i);
    compare->Near("attn_out", got.attn_out[at],
                  ProjectReference(c.out.values, c.out.bias_values,
                                   merged.data(), c.out.inputs, i));
    const double sum = desc.residual != 0
                           ? static_cast<double>(c.x[at]) + got.attn_out[at]
                           : got.attn_out[at];
    compare->IsWithin("resid", got.resid[at], {sum, kUnit * std::abs(sum)});
  }
}

void CheckNorm(const BlockCase& c, const BlockValues& got, int64_t row,
               Comparison* compare) {
  const heed_block_desc& desc = c.desc;
  const int64_t width = desc.d_model;
  const bool before =
      desc.norm != HEED_NORM_NONE && desc.norm_place == HEED_NORM_PRE;
  const bool after =
      desc.norm != HEED_NORM_NONE && desc.norm_place == HEED_NORM_POST;
  std::vector<Bounded> ln;
  if (before) ln = NormReference(c, c.x.data() + row * width);
  if (after) ln = NormReference(c, got.resid.data() + row * width);
  for (int64_t i = 0; i < width; ++i) {
    const auto at = static_cast<size_t>(row * width + i);
    if (before || after) compare->Near("ln", got.ln[at], ln[i]);
    compare->IsWithin("y", got.y[at],
                      {after ? got.ln[at] : got.resid[at], 0.0});
  }
}

void CheckAttention(const BlockCase& c, const BlockValues& got) {
  heed_call call;
  heed_call_init(&call);
  const heed_block_desc& desc = c.desc;
  std::vector<float> z = got.z;
  call.q = heed_dense_input(got.q.data(), desc.heads_q, c.len, desc.dim_qk);
  call.k = heed_dense_input(got.k.data(), desc.heads_kv, c.len, desc.dim_qk);
  call.v = heed_dense_input(got.v.data(), desc.heads_kv, c.len, desc.dim_v);
  call.out = heed_dense_output(z.data(), desc.heads_q, c.len, desc.dim_v);
  call.alibi_slopes = c.slopes.data();
  call.sinks = c.sinks.data();
  EXPECT_EQ(FirstOutOfBound(AttentionOf(c), call), "");
}

TEST(BlockReference, EveryStageIsWithinItsBound) {
  double worst = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    BlockCase c = RandomBlock(5000 + seed);
    if (c.desc.norm == HEED_NORM_LAYER && c.desc.d_model < 3) continue;
    // Some with a mean far from 0, which a norm has to take away.
    if (seed % 4 == 0) {
      for (float& x : c.x) x += 100;
    }
    const BlockValues got = RunBlock(c);
    ASSERT_EQ(got.status, HEED_OK) << got.error;
    Comparison compare("seed " + std::to_string(seed) + ": " + NameOf(c));
    for (int64_t row = 0; row < c.batch * c.len; ++row) {
      CheckNorm(c, got, row, &compare);
      CheckQkv(c, got, row, &compare);
      CheckOut(c, got, row, &compare);
    }
    CheckAttention(c, got);
    worst = std::max(worst, compare.worst());
    if (HasFailure()) return;
  }
  std::printf("worst error: %.2f of its bound\n", worst);
  // Bounds that nothing comes near would say nothing.
  EXPECT_GT(worst, 0.1);
}

// A target without fused multiply-add rounds products too.
TEST(BlockReference, EveryTargetIsNearTheScalarProgram) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    BlockCase c = RandomBlock(6000 + seed);
    if (c.desc.d_model < 16) continue;
    const BlockValues want = BlockProgram(c);
    for (const std::string& target : TargetNames(/*fused_only=*/false)) {
      Settings settings;
      settings.target = target;
      const BlockValues got = RunBlock(c, settings);
      ASSERT_EQ(got.status, HEED_OK) << got.error;
      for (size_t i = 0; i < want.y.size(); ++i) {
        ASSERT_NEAR(got.y[i], want.y[i],
                    2e-4 * std::max(1.0f, std::abs(want.y[i])))
            << "seed " << seed << ", " << target << ": " << NameOf(c);
      }
    }
  }
}

}  // namespace
}  // namespace heed::test
