#include "tests/report_case.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference.h"
#include "tests/row_program.h"

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
  std::string found;
  ForEachRow(problem, call, [&](const RowPlace& row) {
    if (!found.empty()) return;
    const auto check = [&](const std::string& what, double got, double want) {
      if (Near(got, want, tolerance) || !found.empty()) return;
      found = what + " of batch " + std::to_string(row.batch) + " head " +
              std::to_string(row.head) + " token " + std::to_string(row.token) +
              " is " + std::to_string(got) + ", want " + std::to_string(want);
    };
    const ReferenceRow want =
        Reference(problem, call, row.batch, row.head, row.token);
    for (int64_t d = 0; d < problem.dim_v; ++d) {
      check("column " + std::to_string(d), row.out[d], want.out[d]);
    }
    if (row.lse != nullptr) check("lse", *row.lse, want.lse);
  });
  ASSERT_EQ(found, "") << where;
}

void ExpectReference(const Case& c, Result* result, const std::string& where,
                     double tolerance) {
  Result ignored;
  heed_call call = DenseCall(c, &ignored);
  if (!result->out.empty()) call.out.data = result->out.data();
  call.lse.data = result->lse.data();
  ExpectReference(c.problem, call, where, tolerance);
}

void ForEveryPath(
    const Case& c,
    const std::function<void(Result* result, const std::string& how)>& check) {
  for (const Settings& settings : EveryKernel()) {
    Result result = RunHeed(c, settings);
    ASSERT_EQ(result.status, HEED_OK) << result.error;
    check(&result, NameOf(c) + " " + NameOf(settings));
    if (::testing::Test::HasFailure()) return;
  }
  for (const KernelCut& cut : EveryCut(c.problem)) {
    Result result = RunKernels(c, cut);
    check(&result, NameOf(c) + " " + NameOf(cut));
    if (::testing::Test::HasFailure()) return;
  }
}

void ForEveryPath(
    const StoredCase& c,
    const std::function<void(Result* result, const std::string& how)>& check) {
  const std::string name =
      "dtype " + std::to_string(c.problem.dtype) + " " + NameOf(c.widened);
  for (const Settings& settings : EveryKernel()) {
    Result result = RunStored(c, settings);
    ASSERT_EQ(result.status, HEED_OK) << result.error;
    check(&result, name + " " + NameOf(settings));
    if (::testing::Test::HasFailure()) return;
  }
  for (const KernelCut& cut : EveryCut(c.problem)) {
    Result result = RunStored(c, cut);
    check(&result, name + " " + NameOf(cut));
    if (::testing::Test::HasFailure()) return;
  }
}

void ExpectEveryKernelRight(const Case& c, double tolerance) {
  ForEveryPath(c, [&](Result* result, const std::string& how) {
    ExpectReference(c, result, how, tolerance);
  });
}

}  // namespace heed::test
