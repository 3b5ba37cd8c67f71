#include "bench/roof.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

namespace heed {
namespace {

using Clock = std::chrono::steady_clock;

// Long enough for the clock and for the threads to overlap, short enough to
// stand between two samples of attention.
constexpr double kProbeSeconds = 1e-3;
constexpr int kProbesPerPeak = 5;
constexpr int kReadsPerPeak = 3;

double Seconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Runs work(thread, &sink) on `threads` threads that start together. Plain
// threads, not the pool that attention runs on: a peak must not depend on a
// scheduler. They spin until all have arrived, so that none begins alone.
ProbeResult RunTogether(int threads,
                        const std::function<double(int, float*)>& work) {
  struct alignas(64) Lane {
    Clock::time_point begin, end;
    double work = 0;
    float sink = 0;
  };
  std::vector<Lane> lanes(threads);
  std::atomic<int> arrived{0};
  const auto body = [&](int thread) {
    Lane& lane = lanes[thread];
    arrived.fetch_add(1);
    while (arrived.load() < threads) std::this_thread::yield();
    lane.begin = Clock::now();
    lane.work = work(thread, &lane.sink);
    lane.end = Clock::now();
  };
  std::vector<std::thread> team;
  for (int thread = 1; thread < threads; ++thread) {
    team.emplace_back(body, thread);
  }
  body(0);
  for (std::thread& member : team) member.join();

  ProbeResult result;
  result.sound = true;
  Clock::time_point begin = lanes[0].begin, end = lanes[0].end;
  for (const Lane& lane : lanes) {
    begin = std::min(begin, lane.begin);
    end = std::max(end, lane.end);
    result.work += lane.work;
    result.sound = result.sound && lane.work > 0 && std::isfinite(lane.sink);
    const double rate = lane.work / Seconds(lane.begin, lane.end);
    result.slowest =
        result.slowest == 0 ? rate : std::min(result.slowest, rate);
  }
  result.seconds = Seconds(begin, end);
  return result;
}

}  // namespace

size_t LastLevelBytes(const Machine& machine) {
  const Cache& last = machine.l3.bytes != 0 ? machine.l3 : machine.l2;
  const int sharing = std::max(1, last.cores_sharing);
  const int instances = (std::max(1, machine.cores) + sharing - 1) / sharing;
  return last.bytes * static_cast<size_t>(instances);
}

ReadBuffer::ReadBuffer(const Machine& machine)
    : count_((4 * LastLevelBytes(machine) + (size_t{1} << 20)) /
             sizeof(float)) {}

const float* ReadBuffer::data() {
  if (floats_ == nullptr) {
    floats_ = AllocateFloats(count_);
    std::fill_n(floats_.get(), count_, 1.0f);
  }
  return floats_.get();
}

Roof::Roof(int64_t target, int threads, ReadBuffer* buffer)
    : probes_(GetProbes(target)), threads_(threads), buffer_(buffer) {
  for (int thread = 0; thread < threads; ++thread) {
    canary_.push_back(AllocateFloats(kCanaryFloats));
    std::fill_n(canary_.back().get(), kCanaryFloats, 0.5f);
  }
  Calibrate(&Roof::Fma, &fma_iterations_);
  Calibrate(&Roof::Canary, &canary_repetitions_);
}

// Doubles `amount` until a probe takes long enough even when nothing disturbs
// it: the shortest of three counts.
void Roof::Calibrate(ProbeResult (Roof::*probe)(), size_t* amount) {
  constexpr size_t kMost = size_t{1} << 40;
  const auto shortest = [&] {
    double seconds = (this->*probe)().seconds;
    for (int i = 1; i < 3; ++i) {
      seconds = std::min(seconds, (this->*probe)().seconds);
    }
    return seconds;
  };
  while (shortest() < kProbeSeconds && *amount < kMost) *amount *= 2;
}

ProbeResult Roof::Fma() {
  return RunTogether(threads_, [this](int, float* sink) {
    return probes_.fma(fma_iterations_, sink);
  });
}

ProbeResult Roof::Read() {
  const float* const data = buffer_->data();
  const size_t part = buffer_->count() / threads_;
  return RunTogether(threads_, [this, data, part](int thread, float* sink) {
    return probes_.read(data + part * thread, part, sink);
  });
}

ProbeResult Roof::Canary() {
  return RunTogether(threads_, [this](int thread, float*) {
    return probes_.canary(canary_[thread].get(), canary_repetitions_);
  });
}

double Roof::FmaPeak() {
  double best = 0;
  for (int i = 0; i < kProbesPerPeak; ++i) best = std::max(best, Fma().rate());
  return best;
}

double Roof::ReadPeak() {
  double best = 0;
  for (int i = 0; i < kReadsPerPeak; ++i) best = std::max(best, Read().rate());
  return best;
}

double Roof::CanaryRate() {
  const double rate = Canary().slowest;
  best_canary_ = std::max(best_canary_, rate);
  return rate;
}

}  // namespace heed
