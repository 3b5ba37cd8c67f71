// heed_plan_describe(): what a plan will do, in one line.
#include <string>

#include "runtime/plan.h"
#include "runtime/problem.h"
#include "runtime/snprint.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

std::string Describe(const heed_plan& plan) {
  return "problem=" + ToString(plan.problem) +
         " target=" + plan.kernels.target +
         " threads=" + std::to_string(plan.workers) +
         " tile=" + ToString(plan.choice.config()) +
         " tier=" + TierName(plan.choice.tier) +
         " tasks=" + std::to_string(plan.tasks) +
         (plan.decode_rows == 0
              ? ""
              : " decode parts=" + std::to_string(plan.parts)) +
         " workspace=" + std::to_string(heed_plan_workspace_size(&plan)) +
         (plan.choice.hit == nullptr
              ? ""
              : " entry=" + ToString(plan.choice.hit->entry->shape_class)) +
         " reason=\"" + ReasonOf(plan.choice) + "\"";
}

}  // namespace
}  // namespace heed

extern "C" size_t heed_plan_describe(const heed_plan* plan, char* text,
                                     size_t size) {
  return heed::PrintNoThrow(text, size, [&] {
    return plan == nullptr ? std::string() : heed::Describe(*plan);
  });
}
