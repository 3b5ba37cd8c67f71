// The kernels of tokens by themselves, on every target: they read and write
// nothing outside their arrays, and give what the definition says for any part
// of a matrix.
#include "kernels/token_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/convert.h"
#include "runtime/packed_matrix.h"
#include "runtime/runner_tbb.h"
#include "runtime/targets.h"
#include "tests/attention_case.h"
#include "tests/fenced_buffer.h"
#include "tests/input_families.h"

namespace heed::test {
namespace {

std::vector<float> Normal(Random* random, size_t count) {
  std::vector<float> x(count);
  random->FillNormal(&x);
  return x;
}

// A matrix of weights of a type, packed, and its values.
struct Matrix {
  PackedMatrix packed;
  std::vector<float> values;  // [inputs, outputs]
  std::vector<float> biases;  // [outputs]
};

Matrix MakeMatrix(Random* random, const TokenKernels& kernels, size_t inputs,
                  size_t outputs, int32_t dtype) {
  Matrix m;
  m.values = Normal(random, inputs * outputs);
  m.biases = Normal(random, outputs);
  std::vector<F16> f16(m.values.size());
  std::vector<BF16> bf16(m.values.size());
  heed_matrix stored{};
  stored.data = m.values.data();
  for (size_t i = 0; i < m.values.size(); ++i) {
    FromFloat(m.values[i], &f16[i]);
    FromFloat(m.values[i], &bf16[i]);
    if (dtype == HEED_F16) m.values[i] = ToFloat(f16[i]);
    if (dtype == HEED_BF16) m.values[i] = ToFloat(bf16[i]);
  }
  if (dtype == HEED_F16) stored.data = f16.data();
  if (dtype == HEED_BF16) stored.data = bf16.data();
  stored.dtype = dtype;
  stored.layout = HEED_LAYOUT_IN_OUT;
  stored.bias = {m.biases.data(), HEED_F32, 0};
  const MatrixPart part = {&stored, outputs};
  EXPECT_EQ(PackMatrix(&part, 1, inputs, kernels, TbbRunner(), 1, &m.packed),
            HEED_OK);
  return m;
}

// All of a packed matrix as the bytes that a kernel may read.
std::vector<char> BytesOf(const PackedMatrix& packed) {
  const size_t bytes =
      packed.inputs * packed.columns() * (packed.dtype == DType::kF32 ? 4 : 2);
  const char* data = static_cast<const char*>(packed.data.get());
  return std::vector<char>(data, data + bytes);
}

// x [rows, inputs] times the matrix, by the definition.
std::vector<float> Product(const Matrix& m, const std::vector<float>& x,
                           size_t rows) {
  const size_t inputs = m.packed.inputs, outputs = m.packed.outputs;
  std::vector<float> y;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t o = 0; o < outputs; ++o) {
      float sum = m.biases[o];
      for (size_t k = 0; k < inputs; k += kInputChunk) {
        float chain = 0;
        for (size_t j = k; j < std::min(inputs, k + kInputChunk); ++j) {
          chain =
              std::fma(x[row * inputs + j], m.values[j * outputs + o], chain);
        }
        sum = sum + chain;
      }
      y.push_back(sum);
    }
  }
  return y;
}

void CheckProject(const TokenKernels& kernels, int32_t dtype, size_t rows,
                  size_t inputs, bool fence_after) {
  const size_t columns = kernels.panel_columns;
  const size_t panels = 11, outputs = panels * columns - 1;
  Random random(rows * 1000 + inputs);
  const Matrix m = MakeMatrix(&random, kernels, inputs, outputs, dtype);
  ASSERT_EQ(m.packed.panels, panels);
  const std::vector<float> x_values = Normal(&random, rows * inputs);
  const std::vector<float> want = Product(m, x_values, rows);
  const auto* bias = static_cast<const float*>(m.packed.bias.get());
  FencedBuffer<float> x(x_values, fence_after);
  FencedBuffer<char> w(BytesOf(m.packed), fence_after);
  FencedBuffer<float> biases(std::vector<float>(bias, bias + panels * columns),
                             fence_after);
  FencedBuffer<float> scratch(std::vector<float>(kInputChunk * columns, NAN),
                              fence_after);
  for (const auto& [begin, end] :
       {std::pair<size_t, size_t>{0, panels}, {3, 4}, {2, 11}, {5, 10}}) {
    const size_t width = (end - begin) * columns;
    FencedBuffer<float> y(std::vector<float>(rows * width, NAN), fence_after);
    ProjectTask task{};
    task.x = x.data();
    task.x_stride = inputs;
    task.rows = rows;
    task.inputs = inputs;
    task.w = w.data();
    task.panels = panels;
    task.bias = biases.data();
    task.panel_begin = begin;
    task.panel_end = end;
    task.y = y.data();
    task.y_stride = width;
    task.scratch = scratch.data();
    kernels.project[static_cast<size_t>(m.packed.dtype)](task);
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < width; ++i) {
        const size_t output = begin * columns + i;
        if (output >= outputs) continue;
        const float got = y.data()[row * width + i];
        const float sum = want[row * outputs + output];
        if (kernels.fused) {
          ASSERT_TRUE(SameBits(got, sum))
              << kernels.target << " type " << dtype << " rows " << rows
              << " inputs " << inputs << " panels " << begin << " to " << end;
        } else {
          ASSERT_NEAR(got, sum, 1e-3);
        }
      }
    }
  }
}

TEST(TokenKernels, ProjectionsStayInsideTheirArrays) {
  for (const int64_t target : RunnableTargets()) {
    const TokenKernels kernels = GetTokenKernels(target);
    for (const int32_t dtype : {HEED_F32, HEED_F16, HEED_BF16}) {
      for (const size_t rows : {1, 2, 3, 5, 6, 7, 8, 9, 13}) {
        for (const size_t inputs : {1, 16, 255, 256, 257, 600}) {
          for (const bool fence_after : {true, false}) {
            CheckProject(kernels, dtype, rows, inputs, fence_after);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(TokenKernels, NormsStayInsideTheirArrays) {
  for (const int64_t target : RunnableTargets()) {
    const TokenKernels kernels = GetTokenKernels(target);
    for (size_t width = 1; width <= 70; ++width) {
      Random random(width);
      const std::vector<float> values = Normal(&random, width);
      for (const bool after : {true, false}) {
        FencedBuffer<float> x(values, after);
        FencedBuffer<float> y(std::vector<float>(width, NAN), after);
        FencedBuffer<float> gain(Normal(&random, width), after);
        FencedBuffer<float> bias(Normal(&random, width), after);
        for (const NormKind kind :
             {NormKind::kNone, NormKind::kLayer, NormKind::kRms}) {
          const NormTask task = {kind, width, 1e-5f, gain.data(), bias.data()};
          kernels.norm(task, x.data(), y.data());
          const std::vector<float> apart(y.data(), y.data() + width);
          FencedBuffer<float> in_place(values, after);
          kernels.norm(task, in_place.data(), in_place.data());
          for (size_t i = 0; i < width; ++i) {
            ASSERT_FALSE(std::isnan(apart[i]));
            ASSERT_TRUE(SameBits(apart[i], in_place.data()[i]));
          }
        }
      }
    }
  }
}

TEST(TokenKernels, TurnsAndSumsStayInsideTheirArrays) {
  for (const int64_t target : RunnableTargets()) {
    const TokenKernels kernels = GetTokenKernels(target);
    for (size_t pairs = 1; pairs <= 40; ++pairs) {
      Random random(pairs);
      const std::vector<float> values = Normal(&random, 2 * pairs);
      // Of 3, 4 and 5: right-angled.
      const std::vector<float> c(pairs, 0.6f), s(pairs, 0.8f);
      for (const bool after : {true, false}) {
        FencedBuffer<float> cosine(c, after), sine(s, after);
        FencedBuffer<float> halves(values, after), inter(values, after);
        FencedBuffer<float> sum(values, after), addend(values, after);
        kernels.turn_halves(cosine.data(), sine.data(), pairs, halves.data());
        kernels.turn_interleaved(cosine.data(), sine.data(), pairs,
                                 inter.data());
        kernels.add(addend.data(), 2 * pairs, sum.data());
        for (size_t i = 0; i < pairs; ++i) {
          const auto near = [&](float got, float a, float b, float sign) {
            ASSERT_NEAR(got, 0.6f * a + sign * 0.8f * b, 1e-6);
          };
          const float a = values[i], b = values[i + pairs];
          near(halves.data()[i], a, b, -1);
          near(halves.data()[i + pairs], b, a, 1);
          const float even = values[2 * i], odd = values[2 * i + 1];
          near(inter.data()[2 * i], even, odd, -1);
          near(inter.data()[2 * i + 1], odd, even, 1);
          ASSERT_EQ(sum.data()[i], 2 * values[i]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace heed::test
