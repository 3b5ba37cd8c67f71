// Candidates of attention tried in processes of their own, which are this
// program again with the command `heed tune try`: `--isolate`.
#ifndef HEED_TUNE_TRIAL_PROCESS_H_
#define HEED_TUNE_TRIAL_PROCESS_H_

#include <string>
#include <vector>

#include "runtime/include/heed.h"
#include "tune/candidates.h"
#include "tune/trials.h"

namespace heed {

// What a child has to know.
struct TrialWork {
  heed_problem problem;
  int threads = 1;
  uint64_t seed = 1;
  std::vector<Candidate> candidates;  // 0 is the default
};

// e.g. "AVX2:row_block=96,key_tile=192,...", every field named.
std::string CandidateText(const Candidate& candidate);
bool ParseCandidate(const std::string& text, Candidate* candidate,
                    std::string* why);

// Starts this program anew rather than going on in a fork of it, in which the
// scheduler's threads would be missing.
StartTrials TrialsByExec(const TrialWork& work);

// `heed tune try`: the child. Returns the exit code.
int ServeTrialWork(const TrialWork& work, size_t first);

}  // namespace heed

#endif  // HEED_TUNE_TRIAL_PROCESS_H_
