#include "bench/provenance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>  // where newer releases keep join
#include <heed.h>

#include <ctime>

#include "bench/git_commit.h"  // written by git_commit.cmake at each build
#include "kernels/probe.h"
#include "runtime/machine.h"

namespace heed {
namespace {

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// The program by its name alone: where it lay says nothing about the figures.
std::string CommandLine(int argc, const char* const* argv) {
  std::string command = "heed_bench";
  for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
  return command;
}

std::string CompilerName() {
#if defined(__clang__)
  return std::string("clang ") + __clang_version__;
#elif defined(__GNUC__)
  return std::string("gcc ") + __VERSION__;
#else
  return "unknown";
#endif
}

std::string Caches(const Machine& machine) {
  return fmt::format("L1d {} KiB, L2 {} KiB, L3 {} KiB shared by {} ({})",
                     machine.l1d.bytes >> 10, machine.l2.bytes >> 10,
                     machine.l3.bytes >> 10, machine.l3.cores_sharing,
                     machine.cache_source);
}

}  // namespace

const char* GitCommit() { return kGitCommit; }

Provenance CollectProvenance(int argc, const char* const* argv) {
  const Machine& machine = ThisMachine();
  return {
      {"date", UtcNow()},
      {"command", CommandLine(argc, argv)},
      {"cpu", machine.brand.empty() ? "unknown" : machine.brand},
      {"machine_key", MachineKey(machine)},
      {"targets", fmt::format("{}", fmt::join(machine.targets, " "))},
      {"threads", std::to_string(machine.threads)},
      {"caches", Caches(machine)},
      {"version", heed_version()},
      {"commit", kGitCommit},
      {"compiler", CompilerName()},
      {"highway", HighwayVersion()},
  };
}

std::string ProvenanceText(const Provenance& provenance) {
  std::string text;
  for (const auto& [name, value] : provenance) {
    text += fmt::format("- {}: `{}`\n", name, value);
  }
  return text;
}

}  // namespace heed
