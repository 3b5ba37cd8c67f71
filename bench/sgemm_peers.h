// Other libraries' f32 matrix products, to compare projections with: what of
// OpenBLAS and oneDNN is installed, found at run time.
#ifndef HEED_BENCH_SGEMM_PEERS_H_
#define HEED_BENCH_SGEMM_PEERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace heed {

struct SgemmPeer {
  std::string name;     // "openblas", "onednn"
  std::string version;  // what it says of itself
  // y [rows, outputs] = x [rows, inputs] w [inputs, outputs], all dense.
  std::function<void(int64_t rows, int64_t inputs, int64_t outputs,
                     const float* x, const float* w, float* y)>
      multiply;
  std::function<void(int threads)> set_threads;
};

// Loaded at the first call and kept.
const std::vector<SgemmPeer>& SgemmPeers();

}  // namespace heed

#endif  // HEED_BENCH_SGEMM_PEERS_H_
