// heed_attention(): everything in one call, for one-off use.
#include <cstdlib>
#include <memory>

#include "runtime/error.h"
#include "runtime/free_memory.h"
#include "runtime/include/heed.h"

namespace heed {
namespace {

struct DestroyPlan {
  void operator()(heed_plan* plan) const { heed_plan_destroy(plan); }
};

heed_status Attention(const heed_problem* problem, const heed_options* options,
                      const heed_call* call) {
  if (call == nullptr) {
    return Fail(HEED_INVALID_ARGUMENT, "call is NULL; expected a heed_call");
  }
  if (call->struct_size != sizeof(heed_call)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "call.struct_size is %zu; expected %zu, as heed_call_init() "
                "sets it",
                call->struct_size, sizeof(heed_call));
  }
  heed_plan* created = nullptr;
  const heed_status status = heed_plan_create(problem, options, &created);
  if (status != HEED_OK) return status;
  const std::unique_ptr<heed_plan, DestroyPlan> plan(created);

  heed_call with_workspace = *call;
  with_workspace.workspace = nullptr;
  with_workspace.workspace_size = heed_plan_workspace_size(created);
  std::unique_ptr<void, FreeMemory> workspace;
  if (with_workspace.workspace_size != 0) {
    // A plan's workspace is a multiple of 64, as aligned_alloc requires.
    workspace.reset(std::aligned_alloc(64, with_workspace.workspace_size));
    if (workspace == nullptr) {
      return Fail(HEED_OUT_OF_MEMORY, "no memory for a workspace of %zu bytes",
                  with_workspace.workspace_size);
    }
    with_workspace.workspace = workspace.get();
  }
  return heed_plan_run(created, &with_workspace);
}

}  // namespace
}  // namespace heed

extern "C" {

heed_status heed_attention(const heed_problem* problem,
                           const heed_options* options, const heed_call* call) {
  return heed::Attention(problem, options, call);
}

const char* heed_version(void) { return HEED_VERSION; }

}  // extern "C"
