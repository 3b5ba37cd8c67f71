// heed's attention block for C++17: a header-only face on heed_block.h.
// Failures are exceptions here.
//
//   heed::BlockDesc desc;
//   desc.d_model = 768;
//   desc.heads_q = desc.heads_kv = 12;
//   desc.dim_qk = desc.dim_v = 64;
//   ...
//   const heed::AttentionBlock block(desc);
//   const heed::AttentionBlockPlan plan(block, /*batch=*/1, /*len=*/1024);
//   heed::Workspace workspace = plan.MakeWorkspace();
//   heed::BlockCall call;
//   call.x = heed_dense_input(x, 1, 1024, 768);
//   call.y = heed_dense_output(y, 1, 1024, 768);
//   plan.Run(call, workspace);
//
// Threads: a const AttentionBlock or AttentionBlockPlan may be used by any
// number of threads at once, each with a Workspace (and cache) of its own.
#ifndef HEED_BLOCK_HPP_
#define HEED_BLOCK_HPP_

#include <heed_block.h>

#include <cstddef>
#include <cstdint>
#include <heed.hpp>
#include <memory>
#include <string>

namespace heed {

// heed_block_desc with its start; fill in the rest.
struct BlockDesc : heed_block_desc {
  BlockDesc() { heed_block_desc_init(this); }
};

// heed_block_call with its start; fill in the rest, but for the workspace.
struct BlockCall : heed_block_call {
  BlockCall() { heed_block_call_init(this); }
};

// A block's packed weights. Nothing of the description is needed afterwards.
class AttentionBlock {
 public:
  explicit AttentionBlock(const heed_block_desc& desc,
                          const Options& options = Options()) {
    const heed_options c_options = options.c();
    heed_block* block = nullptr;
    Check(heed_block_create(&desc, &c_options, &block));
    block_.reset(block);
  }

  // Null only after a move.
  const heed_block* c() const noexcept { return block_.get(); }

 private:
  struct Destroy {
    void operator()(heed_block* block) const noexcept {
      heed_block_destroy(block);
    }
  };
  std::unique_ptr<heed_block, Destroy> block_;
};

// A block for `batch` sequences of `len` new tokens, against a cache with room
// for len_cache of them (0: none). The block has to outlive it.
class AttentionBlockPlan {
 public:
  AttentionBlockPlan(const AttentionBlock& block, int64_t batch, int64_t len,
                     int64_t len_cache = 0,
                     const Options& options = Options()) {
    const heed_options c_options = options.c();
    heed_block_plan* plan = nullptr;
    Check(heed_block_plan_create(block.c(), batch, len, len_cache, &c_options,
                                 &plan));
    plan_.reset(plan);
  }

  // Bytes a Workspace for this plan needs; a larger one serves as well.
  size_t WorkspaceSize() const noexcept {
    return heed_block_plan_workspace_size(plan_.get());
  }
  Workspace MakeWorkspace() const { return Workspace(WorkspaceSize()); }

  // Computes. A call that is refused has written nothing.
  void Run(const heed_block_call& call, Workspace& workspace) const {
    heed_block_call with_workspace = call;
    with_workspace.workspace = workspace.data();
    with_workspace.workspace_size = workspace.size();
    Check(heed_block_run(plan_.get(), &with_workspace));
  }

  // One line: the block, target, threads and the attention's plan.
  std::string Describe() const {
    std::string text(heed_block_plan_describe(plan_.get(), nullptr, 0), '\0');
    heed_block_plan_describe(plan_.get(), text.data(), text.size() + 1);
    return text;
  }

  // Null only after a move.
  const heed_block_plan* c() const noexcept { return plan_.get(); }

 private:
  struct Destroy {
    void operator()(heed_block_plan* plan) const noexcept {
      heed_block_plan_destroy(plan);
    }
  };
  std::unique_ptr<heed_block_plan, Destroy> plan_;
};

}  // namespace heed

#endif  // HEED_BLOCK_HPP_
