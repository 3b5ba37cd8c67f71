// The plugin's face to heed_bench.

#include "bench/onednn_plugin.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "bench/onednn_attention.h"

namespace heed {

std::vector<float> CausalMask(const heed_problem& p) {
  std::vector<float> mask(static_cast<size_t>(p.len_q * p.len_k));
  for (int64_t i = 0; i < p.len_q; ++i) {
    for (int64_t j = i + 1; j < p.len_k; ++j) {
      mask[i * p.len_k + j] = -std::numeric_limits<float>::infinity();
    }
  }
  return mask;
}

namespace {

template <std::unique_ptr<OneDnnAttention> (*make)(const heed_problem&)>
void* Create(const heed_problem& problem, char* why, size_t why_bytes) {
  try {
    return make(problem).release();
  } catch (const dnnl::error& error) {
    std::snprintf(why, why_bytes, "%s",
                  error.status == dnnl_unimplemented
                      ? "oneDNN does not implement it on this CPU"
                      : error.what());
  } catch (const std::exception& error) {
    std::snprintf(why, why_bytes, "%s", error.what());
  }
  return nullptr;
}

void Run(void* attention, const heed_call& call) {
  static_cast<OneDnnAttention*>(attention)->Run(call);
}

void Destroy(void* attention) {
  delete static_cast<OneDnnAttention*>(attention);
}

}  // namespace
}  // namespace heed

extern "C" __attribute__((visibility("default"))) const heed::OneDnnForm*
heed_onednn_forms(size_t* count, const char** version) {
  static const heed::OneDnnForm forms[] = {
      {"onednn primitives", heed::Create<heed::MakeOneDnnPrimitives>, heed::Run,
       heed::Destroy},
      {"onednn graph", heed::Create<heed::MakeOneDnnGraph>, heed::Run,
       heed::Destroy},
  };
  static const std::string text = [] {
    const dnnl_version_t& v = *dnnl_version();
    return std::to_string(v.major) + "." + std::to_string(v.minor) + "." +
           std::to_string(v.patch);
  }();
  *count = heed::kOneDnnGraphHasAttention ? 2 : 1;
  *version = text.c_str();
  return forms;
}
