#include "bench/sgemm_peers.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace heed {
namespace {

template <typename Function>
Function Symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// cblas.h: CblasRowMajor, CblasNoTrans, CblasTrans.
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

void AddOpenBlas(std::vector<SgemmPeer>* peers) {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int,
                         const float*, int, float, float*, int);
  const auto sgemm = Symbol<Sgemm>(library, "cblas_sgemm");
  const auto set_threads =
      Symbol<void (*)(int)>(library, "openblas_set_num_threads");
  const auto config = Symbol<const char* (*)()>(library, "openblas_get_config");
  if (sgemm == nullptr || set_threads == nullptr) return;
  SgemmPeer peer;
  peer.name = "openblas";
  peer.version = config == nullptr ? "unknown" : config();
  peer.multiply = [sgemm](bool transpose_b, int64_t m, int64_t n, int64_t k,
                          float alpha, const float* a, int64_t a_stride,
                          const float* b, int64_t b_stride, float* c,
                          int64_t c_stride) {
    const auto narrow = [](int64_t value) { return static_cast<int>(value); };
    sgemm(kRowMajor, kNoTranspose, transpose_b ? kTranspose : kNoTranspose,
          narrow(m), narrow(n), narrow(k), alpha, a, narrow(a_stride), b,
          narrow(b_stride), 0.0f, c, narrow(c_stride));
  };
  peer.set_threads = set_threads;
  peers->push_back(peer);
}

// dnnl_types.h.
struct DnnlVersion {
  int major, minor, patch;
};

void AddOneDnn(std::vector<SgemmPeer>* peers) {
  // Debian's 3.6 and later have a name of their own. Local, so that a plugin
  // linked to another version finds that one's functions.
  for (const char* file : {"libdnnl.so.3", "libdnnl.so.3.6", "libdnnl.so.2"}) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    using Sgemm =
        int (*)(char, char, int64_t, int64_t, int64_t, float, const float*,
                int64_t, const float*, int64_t, float, float*, int64_t);
    const auto sgemm = Symbol<Sgemm>(library, "dnnl_sgemm");
    // OpenMP's, through what it links.
    const auto set_threads =
        Symbol<void (*)(int)>(library, "omp_set_num_threads");
    const auto version =
        Symbol<const DnnlVersion* (*)()>(library, "dnnl_version");
    if (sgemm == nullptr || set_threads == nullptr) continue;
    SgemmPeer peer;
    peer.name = "onednn";
    if (version != nullptr) {
      const DnnlVersion& v = *version();
      peer.version = fmt::format("{}.{}.{}", v.major, v.minor, v.patch);
    }
    peer.multiply = [sgemm](bool transpose_b, int64_t m, int64_t n, int64_t k,
                            float alpha, const float* a, int64_t a_stride,
                            const float* b, int64_t b_stride, float* c,
                            int64_t c_stride) {
      sgemm('N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, a_stride, b,
            b_stride, 0.0f, c, c_stride);
    };
    peer.set_threads = set_threads;
    peers->push_back(peer);
    return;
  }
}

}  // namespace

const std::vector<SgemmPeer>& SgemmPeers() {
  static const std::vector<SgemmPeer> peers = [] {
    // Their threads sleep when they are done rather than spin for up to 30 ms
    // on the cores of whoever's turn is next: one token's projection on two
    // threads took 5.8 ms beside them and 3.3 ms without.
    setenv("OMP_WAIT_POLICY", "passive", 0);
    setenv("OPENBLAS_THREAD_TIMEOUT", "14", 0);  // 2^14 cycles
    std::vector<SgemmPeer> found;
    AddOpenBlas(&found);
    AddOneDnn(&found);
    return found;
  }();
  return peers;
}

}  // namespace heed
