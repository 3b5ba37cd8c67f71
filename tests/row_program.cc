#include "tests/row_program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/row_constants.h"
#include "tests/special_values.h"

namespace heed::test {
namespace {

uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

float FromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kLog2E = 1.44269504f;

// A NaN stays a NaN: it fails the comparison.
float MaxKeepsNan(float s, float low) { return s < low ? low : s; }

// The nearest finite number; a NaN stays a NaN.
float Saturate(float x) {
  const float low = x < -kLargest ? -kLargest : x;
  return low > kLargest ? kLargest : low;
}

// 2^difference for a difference of two running maxima, 0 below 2^-126. A NaN
// comes only of two infinite maxima, and that row is NaN through its sum
// whatever we return.
float Power(float difference) {
  const float clamped = difference > kFlush ? difference : kFlush;
  return FromBits(static_cast<uint32_t>(static_cast<int>(clamped) + 127) << 23);
}

// A weight in its two parts: p in [2^-0.5, 2^0.5] and the exponent field to add
// to it.
struct Weight {
  float p;
  uint32_t exponent;
  float Product() const { return FromBits(Bits(p) + exponent); }
  float Power() const { return FromBits(Bits(1.0f) + exponent); }
};

Weight WeightOf(float s, float m) {
  float t, f;
  if (std::fabs(m) < kExactMaximum) {
    const float x = MaxKeepsNan(s, m + kFlush);
    t = x + (kRound - m);
    f = x - (t - (kRound - m));
  } else {
    const float y = MaxKeepsNan(s - m, kFlush);
    t = y + kRound;
    f = y - (t - kRound);
  }
  float p = std::fma(f, kExp2C5, kExp2C4);
  p = std::fma(f, p, kExp2C3);
  p = std::fma(f, p, kExp2C2);
  p = std::fma(f, p, kExp2C1);
  p = std::fma(f, p, 1.0f);
  return {p, Bits(t) << 23};
}

// What a run of keys leaves behind: its running maximum, sum and blend.
struct State {
  explicit State(size_t dim_v) : blend(dim_v, 0.0f) {}
  float maximum = kNoMaximum;
  float sum = 0.0f;
  std::vector<float> blend;
};

void TakeKey(const Row& row, int64_t key, float score, State* state) {
  const Weight weight = WeightOf(score, state->maximum);
  state->sum = std::fma(weight.p, weight.Power(), state->sum);
  const float* v = row.v.Key(key);
  for (size_t c = 0; c < row.dim_v; ++c) {
    state->blend[c] = std::fma(weight.Product(), v[c], state->blend[c]);
  }
}

void RaiseMaximum(float highest, State* state) {
  if (!(highest > state->maximum + kRise)) return;
  const float raised = std::ceil(highest);
  const float factor = Power(state->maximum - raised);
  state->sum *= factor;
  for (float& o : state->blend) o *= factor;
  state->maximum = raised;
}

// How far a key lies beyond the row. The step's first key goes first: that
// difference is the same for all of a step's keys, and what is added to it is a
// small whole number.
float Distance(const Row& row, int64_t key) {
  const int64_t step = key / static_cast<int64_t>(kStep) * kStep;
  return static_cast<float>(step - row.position) +
         static_cast<float>(key - step);
}

// A visible key's score, in the log2 domain.
float Score(const Row& row, const std::vector<float>& scaled_q, int64_t key) {
  const float* k = row.k.Key(key);
  // Two chains, even and odd elements: max abs error of out on N(0, 1) data of
  // 8 seeds 7.4e-7 (T 128 D 64) and 9.8e-7 (D 128); of one chain 1.23e-6 and
  // 1.24e-6, and no faster.
  float chain[2] = {0.0f, 0.0f};
  for (size_t d = 0; d < row.dim_qk; ++d) {
    chain[d % 2] = std::fma(scaled_q[d], k[d], chain[d % 2]);
  }
  const float raw = chain[0] + chain[1];
  float s = raw;
  if (row.softcap > 0) s = RowSoftCap(s, row.softcap);
  if (row.slope != nullptr) {
    s = std::fma(Saturate(*row.slope * kLog2E), Distance(row, key), s);
  }
  if (row.added != nullptr) s += Saturate(row.added[key] * kLog2E);
  // No finite score, slope and mask make a score that hides a key (promise P4),
  // but an infinite score stays what it is.
  const bool is_biased = row.slope != nullptr || row.added != nullptr;
  return is_biased && std::fabs(raw) < kInfinity ? Saturate(s) : s;
}

// Keys [begin, end) of one chunk, less those that the row does not see.
State AttendChunk(const Row& row, const std::vector<float>& scaled_q,
                  int64_t begin, int64_t end, size_t step) {
  State state(row.dim_v);
  std::vector<int64_t> keys;
  std::vector<float> scores;
  const int64_t step_keys = static_cast<int64_t>(step);
  for (int64_t first = begin; first < end;) {
    const int64_t last = std::min(end, (first / step_keys + 1) * step_keys);
    keys.clear();
    scores.clear();
    float highest = -kInfinity;
    for (int64_t key = first; key < last; ++key) {
      if (!row.Sees(key)) continue;
      keys.push_back(key);
      scores.push_back(Score(row, scaled_q, key));
      highest = std::max(highest, scores.back());  // which passes over a NaN
    }
    RaiseMaximum(highest, &state);
    for (size_t i = 0; i < keys.size(); ++i) {
      TakeKey(row, keys[i], scores[i], &state);
    }
    first = last;
  }
  return state;
}

void Merge(const State& chunk, State* row) {
  const float raised = std::max(row->maximum, chunk.maximum);
  const float row_factor = Power(row->maximum - raised);
  const float chunk_factor = Power(chunk.maximum - raised);
  row->sum = std::fma(chunk.sum, chunk_factor, row->sum * row_factor);
  for (size_t c = 0; c < row->blend.size(); ++c) {
    row->blend[c] =
        std::fma(chunk.blend[c], chunk_factor, row->blend[c] * row_factor);
  }
  row->maximum = raised;
}

// A logit that takes weight and has no value.
void TakeSink(float sink, State* state) {
  if (sink == -kInfinity) return;
  const float z = Saturate(sink * kLog2E);
  const float old = state->maximum;
  state->maximum = std::max(old, std::ceil(z));  // which passes over a NaN
  const float factor = Power(old - state->maximum);
  const Weight weight = WeightOf(z, state->maximum);
  state->sum = std::fma(weight.p, weight.Power(), state->sum * factor);
  for (float& o : state->blend) o *= factor;
}

bool SeesAny(const Row& row) {
  for (int64_t key = row.begin; key < row.end; ++key) {
    if (row.Sees(key)) return true;
  }
  return false;
}

}  // namespace

const float* KeyRows::Key(int64_t key) const {
  if (pages == nullptr) return data + key * stride;
  return data + pages[key / page_size] * page_stride + key % page_size * stride;
}

bool Row::Sees(int64_t key) const {
  return key >= begin && key < end &&
         (visible == nullptr || visible[key / visible_block] != 0) &&
         (added == nullptr || added[key] != -kInfinity);
}

float RowWeight(float s, float m) { return WeightOf(s, m).Product(); }

float RowLog2(float x) {
  if (std::isnan(x)) return x;
  int exponent = static_cast<int>(Bits(x) >> 23) - 127;
  float mantissa = FromBits((Bits(x) & 0x007FFFFFu) | Bits(1.0f));
  if (mantissa > kSqrt2) {
    mantissa *= 0.5f;
    exponent += 1;
  }
  const float r = mantissa - 1.0f;
  float p = kLog2Coefficients[8];
  for (int i = 7; i >= 0; --i) p = std::fma(r, p, kLog2Coefficients[i]);
  return std::fma(r, p, static_cast<float>(exponent));
}

// tanh(x) = E / (E + 2) with E = e^2x - 1 = 2^y - 1, y = 2 x log2(e): no
// cancellation near 0, where E is the polynomial's f * (c1 + ...) alone. The
// largest y keeps E + 2 finite; tanh is 1 long before.
float RowSoftCap(float s, float softcap) {
  const float cap = softcap * kLog2E;
  const float twice = 2.0f / softcap;
  const float product = std::fabs(s) * twice;
  const float y = product > 60.0f ? 60.0f : product;
  const float t = y + kRound;
  const float f = y - (t - kRound);
  float h = std::fma(f, kExp2C5, kExp2C4);
  h = std::fma(f, h, kExp2C3);
  h = std::fma(f, h, kExp2C2);
  h = std::fma(f, h, kExp2C1);
  const float g = h * f;
  const float power = FromBits((Bits(t) << 23) + Bits(1.0f));
  const float e = std::fma(power, g, power - 1.0f);
  return std::copysign(cap * (e / (e + 2.0f)), s);
}

void RowProgram(const Row& row, float* out, float* lse, size_t step) {
  if (!SeesAny(row)) {
    std::fill(out, out + row.dim_v, 0.0f);
    *lse = row.sink == nullptr ? -kInfinity : *row.sink;
    return;
  }
  std::vector<float> scaled_q(row.dim_qk);
  for (size_t d = 0; d < row.dim_qk; ++d) scaled_q[d] = row.q[d] * row.q_scale;

  // Merging a chunk into nothing gives the chunk's bits, and a chunk of which
  // the row sees no key changes none.
  const int64_t chunk_keys = static_cast<int64_t>(kChunk);
  State state(row.dim_v);
  for (int64_t first = row.begin; first < row.end;) {
    const int64_t last =
        std::min(row.end, (first / chunk_keys + 1) * chunk_keys);
    Merge(AttendChunk(row, scaled_q, first, last, step), &state);
    first = last;
  }
  if (row.sink != nullptr) TakeSink(*row.sink, &state);

  const float reciprocal = 1.0f / state.sum;
  for (size_t c = 0; c < row.dim_v; ++c) {
    out[c] = std::fma(reciprocal, state.blend[c], 0.0f);
  }
  *lse = state.sum == 0.0f ? -kInfinity
                           : kLn2 * (state.maximum + RowLog2(state.sum));
}

}  // namespace heed::test
