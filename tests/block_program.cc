#include "tests/block_program.h"

#include <cmath>

#include "runtime/rope_angles.h"
#include "tests/row_program.h"

namespace heed::test {
namespace {

// Sixteen chains, in order of the elements, and then their tree.
template <typename Take>
float Sum16(int64_t n, const Take& take) {
  float s[16] = {};
  for (int64_t i = 0; i < n; ++i) s[i % 16] = take(i, s[i % 16]);
  for (int half = 8; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) s[j] = s[j] + s[j + half];
  }
  return s[0];
}

void NormProgram(const BlockCase& c, const float* x, float* y) {
  const int64_t n = c.desc.d_model;
  const auto width = static_cast<float>(n);
  float m = 0, e = 0;
  if (c.desc.norm == HEED_NORM_LAYER) {
    m = Sum16(n, [&](int64_t i, float s) { return s + x[i]; }) / width;
    e = Sum16(n, [&](int64_t i, float s) { return s + (x[i] - m); }) / width;
  }
  const auto t = [&](int64_t i) { return (x[i] - m) - e; };
  const float squares =
      Sum16(n, [&](int64_t i, float s) { return std::fma(t(i), t(i), s); });
  const float r =
      1.0f / std::sqrt(squares / width + static_cast<float>(c.desc.norm_eps));
  for (int64_t i = 0; i < n; ++i) {
    const float gain = c.gain.empty() ? 1.0f : c.gain[i];
    const float bias = c.bias.empty() ? 0.0f : c.bias[i];
    y[i] = std::fma(t(i) * r, gain, bias);
  }
}

void ProjectProgram(const std::vector<float>& w, const std::vector<float>& bias,
                    const float* x, int64_t inputs, float* y) {
  const auto outputs = static_cast<int64_t>(bias.size());
  for (int64_t o = 0; o < outputs; ++o) {
    y[o] = bias[o];
    for (int64_t begin = 0; begin < inputs; begin += 256) {
      float chain = 0;
      for (int64_t i = begin; i < inputs && i < begin + 256; ++i) {
        chain = std::fma(x[i], w[i * outputs + o], chain);
      }
      y[o] = y[o] + chain;
    }
  }
}

void RopeProgram(const heed_block_desc& desc, int64_t position, float* head) {
  const std::vector<double> turns = RopeTurns(desc);
  const size_t pairs = turns.size();
  std::vector<float> cosine(pairs), sine(pairs);
  RopeAngles(turns, position, cosine.data(), sine.data());
  for (size_t i = 0; i < pairs; ++i) {
    const bool apart = desc.rope == HEED_ROPE_HALF;
    float& first = head[apart ? i : 2 * i];
    float& second = head[apart ? i + pairs : 2 * i + 1];
    const float a = first, b = second;
    first = std::fma(a, cosine[i], -(b * sine[i]));
    second = std::fma(b, cosine[i], a * sine[i]);
  }
}

// Heads that lie side by side, to [batch, heads, len, dim].
void Scatter(const BlockCase& c, const float* from, int64_t row, int64_t heads,
             int64_t dim, std::vector<float>* to) {
  const int64_t batch = row / c.len, token = row % c.len;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < dim; ++i) {
      (*to)[static_cast<size_t>(((batch * heads + head) * c.len + token) * dim +
                                i)] = from[head * dim + i];
    }
  }
}

void Attend(const BlockCase& c, BlockValues* values) {
  const heed_problem problem = AttentionOf(c);
  heed_call call;
  heed_call_init(&call);
  const heed_block_desc& desc = c.desc;
  call.q = heed_dense_input(values->q.data(), desc.heads_q, c.len, desc.dim_qk);
  call.k =
      heed_dense_input(values->k.data(), desc.heads_kv, c.len, desc.dim_qk);
  call.v = heed_dense_input(values->v.data(), desc.heads_kv, c.len, desc.dim_v);
  call.out =
      heed_dense_output(values->z.data(), desc.heads_q, c.len, desc.dim_v);
  call.alibi_slopes = c.slopes.data();
  call.sinks = c.sinks.data();
  RowProgramAttention(problem, call);
}

}  // namespace

heed_problem AttentionOf(const BlockCase& c) {
  heed_problem problem =
      MakeProblem(c.batch, c.desc.heads_q, c.desc.heads_kv, c.len, c.len,
                  c.desc.dim_qk, c.desc.dim_v,
                  c.desc.causal != 0 ? HEED_CAUSAL_TOP_LEFT : HEED_CAUSAL_NONE);
  problem.align = HEED_ALIGN_TOP_LEFT;
  problem.scale_mode = c.desc.scale_mode;
  problem.scale = c.desc.scale;
  problem.softcap = c.desc.softcap;
  problem.window = c.desc.window;
  problem.window_left = c.desc.window_left;
  problem.window_right = c.desc.window_right;
  problem.alibi = c.slopes.empty() ? 0 : 1;
  problem.sinks = c.sinks.empty() ? 0 : 1;
  return problem;
}

BlockValues BlockProgram(const BlockCase& c) {
  const heed_block_desc& desc = c.desc;
  const int64_t width = desc.d_model, rows = c.batch * c.len;
  const bool before =
      desc.norm != HEED_NORM_NONE && desc.norm_place == HEED_NORM_PRE;
  const bool after =
      desc.norm != HEED_NORM_NONE && desc.norm_place == HEED_NORM_POST;
  BlockValues values;
  heed_block_call unused;
  BindValues(c, c.batch, c.len, 0, &unused, &values);

  const std::vector<float> w = c.QkvValues(), biases = c.QkvBiases();
  std::vector<float> qkv(biases.size());
  for (int64_t row = 0; row < rows; ++row) {
    const float* x = c.x.data() + row * width;
    if (before) {
      NormProgram(c, x, values.ln.data() + row * width);
      x = values.ln.data() + row * width;
    }
    ProjectProgram(w, biases, x, width, qkv.data());
    float* q = qkv.data();
    float* k = q + desc.heads_q * desc.dim_qk;
    const float* v = k + desc.heads_kv * desc.dim_qk;
    if (desc.rope != HEED_ROPE_NONE) {
      const int64_t position =
          (c.positions.empty() ? 0 : c.positions[row / c.len]) + row % c.len;
      for (int64_t head = 0; head < desc.heads_q + desc.heads_kv; ++head) {
        RopeProgram(desc, position, q + head * desc.dim_qk);
      }
    }
    Scatter(c, q, row, desc.heads_q, desc.dim_qk, &values.q);
    Scatter(c, k, row, desc.heads_kv, desc.dim_qk, &values.k);
    Scatter(c, v, row, desc.heads_kv, desc.dim_v, &values.v);
  }
  if (rows != 0) Attend(c, &values);

  std::vector<float> merged(static_cast<size_t>(desc.heads_q * desc.dim_v));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t batch = row / c.len, token = row % c.len;
    for (int64_t head = 0; head < desc.heads_q; ++head) {
      for (int64_t i = 0; i < desc.dim_v; ++i) {
        merged[head * desc.dim_v + i] =
            values.z[((batch * desc.heads_q + head) * c.len + token) *
                         desc.dim_v +
                     i];
      }
    }
    float* attn_out = values.attn_out.data() + row * width;
    float* resid = values.resid.data() + row * width;
    float* y = values.y.data() + row * width;
    ProjectProgram(c.out.values, c.out.bias_values, merged.data(), c.out.inputs,
                   attn_out);
    for (int64_t i = 0; i < width; ++i) {
      resid[i] =
          desc.residual != 0 ? c.x[row * width + i] + attn_out[i] : attn_out[i];
      y[i] = resid[i];
    }
    if (after) {
      NormProgram(c, resid, y);
      std::copy_n(y, width, values.ln.data() + row * width);
    }
  }
  return values;
}

}  // namespace heed::test
