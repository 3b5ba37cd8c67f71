#include "tune/peaks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace heed {
namespace {

constexpr double kPieceSeconds = 0.02;

// Runs `work` on that many threads at once and returns the seconds from the
// common start until the last has ended.
double RunTogether(int threads, const std::function<void(int)>& work) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) {
    others.emplace_back([&, thread] {
      ++ready;
      while (!go) std::this_thread::yield();
      work(thread);
    });
  }
  while (ready != threads - 1) std::this_thread::yield();
  const double start = MonotonicSeconds();
  go = true;
  work(0);
  for (std::thread& other : others) other.join();
  return MonotonicSeconds() - start;
}

// Best gigabytes per second of reading `floats` once, cut evenly over threads.
double ReadGbs(const Probes& probes, const std::vector<float>& floats,
               int threads, double seconds) {
  const size_t share = floats.size() / static_cast<size_t>(threads) / 64 * 64;
  std::vector<double> bytes(static_cast<size_t>(threads));
  double best = 0;
  const double end = MonotonicSeconds() + seconds;
  do {
    const double took = RunTogether(threads, [&](int thread) {
      const auto t = static_cast<size_t>(thread);
      float sink = 0;
      bytes[t] = probes.read(floats.data() + t * share, share, &sink);
    });
    double total = 0;
    for (const double b : bytes) total += b;
    best = std::max(best, total / took * 1e-9);
  } while (MonotonicSeconds() < end);
  return best;
}

}  // namespace

double MonotonicSeconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double FmaGflops(const Probes& probes, int threads, double seconds) {
  // How many iterations make a piece long enough to time.
  size_t iterations = 1024;
  float sink = 0;
  for (;;) {
    const double start = MonotonicSeconds();
    probes.fma(iterations, &sink);
    const double took = MonotonicSeconds() - start;
    if (took > kPieceSeconds / 2) break;
    iterations *= 2;
  }
  std::vector<double> operations(static_cast<size_t>(threads));
  double best = 0;
  const double end = MonotonicSeconds() + seconds;
  do {
    const double took = RunTogether(threads, [&](int thread) {
      float thread_sink = 0;
      operations[static_cast<size_t>(thread)] =
          probes.fma(iterations, &thread_sink);
    });
    double total = 0;
    for (const double o : operations) total += o;
    best = std::max(best, total / took * 1e-9);
  } while (MonotonicSeconds() < end);
  return best;
}

Peaks MeasurePeaks(const Probes& probes, const Machine& machine, int threads) {
  Peaks peaks;
  peaks.fma_gflops_1t = FmaGflops(probes, 1, 0.2);
  peaks.fma_gflops_all =
      threads == 1 ? peaks.fma_gflops_1t : FmaGflops(probes, threads, 0.2);
  // Far more than the L3 holds, so that next to nothing of it is read there.
  const size_t buffer_bytes = std::clamp<size_t>(
      machine.l3.bytes * 4, size_t{64} << 20, size_t{512} << 20);
  const std::vector<float> floats(buffer_bytes / sizeof(float), 1.0f);
  peaks.read_gbs_1t = ReadGbs(probes, floats, 1, 0.2);
  peaks.read_gbs_all =
      threads == 1 ? peaks.read_gbs_1t : ReadGbs(probes, floats, threads, 0.2);
  return peaks;
}

void Canary::Free::operator()(float* p) const { std::free(p); }

Canary::Canary(const Probes& probes)
    : probes_(probes),
      buffer_(static_cast<float*>(
          std::aligned_alloc(64, kCanaryFloats * sizeof(float)))) {
  std::fill_n(buffer_.get(), kCanaryFloats, 0.5f);
}

double Canary::Sample() {
  constexpr size_t kRepetitions = 8;
  const double start = MonotonicSeconds();
  const double elements = probes_.canary(buffer_.get(), kRepetitions);
  return (MonotonicSeconds() - start) / elements;
}

}  // namespace heed
