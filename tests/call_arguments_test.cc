// Promise P7 for the data of a call: every wrong argument gives its status and
// one line that names it, its value and what was expected; nothing is written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/input_families.h"
#include "tests/refused_call.h"

namespace heed::test {
namespace {

TEST(PlanArguments, NullPointersAreRefused) {
  const heed_problem problem = GoodProblem();
  heed_plan* plan = nullptr;
  EXPECT_EQ(heed_plan_create(nullptr, nullptr, &plan), HEED_INVALID_ARGUMENT);
  ExpectMessage({"problem", "NULL"});
  EXPECT_EQ(heed_plan_create(&problem, nullptr, nullptr),
            HEED_INVALID_ARGUMENT);
  ExpectMessage({"plan", "NULL"});
  heed_call call;
  heed_call_init(&call);
  EXPECT_EQ(heed_plan_run(nullptr, &call), HEED_INVALID_ARGUMENT);
  ExpectMessage({"plan", "NULL"});
  EXPECT_EQ(heed_attention(nullptr, nullptr, &call), HEED_INVALID_ARGUMENT);
  EXPECT_EQ(heed_attention(&problem, nullptr, nullptr), HEED_INVALID_ARGUMENT);
  EXPECT_EQ(heed_plan_workspace_size(nullptr), 0u);
  heed_plan_destroy(nullptr);
  heed_problem_init(nullptr);
  heed_options_init(nullptr);
  heed_call_init(nullptr);
}

using ChangeCall = std::function<void(heed_call*)>;

// The call is refused with this message, by the plan and by the one-shot
// function, and writes nothing.
void ExpectCallRefused(const ChangeCall& change,
                       const std::vector<std::string>& message) {
  Case c = MakeCase(GoodProblem());
  Result untouched, result;
  DenseCall(c, &untouched);
  heed_call call = DenseCall(c, &result);
  change(&call);
  EXPECT_EQ(RunCall(c.problem, call, {}), HEED_INVALID_ARGUMENT)
      << heed_last_error();
  ExpectMessage(message);
  EXPECT_EQ(heed_attention(&c.problem, nullptr, &call), HEED_INVALID_ARGUMENT)
      << heed_last_error();
  ExpectMessage(message);
  EXPECT_EQ(Difference(result, untouched), "");
}

TEST(CallArguments, NullTensorsAreRefusedByName) {
  ExpectCallRefused([](heed_call* c) { c->q.data = nullptr; },
                    {"q.data", "NULL", "expected"});
  ExpectCallRefused([](heed_call* c) { c->k.data = nullptr; },
                    {"k.data", "NULL", "expected"});
  ExpectCallRefused([](heed_call* c) { c->v.data = nullptr; },
                    {"v.data", "NULL", "expected"});
  ExpectCallRefused([](heed_call* c) { c->out.data = nullptr; },
                    {"out.data", "NULL", "expected"});
}

TEST(CallArguments, LastStrideMustBeOne) {
  for (const int64_t stride :
       {int64_t{0}, int64_t{-1}, int64_t{2}, int64_t{8}, INT64_MAX}) {
    const std::string value = std::to_string(stride);
    ExpectCallRefused([&](heed_call* c) { c->q.stride_dim = stride; },
                      {"q.stride_dim", value, "expected 1"});
    ExpectCallRefused([&](heed_call* c) { c->k.stride_dim = stride; },
                      {"k.stride_dim", value, "expected 1"});
    ExpectCallRefused([&](heed_call* c) { c->v.stride_dim = stride; },
                      {"v.stride_dim", value, "expected 1"});
    ExpectCallRefused([&](heed_call* c) { c->out.stride_dim = stride; },
                      {"out.stride_dim", value, "expected 1"});
  }
}

TEST(CallArguments, StridesBeyondTheAddressSpaceAreRefused) {
  for (const int64_t stride : {INT64_MAX, INT64_MIN, int64_t{1} << 61}) {
    ExpectCallRefused([&](heed_call* c) { c->q.stride_token = stride; },
                      {"q", std::to_string(stride), "expected"});
    ExpectCallRefused([&](heed_call* c) { c->k.stride_head = stride; },
                      {"k", std::to_string(stride), "expected"});
    ExpectCallRefused([&](heed_call* c) { c->out.stride_batch = stride; },
                      {"out", std::to_string(stride), "expected"});
  }
}

TEST(CallArguments, OutputsMustNotOverlapThemselvesOrOthers) {
  ExpectCallRefused([](heed_call* c) { c->out.stride_token = 0; },
                    {"out.stride_token", "0", "expected"});
  ExpectCallRefused([](heed_call* c) { c->out.stride_token = 3; },
                    {"out", "expected"});
  ExpectCallRefused(
      [](heed_call* c) { c->out.data = const_cast<void*>(c->v.data); },
      {"out", "v", "expected"});
  ExpectCallRefused(
      [](heed_call* c) {
        c->out.data = static_cast<float*>(const_cast<void*>(c->q.data)) + 20;
      },
      {"out", "q", "expected"});
  ExpectCallRefused([](heed_call* c) { c->lse.data = c->out.data; },
                    {"lse", "out", "expected"});
}

TEST(CallArguments, MisalignedTensorsAreRefused) {
  ExpectCallRefused(
      [](heed_call* c) { c->k.data = static_cast<const char*>(c->k.data) + 2; },
      {"k.data", "expected"});
}

// As ExpectCallRefused(), of a problem with more to it.
void ExpectRefusedOf(const heed_problem& problem, const ChangeCall& change,
                     const std::vector<std::string>& message) {
  Case c = MakeCase(problem);
  Result untouched, result;
  DenseCall(c, &untouched);
  heed_call call = DenseCall(c, &result);
  change(&call);
  EXPECT_EQ(RunCall(problem, call, {}), HEED_INVALID_ARGUMENT)
      << heed_last_error();
  ExpectMessage(message);
  EXPECT_EQ(Difference(result, untouched), "");
}

TEST(CallArguments, MasksAreCheckedLikeTensors) {
  std::vector<float> values(2 * 4 * 5 * 7);
  const auto with = [&](const ChangeCall& change) {
    return [&, change](heed_call* c) {
      c->mask = heed_dense_input(values.data(), 4, 5, 7);
      change(c);
    };
  };
  heed_problem problem = GoodProblem();
  problem.mask = HEED_MASK_F32;
  ExpectRefusedOf(problem, [](heed_call*) {},
                  {"call.mask.data is NULL", "[2, 4, 5, 7]"});
  ExpectRefusedOf(problem, with([](heed_call* c) { c->mask.stride_dim = 0; }),
                  {"call.mask.stride_dim is 0", "expected 1"});
  ExpectRefusedOf(problem,
                  with([](heed_call* c) { c->mask.stride_head = INT64_MAX; }),
                  {"call.mask.stride_head", "expected"});
  ExpectRefusedOf(problem, with([](heed_call* c) {
                    c->mask.data = static_cast<const char*>(c->mask.data) + 2;
                  }),
                  {"call.mask.data is", "expected a multiple of 4"});
  ExpectRefusedOf(problem, with([](heed_call* c) {
                    c->mask = {c->out.data, 0, 0, 0, 1};
                  }),
                  {"call.out", "overlaps call.mask"});
  ExpectRefusedOf(problem, with([](heed_call* c) {
                    c->lse.data = const_cast<void*>(c->mask.data);
                  }),
                  {"call.lse", "overlaps call.mask"});
  // Bytes need no alignment, and every axis but the last may be broadcast.
  problem.mask = HEED_MASK_BOOL;
  Case c = MakeCase(problem);
  c.mask.room = 7;
  c.mask.bytes.assign(8, 1);
  Result result;
  heed_call call = DenseCall(c, &result);
  call.mask = {c.mask.bytes.data() + 1, 0, 0, 0, 1};
  EXPECT_EQ(RunCall(problem, call, {}), HEED_OK) << heed_last_error();
}

TEST(CallArguments, SlopesAndSinksAreNeededWhereAskedFor) {
  heed_problem problem = GoodProblem();
  problem.alibi = 1;
  problem.align = HEED_ALIGN_TOP_LEFT;
  ExpectRefusedOf(problem, [](heed_call*) {},
                  {"call.alibi_slopes is NULL", "expected"});
  ExpectRefusedOf(problem,
                  [](heed_call* c) {
                    c->alibi_slopes = static_cast<const float*>(c->out.data);
                  },
                  {"call.out", "overlaps call.alibi_slopes"});
  problem.alibi = 0;
  problem.sinks = 1;
  ExpectRefusedOf(problem, [](heed_call*) {},
                  {"call.sinks is NULL", "expected"});
  ExpectRefusedOf(problem,
                  [](heed_call* c) {
                    c->sinks = reinterpret_cast<const float*>(
                        static_cast<const char*>(c->q.data) + 1);
                  },
                  {"call.sinks is", "expected a multiple of 4"});
}

TEST(CallArguments, OffsetsBeyondAlibisReachAreRefused) {
  heed_problem problem = GoodProblem();
  problem.alibi = 1;
  problem.causal = HEED_CAUSAL_OFFSET;
  const std::vector<float> slopes(4);
  for (const int64_t offset : {INT64_MAX, INT64_MIN, (int64_t{1} << 61) + 1}) {
    ExpectRefusedOf(problem,
                    [&](heed_call* c) {
                      c->alibi_slopes = slopes.data();
                      c->causal_offset = offset;
                    },
                    {"call.causal_offset is " + std::to_string(offset),
                     "expected", "ALiBi"});
  }
}

TEST(CallArguments, StructsOfAnotherSizeAreRefused) {
  ExpectCallRefused([](heed_call* c) { c->struct_size = 8; },
                    {"struct_size", "8", "expected"});
}

TEST(CallArguments, WorkspaceIsChecked) {
  Case c = MakeCase(GoodProblem());
  heed_plan* plan = nullptr;
  ASSERT_EQ(heed_plan_create(&c.problem, nullptr, &plan), HEED_OK);
  const size_t size = heed_plan_workspace_size(plan);
  ASSERT_GT(size, 0u);
  Result untouched, result;
  DenseCall(c, &untouched);
  heed_call call = DenseCall(c, &result);
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(64, (size + 127) / 64 * 64), &std::free);

  EXPECT_EQ(heed_plan_run(plan, &call), HEED_INVALID_ARGUMENT);
  ExpectMessage({"workspace", "NULL", "expected"});
  call.workspace = memory.get();
  call.workspace_size = size - 1;
  EXPECT_EQ(heed_plan_run(plan, &call), HEED_INVALID_ARGUMENT);
  ExpectMessage(
      {"workspace_size", std::to_string(size - 1), std::to_string(size)});
  call.workspace = static_cast<char*>(memory.get()) + 4;
  call.workspace_size = size;
  EXPECT_EQ(heed_plan_run(plan, &call), HEED_INVALID_ARGUMENT);
  ExpectMessage({"workspace", "64"});
  EXPECT_EQ(Difference(result, untouched), "");
  call.workspace = memory.get();
  EXPECT_EQ(heed_plan_run(plan, &call), HEED_OK) << heed_last_error();
  heed_plan_destroy(plan);
}

TEST(CallArguments, AnyCausalOffsetIsAllowed) {
  Case c = MakeCase(MakeProblem(1, 1, 1, 5, 7, 8, 6, HEED_CAUSAL_OFFSET));
  Random random(2);
  Families().front().fill(&random, &c);
  for (const int64_t offset :
       {INT64_MIN, INT64_MIN + 1, int64_t{-6}, int64_t{-5}, int64_t{-4},
        int64_t{6}, int64_t{7}, INT64_MAX - 1, INT64_MAX}) {
    c.causal_offset = offset;
    EXPECT_EQ(Difference(RunHeed(c), RunRowProgram(c)), "") << offset;
  }
}

TEST(Status, NamesAreNeverNull) {
  for (const int status : {0, 1, 2, 3, 4, 5, -1, 1000}) {
    ASSERT_NE(heed_status_name(static_cast<heed_status>(status)), nullptr);
  }
  EXPECT_STRNE(heed_version(), "");
}

TEST(Describe, WritesAtMostTheBufferAndReturnsTheWholeLength) {
  const heed_problem problem = GoodProblem();
  heed_plan* plan = nullptr;
  ASSERT_EQ(heed_plan_create(&problem, nullptr, &plan), HEED_OK);
  const size_t length = heed_plan_describe(plan, nullptr, 0);
  ASSERT_GT(length, 0u);
  std::string whole(length + 1, '?');
  EXPECT_EQ(heed_plan_describe(plan, whole.data(), whole.size()), length);
  EXPECT_EQ(whole[length], '\0');
  whole.resize(length);
  for (const char* part :
       {"problem=", "target=", "threads=", "tile=", "tier="}) {
    EXPECT_NE(whole.find(part), std::string::npos) << whole;
  }
  std::string cut(8, '?');
  EXPECT_EQ(heed_plan_describe(plan, cut.data(), 5), length);
  EXPECT_EQ(cut, whole.substr(0, 4) + std::string("\0???", 4));
  EXPECT_EQ(heed_targets(nullptr, 0), [] {
    size_t size = 0;
    for (const std::string& name : TargetNames(false)) size += name.size() + 1;
    return size - 1;
  }());
  heed_plan_destroy(plan);
}

}  // namespace
}  // namespace heed::test
