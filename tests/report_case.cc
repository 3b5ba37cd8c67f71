#include "tests/report_case.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference.h"

namespace heed::test {
namespace {

void Generate(uint64_t t, std::vector<float>* x) {
  for (uint64_t n = 0; n < x->size(); ++n) {
    (*x)[n] = static_cast<float>(
        static_cast<double>((n * 7919 + 17 * t) % 1009) / 504.5 - 1);
  }
}

bool Near(double got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= tolerance * (1 + std::fabs(want));
}

}  // namespace

Case GenCase(const heed_problem& problem, int64_t causal_offset) {
  Case c = MakeCase(problem, causal_offset);
  Generate(1, &c.q);
  Generate(2, &c.k);
  Generate(3, &c.v);
  return c;
}

std::vector<Settings> EveryKernel() {
  std::vector<Settings> all;
  for (const std::string& target : TargetNames(/*fused_only=*/false)) {
    Settings settings;
    settings.target = target;
    all.push_back(settings);
    settings.threads = 2;
    settings.pinned = true;
    for (const heed_tile& tile : VariedTiles()) {
      settings.tile = tile;
      all.push_back(settings);
    }
  }
  return all;
}

void ExpectReference(const heed_problem& problem, const heed_call& call,
                     const std::string& where, double tolerance) {
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t h = 0; h < problem.heads_q; ++h) {
      for (int64_t i = 0; i < problem.len_q; ++i) {
        const ReferenceRow want = Reference(problem, call, b, h, i);
        const float* out = static_cast<const float*>(call.out.data) +
                           b * call.out.stride_batch +
                           h * call.out.stride_head + i * call.out.stride_token;
        for (int64_t d = 0; d < problem.dim_v; ++d) {
          ASSERT_TRUE(Near(out[d], want.out[d], tolerance))
              << where << ": out of batch " << b << " head " << h << " token "
              << i << " column " << d << " is " << out[d] << ", want "
              << want.out[d];
        }
        if (call.lse.data == nullptr) continue;
        const float lse =
            static_cast<const float*>(call.lse.data)[b * call.lse.stride_batch +
                                                     h * call.lse.stride_head +
                                                     i * call.lse.stride_token];
        ASSERT_TRUE(Near(lse, want.lse, tolerance))
            << where << ": lse of batch " << b << " head " << h << " token "
            << i << " is " << lse << ", want " << want.lse;
      }
    }
  }
}

void ExpectEveryKernelRight(const Case& c, double tolerance) {
  for (const Settings& settings : EveryKernel()) {
    Result result;
    const heed_call call = DenseCall(c, &result);
    ASSERT_EQ(RunCall(c.problem, call, settings), HEED_OK) << heed_last_error();
    ExpectReference(c.problem, call, NameOf(c) + " " + NameOf(settings),
                    tolerance);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace heed::test
