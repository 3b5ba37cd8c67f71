// Attention by oneDNN's own means, if heed_bench was built where it is.
#ifndef HEED_BENCH_ONEDNN_PEERS_H_
#define HEED_BENCH_ONEDNN_PEERS_H_

#include <string>
#include <vector>

#include "bench/attention_peers.h"

namespace heed {

// - onednn primitives: matmul, softmax, matmul over all heads at once, the
//   causal mask added in between;
// - onednn graph: the whole as one partition, since oneDNN 3.6.
// Each is made once for a problem and a number of threads. Empty, with the
// reason in one line, where the plugin is not. SgemmPeers() must have been
// called, which tells idle threads to sleep.
std::vector<AttentionPeer> OneDnnPeers(std::string* why);

}  // namespace heed

#endif  // HEED_BENCH_ONEDNN_PEERS_H_
