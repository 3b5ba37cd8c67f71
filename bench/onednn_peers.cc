#include "bench/onednn_peers.h"

#include <dlfcn.h>

#include <memory>

#include "bench/onednn_plugin.h"

namespace heed {
namespace {

// Beside the program, whose run path says so.
constexpr const char* kPlugin = "heed_onednn.so";

using SetThreads = void (*)(int);

PeerCall Prepare(const OneDnnForm& form, SetThreads set_threads,
                 const heed_problem& problem, int threads, std::string* why) {
  set_threads(threads);
  char text[256] = "";
  const std::shared_ptr<void> attention(form.create(problem, text, sizeof text),
                                        [&form](void* made) {
                                          if (made != nullptr)
                                            form.destroy(made);
                                        });
  *why = text;
  if (attention == nullptr) return nullptr;
  return [&form, set_threads, attention, threads](const heed_call& call) {
    set_threads(threads);
    form.run(attention.get(), call);
  };
}

}  // namespace

std::vector<AttentionPeer> OneDnnPeers(std::string* why) {
  void* const plugin = dlopen(kPlugin, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    *why = std::string(
               "oneDNN's own attention, which is built where oneDNN is "
               "(Debian: libdnnl-dev): ") +
           dlerror();
    return {};
  }
  const auto forms =
      reinterpret_cast<OneDnnForms>(dlsym(plugin, "heed_onednn_forms"));
  // OpenMP's, through what the plugin links.
  const auto set_threads =
      reinterpret_cast<SetThreads>(dlsym(plugin, "omp_set_num_threads"));
  if (forms == nullptr || set_threads == nullptr) {
    *why = "oneDNN's own attention: its threads are not OpenMP's";
    return {};
  }
  size_t count = 0;
  const char* version = nullptr;
  const OneDnnForm* const form = forms(&count, &version);
  std::vector<AttentionPeer> peers;
  for (size_t i = 0; i < count; ++i) {
    AttentionPeer peer;
    peer.name = form[i].name;
    peer.version = version;
    peer.prepare = [form, i, set_threads](const heed_problem& problem,
                                          int threads, std::string* reason) {
      return Prepare(form[i], set_threads, problem, threads, reason);
    };
    peers.push_back(peer);
  }
  return peers;
}

}  // namespace heed
