// `heed tune try`: what `heed tune run --isolate` starts for itself. Nobody
// else has use for it, so --help does not list it.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tune/commands.h"
#include "tune/trial_process.h"

namespace heed {
namespace {

struct TryOptions {
  std::string problem;
  std::vector<std::string> candidates;
  int threads = 1;
  uint64_t seed = 1;
  size_t first = 1;
};

int Try(const TryOptions& options) {
  TrialWork work;
  work.threads = options.threads;
  work.seed = options.seed;
  if (heed_problem_parse(options.problem.c_str(), &work.problem) != HEED_OK) {
    return FailCommand("tune try", heed_last_error(), kUsage);
  }
  for (const std::string& text : options.candidates) {
    Candidate candidate;
    std::string why;
    if (!ParseCandidate(text, &candidate, &why)) {
      return FailCommand("tune try", why, kUsage);
    }
    work.candidates.push_back(candidate);
  }
  return ServeTrialWork(work, options.first);
}

}  // namespace

void AddTuneTryCommand(CLI::App* tune, Action* action) {
  const auto options = std::make_shared<TryOptions>();
  CLI::App* app = tune->add_subcommand("try", "Part of run --isolate");
  app->group("");
  app->add_option("--problem", options->problem)->required();
  app->add_option("--candidates", options->candidates)->required();
  app->add_option("--threads", options->threads)->check(CLI::Range(1, 1 << 16));
  app->add_option("--seed", options->seed);
  app->add_option("--first", options->first);
  app->callback(
      [options, action] { *action = [options] { return Try(*options); }; });
}

}  // namespace heed
