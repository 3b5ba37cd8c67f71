// Attention as others would compute it, in this process: from the textbook,
// composed of another library's matrix products, and by oneDNN's own means.
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

// Computes what heed_plan_run() would.
using PeerCall = std::function<void(const heed_call&)>;

struct AttentionPeer {
  std::string name;     // "textbook", "openblas", "onednn", ..
  std::string version;  // what it says of itself
  // Makes ready what computes a problem on so many threads. Empty, with the
  // reason in one line, where the peer does not compute it.
  std::function<PeerCall(const heed_problem&, int threads, std::string* why)>
      prepare;
};

// What is there: the textbook, and those whose libraries are installed.
// - textbook: three passes over each row in plain C++ (scores; exponentials
//   and their sum; blend), heads and rows in parallel.
// - openblas, onednn: sgemm, softmax, sgemm for blocks of rows that see the
//   same keys, blocks in parallel and each product on one thread, so that no
//   thread waits for another between products; exponentials by Highway.
// - those of OneDnnPeers(); where there are none, `absent` says why.
std::vector<AttentionPeer> AttentionPeers(std::string* absent);

// What a peer's result may be off by: what heed's may, and in 16 bits what
// weights rounded to them cost, half a unit in the last place of values below
// 6.
double LargestPeerError(int32_t dtype);

// Dense, and no option but causal from the top left or an equal corner.
bool PeersTake(const heed_problem& problem);

// heed against each peer on those of the context's shapes that they take. A
// row says so where the peer refuses, or computes fewer than twelve within the
// time of a row.
bool MeasurePeers(const BenchOptions& options, BenchContext* context,
                  std::vector<PairRow>* rows, std::string* why);

}  // namespace heed

#endif  // HEED_BENCH_ATTENTION_PEERS_H_
