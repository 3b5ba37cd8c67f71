// Where a figure comes from: what every table and every benchmark's context
// says about the machine, the build and the command.
#ifndef HEED_BENCH_PROVENANCE_H_
#define HEED_BENCH_PROVENANCE_H_

#include <string>
#include <utility>
#include <vector>

namespace heed {

// Name and value, in the order they are printed.
using Provenance = std::vector<std::pair<std::string, std::string>>;

// The commit this was built from, "+changes" appended where it was not all.
const char* GitCommit();

// date (UTC), command, cpu, machine key, targets, threads, caches, version,
// commit, compiler.
Provenance CollectProvenance(int argc, const char* const* argv);

// As a Markdown list.
std::string ProvenanceText(const Provenance& provenance);

}  // namespace heed

#endif  // HEED_BENCH_PROVENANCE_H_
