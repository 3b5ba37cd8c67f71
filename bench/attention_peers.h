// Attention as others would compute it, in this process: from the textbook, and
// composed of another library's matrix products.
#ifndef HEED_BENCH_ATTENTION_PEERS_H_
#define HEED_BENCH_ATTENTION_PEERS_H_

#include <heed.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/bench_context.h"
#include "bench/options.h"
#include "bench/pair_rounds.h"

namespace heed {

struct AttentionPeer {
  std::string name;     // "textbook", "openblas", "onednn"
  std::string version;  // what it says of itself
  // Computes what heed_plan_run() would, on so many threads.
  std::function<void(const heed_problem&, const heed_call&, int threads)> run;
};

// What is there: the textbook, and those whose libraries are installed.
// - textbook: three passes over each row in plain C++ (scores; exponentials
//   and their sum; blend), heads and rows in parallel.
// - the others: sgemm, softmax, sgemm for blocks of rows that see the same
//   keys, blocks in parallel and each product on one thread, so that no thread
//   waits for another between products; exponentials by Highway.
std::vector<AttentionPeer> AttentionPeers();

// f32, dense, and no option but causal from the top left or an equal corner.
bool PeersTake(const heed_problem& problem);

// heed against each peer on those of the context's shapes that they take, and
// of which a peer computes twelve within the time of a row.
bool MeasurePeers(const BenchOptions& options, BenchContext* context,
                  std::vector<PairRow>* rows, std::string* why);

}  // namespace heed

#endif  // HEED_BENCH_ATTENTION_PEERS_H_
