// Machines that do not exist, to race on: known times under known noise, with a
// clock of their own.
#ifndef HEED_TESTS_TUNE_SIMULATOR_H_
#define HEED_TESTS_TUNE_SIMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tune/race.h"
#include "tune/sampler.h"

namespace heed::test {

enum class NoiseKind {
  kNone,       // the clock's own 0.1 %
  kGaussian,   // 1 %
  kLogNormal,  // 10 %
  kBimodal,    // blocks of 1.0 and 1.4, which the canary sees
  kDrift,      // 20 % in ten seconds
  kSpikes,     // one sample in a hundred takes ten times as long
  kTrace       // samples of a shared server, recorded, from a random place on
};
constexpr NoiseKind kAllNoise[] = {NoiseKind::kNone,      NoiseKind::kGaussian,
                                   NoiseKind::kLogNormal, NoiseKind::kBimodal,
                                   NoiseKind::kDrift,     NoiseKind::kSpikes,
                                   NoiseKind::kTrace};
const char* NameOf(NoiseKind kind);

class SimulatedMachine : public Sampler {
 public:
  // Seconds of one iteration of each candidate; 0 is the default.
  SimulatedMachine(std::vector<double> seconds, NoiseKind kind, uint64_t seed);

  Timed Sample(size_t candidate, size_t iterations) override;
  double Now() override { return now_; }
  size_t samples() const { return samples_; }

 private:
  double Normal() { return normal_(random_); }

  std::vector<double> seconds_;
  NoiseKind kind_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_{0, 1};
  double now_ = 0, block_end_ = 0;
  bool slow_ = false;
  size_t samples_ = 0, place_ = 0;
};

// Samples of the recorded trace: time and canary, each over its best.
struct TracePoint {
  double time, canary;
};
const std::vector<TracePoint>& NoiseTrace();

// What the tuner does to a class at effort `normal`, on simulated machines for
// the shape and for two guards.
struct SimulatedClass {
  std::vector<double> seconds;        // of the shape's candidates
  std::vector<double> guard_seconds;  // the same on guard shapes; empty: equal
  NoiseKind kind = NoiseKind::kNone;
  uint64_t seed = 1;
  int more_rounds = 200;  // that the budget leaves for an undecided class
};
struct SimulatedResult {
  bool adopted = false;
  size_t pick = 0;  // candidate; 0 if nothing was adopted
  Confirmation confirmation;
  size_t samples = 0;
};
SimulatedResult TuneSimulated(const SimulatedClass& what, const Noise& noise);

// The A/A run of such a machine.
Noise SimulatedNoise(NoiseKind kind, uint64_t seed);

}  // namespace heed::test

#endif  // HEED_TESTS_TUNE_SIMULATOR_H_
