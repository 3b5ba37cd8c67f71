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
  // c [m, n] = alpha * a [m, k] b, row-major; b is [k, n], or [n, k] if it is
  // to be transposed. Strides are of rows, in elements.
  std::function<void(bool transpose_b, int64_t m, int64_t n, int64_t k,
                     float alpha, const float* a, int64_t a_stride,
                     const float* b, int64_t b_stride, float* c,
                     int64_t c_stride)>
      multiply;
  std::function<void(int threads)> set_threads;
};

// Loaded at the first call and kept.
const std::vector<SgemmPeer>& SgemmPeers();

}  // namespace heed

#endif  // HEED_BENCH_SGEMM_PEERS_H_
