// Inside the plugin for oneDNN: what its forms share.
#ifndef HEED_BENCH_ONEDNN_ATTENTION_H_
#define HEED_BENCH_ONEDNN_ATTENTION_H_

#include <heed.h>

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace heed {

// Older graphs have no kernels for attention, or compute it as its parts.
constexpr bool kOneDnnGraphHasAttention =
    DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR >= 306;

// A problem made ready once and computed many times.
class OneDnnAttention {
 public:
  virtual ~OneDnnAttention() = default;
  virtual void Run(const heed_call& call) = 0;
};

// Throws Refused, or dnnl::error with status unimplemented, where there is
// none.
std::unique_ptr<OneDnnAttention> MakeOneDnnPrimitives(const heed_problem& p);
std::unique_ptr<OneDnnAttention> MakeOneDnnGraph(const heed_problem& p);

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// [len_q, len_k]: 0 where query i sees key j <= i, else -inf.
std::vector<float> CausalMask(const heed_problem& p);

struct OneDnnCpu {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

}  // namespace heed

#endif  // HEED_BENCH_ONEDNN_ATTENTION_H_
