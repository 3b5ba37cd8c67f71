// Projections against the machine and against other libraries: GPT-2 small's
// 768 x 2304 and Llama 8B's 4096 x 6144, at several numbers of tokens.
//
// Everything takes turns within one run: heed, each library, and around them
// the roofs. Weights are so many copies, one after the other, that they come
// from memory, as those of a model's layers do.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/register.h"
#include "bench/sgemm_peers.h"
#include "runtime/convert.h"
#include "runtime/problem.h"
#include "runtime/projection.h"
#include "runtime/runner_tbb.h"
#include "tune/statistics.h"

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

struct Shape {
  size_t inputs, outputs;
};
constexpr Shape kShapes[] = {{768, 2304}, {4096, 6144}};
constexpr size_t kRows[] = {1, 17, 128, 1024};
constexpr int32_t kDtypes[] = {HEED_F32, HEED_F16, HEED_BF16};

void FillNormal(size_t seed, Floats* floats, size_t count) {
  *floats = AllocateFloats(count);
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  // A prime period, so that no two rows are alike.
  constexpr size_t kPeriod = 65521;
  for (size_t i = 0; i < std::min(count, kPeriod); ++i) {
    floats->get()[i] = normal(random);
  }
  for (size_t i = kPeriod; i < count; ++i) {
    floats->get()[i] = floats->get()[i - kPeriod];
  }
}

// Weights of one shape and type: packed for heed, and for f32 dense for the
// others.
class Weights {
 public:
  Weights(const Shape& shape, int32_t dtype, const TokenKernels& kernels)
      : shape_(shape) {
    const size_t count = shape.inputs * shape.outputs;
    const size_t bytes = count * static_cast<size_t>(ElementBytes(dtype));
    copies_ =
        std::max<size_t>(2 * LastLevelBytes(ThisMachine()) / bytes, 1) + 1;
    Floats first;
    FillNormal(1, &first, count);
    Bytes narrow = AllocateBytes(bytes);
    for (size_t i = 0; i < count; ++i) {
      Narrow(dtype, i, &first.get()[i], narrow.get());
    }
    heed_matrix matrix{};
    matrix.data = narrow.get();
    matrix.dtype = dtype;
    matrix.layout = HEED_LAYOUT_IN_OUT;
    const MatrixPart part = {&matrix, shape.outputs};
    for (size_t copy = 0; copy < copies_; ++copy) {
      packed_.emplace_back();
      PackMatrix(&part, 1, shape.inputs, kernels, TbbRunner(), 1,
                 &packed_.back());
      if (dtype != HEED_F32 && copy > 0) continue;
      dense_.push_back(AllocateFloats(count));
      std::copy_n(first.get(), count, dense_.back().get());
    }
  }

  const PackedMatrix& packed(size_t turn) const {
    return packed_[turn % copies_];
  }
  // For the peer of this number: no two read a copy one right after the other,
  // or the second finds it in the cache.
  const float* dense(size_t turn, size_t peer = 0) const {
    return dense_[(turn + peer * dense_.size() / 2) % dense_.size()].get();
  }
  const Shape& shape() const { return shape_; }

 private:
  // Stores *x as element i and makes it what was stored.
  static void Narrow(int32_t dtype, size_t i, float* x, char* to) {
    if (dtype == HEED_F16) {
      F16& element = reinterpret_cast<F16*>(to)[i];
      FromFloat(*x, &element);
      *x = ToFloat(element);
    } else if (dtype == HEED_BF16) {
      BF16& element = reinterpret_cast<BF16*>(to)[i];
      FromFloat(*x, &element);
      *x = ToFloat(element);
    } else {
      reinterpret_cast<float*>(to)[i] = *x;
    }
  }

  Shape shape_;
  size_t copies_;
  std::vector<PackedMatrix> packed_;
  std::vector<Floats> dense_;
};

// heed's projection of so many rows, ready to run on any copy of the weights.
class HeedProjection {
 public:
  HeedProjection(const Weights& weights, const TokenKernels& kernels,
                 size_t rows, size_t threads)
      : weights_(weights), kernels_(kernels), threads_(threads) {
    const PackedMatrix& matrix = weights.packed(0);
    run_.kernels = &kernels_;
    run_.cut =
        CutProjection(kernels, matrix, rows, threads, ThisMachine().l2.bytes);
    run_.x_stride = ScratchStride(matrix.inputs);
    run_.y_stride = ScratchStride(matrix.columns());
    FillNormal(2, &x_, rows * run_.x_stride);
    y_ = AllocateFloats(rows * run_.y_stride);
    run_.slice_bytes =
        sizeof(float) *
        ((ProjectionFloats(kernels, run_.cut, false) + 15) / 16 * 16 + 32);
    slices_ = AllocateBytes(threads * run_.slice_bytes);
    run_.x = x_.get();
    run_.y = y_.get();
    run_.slices = slices_.get();
  }

  void Run(size_t turn) {
    run_.matrix = &weights_.packed(turn);
    RunProjection(run_, TbbRunner(), threads_);
  }

  const float* x() const { return x_.get(); }
  size_t x_stride() const { return run_.x_stride; }

  // Some outputs against double; empty, or what is wrong.
  std::string Check(size_t rows) const {
    const Shape& shape = weights_.shape();
    for (const size_t row : {size_t{0}, rows / 2, rows - 1}) {
      for (size_t o = 0; o < shape.outputs; o += 97) {
        double want = 0, magnitude = 0;
        for (size_t i = 0; i < shape.inputs; ++i) {
          const double product =
              static_cast<double>(x_.get()[row * run_.x_stride + i]) *
              static_cast<double>(weights_.dense(0)[i * shape.outputs + o]);
          want += product;
          magnitude += std::abs(product);
        }
        const double got = y_.get()[row * run_.y_stride + o];
        if (!(std::abs(got - want) <= 300 * 0x1p-24 * magnitude)) {
          return fmt::format("y[{}, {}] is {}, not {}", row, o, got, want);
        }
      }
    }
    return "";
  }

 private:
  const Weights& weights_;
  TokenKernels kernels_;
  size_t threads_;
  ProjectionRun run_{};
  Floats x_, y_;
  Bytes slices_;
};

double SecondsOf(const std::function<void()>& call) {
  const Clock::time_point begin = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Case {
  Shape shape;
  int32_t dtype;
  size_t rows;
  int threads;
};

void RunProject(benchmark::State& state, BenchContext& context,
                const BenchTarget& target, const Case& c) {
  const TokenKernels kernels = GetTokenKernels(target.id);
  const Weights weights(c.shape, c.dtype, kernels);
  HeedProjection heed(weights, kernels, c.rows, static_cast<size_t>(c.threads));
  heed.Run(0);
  const std::string wrong = heed.Check(c.rows);
  if (!wrong.empty()) {
    context.SetFailed();
    state.SkipWithError(wrong.c_str());
    return;
  }
  Floats x = AllocateFloats(c.rows * c.shape.inputs);
  Floats y = AllocateFloats(c.rows * c.shape.outputs);
  for (size_t row = 0; row < c.rows; ++row) {
    std::copy_n(heed.x() + row * heed.x_stride(), c.shape.inputs,
                x.get() + row * c.shape.inputs);
  }
  // Libraries multiply f32 only.
  std::vector<SgemmPeer> peers;
  if (c.dtype == HEED_F32) peers = SgemmPeers();
  for (const SgemmPeer& peer : peers) peer.set_threads(c.threads);

  Roof& roof = context.RoofOf(target, c.threads);
  double fma = roof.FmaPeak(), read = roof.ReadPeak();
  const double canary = roof.CanaryRate();
  std::vector<double> heed_seconds;
  std::vector<std::vector<double>> peer_seconds(peers.size());
  size_t turn = 0;
  for (auto _ : state) {
    ++turn;
    heed_seconds.push_back(SecondsOf([&] { heed.Run(turn); }));
    state.SetIterationTime(heed_seconds.back());
    for (size_t i = 0; i < peers.size(); ++i) {
      peer_seconds[i].push_back(SecondsOf([&] {
        const auto inputs = static_cast<int64_t>(c.shape.inputs);
        const auto outputs = static_cast<int64_t>(c.shape.outputs);
        peers[i].multiply(/*transpose_b=*/false, static_cast<int64_t>(c.rows),
                          outputs, inputs, 1.0f, x.get(), inputs,
                          weights.dense(turn, i), outputs, y.get(), outputs);
      }));
    }
  }
  fma = std::max(fma, roof.FmaPeak());
  read = std::max(read, roof.ReadPeak());

  const double seconds = Median(heed_seconds);
  const double elements = static_cast<double>(c.shape.inputs) *
                          static_cast<double>(c.shape.outputs);
  const double flops = 2 * static_cast<double>(c.rows) * elements;
  const double bytes = elements * static_cast<double>(ElementBytes(c.dtype));
  state.counters["GFLOP/s"] = flops / seconds * 1e-9;
  state.counters["pct_peak"] = 100 * flops / seconds / fma;
  state.counters["GB/s"] = bytes / seconds * 1e-9;
  state.counters["pct_bw"] = 100 * bytes / seconds / read;
  state.counters["canary"] =
      std::min(canary, roof.CanaryRate()) / roof.best_canary();
  std::string label;
  for (size_t i = 0; i < peers.size(); ++i) {
    // Above 1: heed is faster.
    state.counters["vs_" + peers[i].name] = Median(peer_seconds[i]) / seconds;
    label += (i == 0 ? "" : "; ") + peers[i].name + " " + peers[i].version;
  }
  state.SetLabel(label);
}

}  // namespace

void RegisterProjectBenchmarks(BenchContext* context) {
  for (const BenchTarget& target : context->targets()) {
    for (const int threads : context->threads()) {
      for (const Shape& shape : kShapes) {
        for (const int32_t dtype : kDtypes) {
          for (const size_t rows : kRows) {
            const std::string name = fmt::format(
                "project/in:{}/out:{}/{}/tokens:{}/threads:{}/target:{}",
                shape.inputs, shape.outputs, DtypeName(dtype), rows, threads,
                target.name);
            const Case c = {shape, dtype, rows, threads};
            benchmark::RegisterBenchmark(name.c_str(),
                                         [=](benchmark::State& state) {
                                           RunProject(state, *context, target,
                                                      c);
                                         })
                ->UseManualTime()
                ->Unit(benchmark::kMicrosecond);
          }
        }
      }
    }
  }
}

}  // namespace heed
