#include "tune/head_run.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>

#include "tune/npy.h"
#include "tune/staged_file.h"

namespace heed {
namespace {

struct DestroyBlock {
  void operator()(heed_block* block) const { heed_block_destroy(block); }
};
struct DestroyPlan {
  void operator()(heed_block_plan* plan) const {
    heed_block_plan_destroy(plan);
  }
};
struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

heed_output Room(std::vector<float>* values, int64_t heads, int64_t len,
                 int64_t width) {
  values->assign(static_cast<size_t>(heads * len * width), 0.0f);
  return heed_dense_output(values->data(), heads, len, width);
}

std::string Describe(const heed_block_plan* plan) {
  std::string text(heed_block_plan_describe(plan, nullptr, 0) + 1, '\0');
  heed_block_plan_describe(plan, &text[0], text.size());
  text.pop_back();
  return text;
}

}  // namespace

bool RunHead(const heed_block_desc& desc, const float* x, int64_t len,
             int threads, HeadTensors* tensors, std::string* why) {
  heed_options options;
  heed_options_init(&options);
  options.threads = threads;
  const auto fail = [why] {
    *why = heed_last_error();
    return false;
  };
  heed_block* made_block = nullptr;
  heed_block_plan* made_plan = nullptr;
  if (heed_block_create(&desc, &options, &made_block) != HEED_OK) return fail();
  const std::unique_ptr<heed_block, DestroyBlock> block(made_block);
  if (heed_block_plan_create(block.get(), 1, len, 0, &options, &made_plan) !=
      HEED_OK) {
    return fail();
  }
  const std::unique_ptr<heed_block_plan, DestroyPlan> plan(made_plan);
  const size_t bytes = heed_block_plan_workspace_size(plan.get());
  const std::unique_ptr<void, Free> workspace(
      bytes == 0 ? nullptr : std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  if (bytes != 0 && workspace == nullptr) throw std::bad_alloc();

  tensors->len = len;
  tensors->heads_q = desc.heads_q;
  tensors->heads_kv = desc.heads_kv;
  std::vector<float> y;
  heed_block_call call;
  heed_block_call_init(&call);
  call.x = heed_dense_input(x, 1, len, desc.d_model);
  call.y = Room(&y, 1, len, desc.d_model);
  call.ln = Room(&tensors->ln, 1, len, desc.d_model);
  call.q = Room(&tensors->q, desc.heads_q, len, desc.dim_qk);
  call.k = Room(&tensors->k, desc.heads_kv, len, desc.dim_qk);
  call.v = Room(&tensors->v, desc.heads_kv, len, desc.dim_v);
  call.scores = Room(&tensors->scores, desc.heads_q, len, len);
  call.pattern = Room(&tensors->pattern, desc.heads_q, len, len);
  call.z = Room(&tensors->z, desc.heads_q, len, desc.dim_v);
  call.attn_out = Room(&tensors->attn_out, 1, len, desc.d_model);
  call.resid = Room(&tensors->resid, 1, len, desc.d_model);
  call.workspace = workspace.get();
  call.workspace_size = bytes;
  const auto begin = std::chrono::steady_clock::now();
  if (heed_block_run(plan.get(), &call) != HEED_OK) return fail();
  const auto end = std::chrono::steady_clock::now();
  tensors->seconds = std::chrono::duration<double>(end - begin).count();
  tensors->plan = Describe(plan.get());
  return true;
}

std::vector<NamedTensor> AllTensors(const HeadTensors& t) {
  return {{"ln", &t.ln, 0},
          {"q", &t.q, t.heads_q},
          {"k", &t.k, t.heads_kv},
          {"v", &t.v, t.heads_kv},
          {"scores", &t.scores, t.heads_q},
          {"pattern", &t.pattern, t.heads_q},
          {"z", &t.z, t.heads_q},
          {"attn_out", &t.attn_out, 0},
          {"resid", &t.resid, 0}};
}

TensorPart PartOf(const HeadTensors& tensors, const NamedTensor& tensor,
                  int64_t head) {
  const size_t count = tensor.values->size();
  const auto len = static_cast<size_t>(tensors.len);
  if (tensor.heads == 0) {
    return {{tensors.len, static_cast<int64_t>(count / len)},
            tensor.values->data(),
            count};
  }
  const size_t per_head = count / static_cast<size_t>(tensor.heads);
  const auto width = static_cast<int64_t>(per_head / len);
  if (head < 0) {
    return {{tensor.heads, tensors.len, width}, tensor.values->data(), count};
  }
  const int64_t own = head / (tensors.heads_q / tensor.heads);
  return {{1, tensors.len, width},
          tensor.values->data() + static_cast<size_t>(own) * per_head,
          per_head};
}

bool DumpHead(const HeadTensors& tensors, int64_t head,
              const std::string& folder, std::string* why) {
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    *why = folder + ": " + std::strerror(errno);
    return false;
  }
  std::deque<StagedFile> files;
  std::vector<StagedFile*> all;
  for (const NamedTensor& tensor : AllTensors(tensors)) {
    const TensorPart part = PartOf(tensors, tensor, head);
    files.emplace_back();
    all.push_back(&files.back());
    if (!StageNpy(folder + "/" + tensor.name + ".npy", NpyType::kFloat32,
                  part.shape, part.data, &files.back(), why)) {
      return false;
    }
  }
  return StagedFile::CommitAll(all, why);
}

}  // namespace heed
