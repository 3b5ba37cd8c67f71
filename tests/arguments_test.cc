// Promise P7: every wrong argument gives its status and one line that names the
// argument, its value and what was expected; nothing is written.
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

using ChangeProblem = std::function<void(heed_problem*)>;

void ExpectProblemRefused(const ChangeProblem& change,
                          const std::vector<std::string>& message,
                          heed_status status = HEED_INVALID_ARGUMENT) {
  heed_problem problem = GoodProblem();
  change(&problem);
  heed_plan* plan = reinterpret_cast<heed_plan*>(0x10);
  EXPECT_EQ(heed_plan_create(&problem, nullptr, &plan), status)
      << heed_last_error();
  EXPECT_EQ(plan, nullptr);
  ExpectMessage(message);
}

TEST(ProblemArguments, NegativeSizesAreRefusedByName) {
  const struct {
    const char* name;
    int64_t heed_problem::*field;
  } fields[] = {{"batch", &heed_problem::batch},
                {"heads_q", &heed_problem::heads_q},
                {"heads_kv", &heed_problem::heads_kv},
                {"len_q", &heed_problem::len_q},
                {"len_k", &heed_problem::len_k},
                {"dim_qk", &heed_problem::dim_qk},
                {"dim_v", &heed_problem::dim_v}};
  for (const auto& field : fields) {
    for (const int64_t value : {int64_t{-1}, INT64_MIN}) {
      ExpectProblemRefused([&](heed_problem* p) { p->*field.field = value; },
                           {field.name, std::to_string(value), "expected"});
    }
  }
}

TEST(ProblemArguments, HeadsThatDoNotDivideAreRefused) {
  for (const auto& [heads_q, heads_kv] :
       {std::pair<int64_t, int64_t>{33, 2}, {3, 2}, {2, 4}, {3, 4}, {1, 0}}) {
    ExpectProblemRefused(
        [q = heads_q, kv = heads_kv](heed_problem* p) {
          p->heads_q = q;
          p->heads_kv = kv;
        },
        {"heads_q", std::to_string(heads_q), "heads_kv",
         std::to_string(heads_kv), "expected"});
  }
}

TEST(ProblemArguments, UnknownEnumValuesAreRefusedByName) {
  for (const int32_t value : {-1, 0, 4, 99}) {
    ExpectProblemRefused([&](heed_problem* p) { p->dtype = value; },
                         {"dtype", std::to_string(value), "expected"});
  }
  for (const int32_t value : {-1, 4, 99}) {
    ExpectProblemRefused([&](heed_problem* p) { p->causal = value; },
                         {"causal", std::to_string(value), "expected"});
  }
  for (const int32_t value : {-1, 0, 3}) {
    ExpectProblemRefused([&](heed_problem* p) { p->scale_mode = value; },
                         {"scale_mode", std::to_string(value), "expected"});
  }
  ExpectProblemRefused([](heed_problem* p) { p->reserved = 7; },
                       {"reserved", "7", "expected"});
}

TEST(ProblemArguments, ScalesThatAreNotFiniteAreRefused) {
  for (const double scale : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    ExpectProblemRefused(
        [&](heed_problem* p) {
          p->scale_mode = HEED_SCALE_VALUE;
          p->scale = scale;
        },
        {"scale", "expected", "finite"});
  }
}

TEST(ProblemArguments, FlagsAreZeroOrOne) {
  const struct {
    const char* name;
    int32_t heed_problem::*field;
  } flags[] = {{"window", &heed_problem::window},
               {"alibi", &heed_problem::alibi},
               {"sinks", &heed_problem::sinks},
               {"ragged", &heed_problem::ragged}};
  for (const auto& flag : flags) {
    for (const int32_t value : {-1, 2, INT32_MAX}) {
      ExpectProblemRefused(
          [&](heed_problem* p) {
            p->causal = HEED_CAUSAL_TOP_LEFT;
            p->*flag.field = value;
          },
          {std::string("problem.") + flag.name + " is " + std::to_string(value),
           "expected 0 or 1"});
    }
  }
}

TEST(ProblemArguments, SoftcapsThatFloatsCannotHoldAreRefused) {
  for (const double cap :
       {-1.0, -HUGE_VAL, HUGE_VAL, std::nan(""), 1e-60, 1e-39, 1.1e38, 1e300}) {
    ExpectProblemRefused([&](heed_problem* p) { p->softcap = cap; },
                         {"problem.softcap is", "expected 0"});
  }
  for (const double cap : {0.0, -0.0, 1.2e-38, 1.0, 50.0, 1e38}) {
    heed_problem problem = GoodProblem();
    problem.softcap = cap;
    heed_plan* plan = nullptr;
    EXPECT_EQ(heed_plan_create(&problem, nullptr, &plan), HEED_OK)
        << heed_last_error();
    heed_plan_destroy(plan);
  }
}

TEST(ProblemArguments, WindowsAreCheckedWhereTheyAreOn) {
  const auto window = [](int64_t left, int64_t right) {
    return [=](heed_problem* p) {
      p->causal = HEED_CAUSAL_TOP_LEFT;
      p->window = 1;
      p->window_left = left;
      p->window_right = right;
    };
  };
  ExpectProblemRefused(window(-2, 0), {"problem.window_left is -2", "expected",
                                       "-1 for no limit"});
  ExpectProblemRefused(window(0, INT64_MIN),
                       {"problem.window_right is -9223372036854775808"});
  for (const auto& [left, right] :
       {std::pair<int64_t, int64_t>{-1, -1}, {0, 0}, {INT64_MAX, INT64_MAX}}) {
    heed_problem problem = GoodProblem();
    window(left, right)(&problem);
    heed_plan* plan = nullptr;
    EXPECT_EQ(heed_plan_create(&problem, nullptr, &plan), HEED_OK)
        << heed_last_error();
    heed_plan_destroy(plan);
    problem.window = 0;
    problem.window_left = -100;
    EXPECT_EQ(heed_plan_create(&problem, nullptr, &plan), HEED_OK);
    heed_plan_destroy(plan);
  }
}

TEST(ProblemArguments, WindowsAndAlibiWithoutCausalNeedAnAlignment) {
  for (const int32_t align : {-1, 0, 4}) {
    ExpectProblemRefused(
        [&](heed_problem* p) {
          p->window = 1;
          p->align = align;
        },
        {"problem.align is " + std::to_string(align), "expected",
         "window is on"});
    ExpectProblemRefused(
        [&](heed_problem* p) {
          p->alibi = 1;
          p->align = align;
        },
        {"problem.align is " + std::to_string(align), "expected",
         "alibi is on"});
    // Not read: without either, or with a causal line.
    heed_problem problem = GoodProblem();
    problem.align = align;
    heed_plan* plan = nullptr;
    EXPECT_EQ(heed_plan_create(&problem, nullptr, &plan), HEED_OK);
    heed_plan_destroy(plan);
    problem.causal = HEED_CAUSAL_BOTTOM_RIGHT;
    problem.alibi = problem.window = 1;
    EXPECT_EQ(heed_plan_create(&problem, nullptr, &plan), HEED_OK);
    heed_plan_destroy(plan);
  }
}

TEST(ProblemArguments, MasksAndPagesAreChecked) {
  for (const int32_t mask : {-1, 4, 77}) {
    ExpectProblemRefused(
        [&](heed_problem* p) { p->mask = mask; },
        {"problem.mask is " + std::to_string(mask), "expected"});
  }
  ExpectProblemRefused([](heed_problem* p) { p->page_size = -16; },
                       {"problem.page_size is -16", "expected"});
  ExpectProblemRefused(
      [](heed_problem* p) {
        p->mask = HEED_MASK_F32;
        p->dim_qk = p->dim_v = 1;
        p->len_q = p->len_k = int64_t{1} << 31;
      },
      {"bytes of mask", "overflow", "expected"});
}

TEST(ProblemArguments, LengthsBeyondThePositionsThereAreAreUnsupported) {
  for (int64_t heed_problem::*len :
       {&heed_problem::len_q, &heed_problem::len_k}) {
    ExpectProblemRefused(
        [&](heed_problem* p) {
          p->batch = p->heads_q = p->heads_kv = 1;
          p->dim_qk = p->dim_v = 0;
          p->*len = (int64_t{1} << 60) + 1;
        },
        {"problem.len_", "at most", "supported"}, HEED_UNSUPPORTED);
  }
}

TEST(ProblemArguments, StructsOfAnotherSizeAreRefused) {
  for (const size_t size :
       {size_t{0}, sizeof(heed_problem) - 8, sizeof(heed_problem) + 8}) {
    ExpectProblemRefused([&](heed_problem* p) { p->struct_size = size; },
                         {"struct_size", std::to_string(size), "expected"});
  }
  heed_problem zero = {};
  heed_plan* plan = nullptr;
  EXPECT_EQ(heed_plan_create(&zero, nullptr, &plan), HEED_INVALID_ARGUMENT);
}

TEST(ProblemArguments, SizesWhoseProductsOverflowAreRefusedWithoutAllocating) {
  const ChangeProblem changes[] = {
      [](heed_problem* p) {
        p->batch = int64_t{1} << 31;
        p->len_q = p->len_k = int64_t{1} << 40;
      },
      [](heed_problem* p) { p->dim_qk = int64_t{1} << 62; },
      [](heed_problem* p) { p->dim_v = INT64_MAX; },
      [](heed_problem* p) { p->len_k = INT64_MAX; },
      [](heed_problem* p) { p->batch = INT64_MAX; },
      [](heed_problem* p) { p->len_q = INT64_MAX; }};
  for (const ChangeProblem& change : changes) {
    heed_problem problem = GoodProblem();
    change(&problem);
    heed_plan* plan = nullptr;
    const heed_status status = heed_plan_create(&problem, nullptr, &plan);
    EXPECT_TRUE(status == HEED_INVALID_ARGUMENT || status == HEED_UNSUPPORTED)
        << heed_status_name(status);
    EXPECT_EQ(plan, nullptr);
    EXPECT_STRNE(heed_last_error(), "");
  }
}

using ChangeOptions = std::function<void(heed_options*)>;

void ExpectOptionsRefused(const ChangeOptions& change,
                          const std::vector<std::string>& message,
                          heed_status status = HEED_INVALID_ARGUMENT) {
  const heed_problem problem = GoodProblem();
  heed_options options;
  heed_options_init(&options);
  change(&options);
  heed_plan* plan = nullptr;
  EXPECT_EQ(heed_plan_create(&problem, &options, &plan), status)
      << heed_last_error();
  EXPECT_EQ(plan, nullptr);
  ExpectMessage(message);
}

TEST(OptionArguments, EachIsCheckedByName) {
  ExpectOptionsRefused([](heed_options* o) { o->threads = -1; },
                       {"threads", "-1", "expected"});
  ExpectOptionsRefused([](heed_options* o) { o->tuning = 3; },
                       {"tuning", "3", "expected"});
  ExpectOptionsRefused([](heed_options* o) { o->tuning = -1; },
                       {"tuning", "-1", "expected"});
  ExpectOptionsRefused([](heed_options* o) { o->struct_size = 4; },
                       {"struct_size", "4", "expected"});
  const heed_runner none = {nullptr, nullptr};
  ExpectOptionsRefused([&](heed_options* o) { o->runner = &none; },
                       {"runner", "NULL", "expected"});
}

TEST(OptionArguments, UnknownTargetIsRefusedWithTheOnesThereAre) {
  for (const char* name : {"", "AVX9", "avx2 ", "NEON SVE"}) {
    const heed_problem problem = GoodProblem();
    heed_options options;
    heed_options_init(&options);
    options.target = name;
    heed_plan* plan = nullptr;
    EXPECT_NE(heed_plan_create(&problem, &options, &plan), HEED_OK) << name;
    ExpectMessage({"target", TargetNames(/*fused_only=*/false).front()});
  }
}

TEST(OptionArguments, PinnedTilesAreCheckedFieldByField) {
  const struct {
    const char* name;
    int32_t heed_tile::*field;
    int32_t value;
  } fields[] = {{"row_block", &heed_tile::row_block, -1},
                {"key_tile", &heed_tile::key_tile, -48},
                {"pack_k", &heed_tile::pack_k, 4},
                {"pack_v", &heed_tile::pack_v, -1},
                {"prefetch", &heed_tile::prefetch, 3}};
  for (const auto& field : fields) {
    ExpectOptionsRefused(
        [&](heed_options* o) {
          o->tuning = HEED_TUNING_PINNED;
          o->tile.*field.field = field.value;
        },
        {field.name, std::to_string(field.value), "expected"});
  }
  ExpectOptionsRefused(
      [](heed_options* o) {
        o->tuning = HEED_TUNING_PINNED;
        o->tile.reserved[0] = 5;
      },
      {"reserved", "5", "expected"});
}

TEST(OptionArguments, EnormousPinnedTilesAndThreadCountsStillRun) {
  Case c = MakeCase(GoodProblem());
  Random random(1);
  Families().front().fill(&random, &c);
  Settings settings;
  settings.threads = 1000;
  settings.pinned = true;
  settings.tile.row_block = settings.tile.key_tile =
      std::numeric_limits<int32_t>::max();
  EXPECT_EQ(Difference(RunHeed(c, settings), RunHeed(c)), "");
}

}  // namespace
}  // namespace heed::test
