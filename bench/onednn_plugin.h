// What heed_bench and its plugin for oneDNN agree on.
//
// A plugin, since OpenMP reads how idle threads wait when it is loaded, which
// for a library that heed_bench links would be before main().
#ifndef HEED_BENCH_ONEDNN_PLUGIN_H_
#define HEED_BENCH_ONEDNN_PLUGIN_H_

#include <heed.h>

#include <cstddef>

namespace heed {

// One of the ways to have oneDNN compute attention.
struct OneDnnForm {
  const char* name;  // "onednn primitives"
  // Makes all that calls of this problem have in common; what depends on the
  // number of threads is made for as many as OpenMP is set to. Null, with one
  // line in `why`, where oneDNN does not compute it.
  void* (*create)(const heed_problem& problem, char* why, size_t why_bytes);
  // Tensors are dense. Throws dnnl::error.
  void (*run)(void* attention, const heed_call& call);
  void (*destroy)(void* attention);
};

// The plugin's one symbol is such a function, heed_onednn_forms.
using OneDnnForms = const OneDnnForm* (*)(size_t* count, const char** version);

}  // namespace heed

#endif  // HEED_BENCH_ONEDNN_PLUGIN_H_
