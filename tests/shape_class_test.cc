// The keys: every field that a kernel can see moves them, in problems and in
// machines.
#include "runtime/shape_class.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/machine.h"
#include "tests/attention_case.h"

namespace heed::test {
namespace {

struct ClassChange {
  const char* what;
  std::function<void(heed_problem*)> apply;
};

// Something of everything, so that every field is read.
heed_problem Everything() {
  heed_problem p =
      MakeProblem(2, 8, 2, 600, 700, 64, 96, HEED_CAUSAL_BOTTOM_RIGHT);
  p.window = 1;
  p.window_left = 200;
  p.window_right = 0;
  p.mask = HEED_MASK_BOOL;
  p.mask_block_q = 4;
  p.mask_block_k = 8;
  p.softcap = 30;
  p.alibi = p.sinks = p.ragged = 1;
  p.page_size = 16;
  return p;
}

TEST(ShapeClass, EveryFieldThatAKernelCanSeeChangesIt) {
  const std::vector<ClassChange> changes = {
      {"batch",
       [](heed_problem* p) {
         p->batch = 1;
         p->heads_kv = 1;
         p->heads_q = 4;
         p->len_q = 520;
       }},
      {"heads_q", [](heed_problem* p) { p->heads_q = 16; }},
      {"heads_kv", [](heed_problem* p) { p->heads_kv = 4; }},
      {"len_q", [](heed_problem* p) { p->len_q = 1300; }},
      {"len_k", [](heed_problem* p) { p->len_k = 1400; }},
      {"dim_qk", [](heed_problem* p) { p->dim_qk = 65; }},
      {"dim_v", [](heed_problem* p) { p->dim_v = 97; }},
      {"dtype", [](heed_problem* p) { p->dtype = HEED_BF16; }},
      {"causal", [](heed_problem* p) { p->causal = HEED_CAUSAL_OFFSET; }},
      {"no causal", [](heed_problem* p) { p->causal = HEED_CAUSAL_NONE; }},
      {"window", [](heed_problem* p) { p->window = 0; }},
      {"window_left", [](heed_problem* p) { p->window_left = 2000; }},
      {"window_right",
       [](heed_problem* p) {
         p->causal = HEED_CAUSAL_NONE;
         p->window_right = 1000;
       }},
      {"mask", [](heed_problem* p) { p->mask = HEED_MASK_F32; }},
      {"no mask", [](heed_problem* p) { p->mask = HEED_MASK_NONE; }},
      {"mask_block_q", [](heed_problem* p) { p->mask_block_q = 64; }},
      {"mask_block_k", [](heed_problem* p) { p->mask_block_k = 64; }},
      {"softcap", [](heed_problem* p) { p->softcap = 0; }},
      {"alibi", [](heed_problem* p) { p->alibi = 0; }},
      {"sinks", [](heed_problem* p) { p->sinks = 0; }},
      {"ragged", [](heed_problem* p) { p->ragged = 0; }},
      {"page_size", [](heed_problem* p) { p->page_size = 32; }},
      {"few rows", [](heed_problem* p) { p->len_q = 1; }}};
  const ShapeClass base = ClassOf(Everything(), 16);
  std::vector<std::string> names = {ToString(base)};
  for (const ClassChange& change : changes) {
    heed_problem problem = Everything();
    change.apply(&problem);
    const ShapeClass changed = ClassOf(problem, 16);
    EXPECT_NE(changed, base) << change.what;
    EXPECT_NE(ShapeClassHash()(changed), ShapeClassHash()(base)) << change.what;
    names.push_back(ToString(changed));
  }
  EXPECT_NE(ClassOf(Everything(), 15), base);
  // And the name tells all of them apart.
  for (size_t i = 1; i < names.size(); ++i) {
    EXPECT_NE(names[i], names[0]) << changes[i - 1].what;
  }
}

TEST(ShapeClass, HowManyPiecesAThreadGetsIsPartOfIt) {
  const heed_problem few = MakeProblem(1, 2, 2, 512, 512, 64, 64);
  const heed_problem many = MakeProblem(8, 2, 2, 512, 512, 64, 64);
  EXPECT_NE(ClassOf(few, 16), ClassOf(many, 16));
  EXPECT_EQ(ClassOf(few, 1), ClassOf(many, 1));
}

// These change no kernel's speed: a number that is multiplied with, or where a
// window stands.
TEST(ShapeClass, WhatNoKernelsSpeedDependsOnDoesNotChangeIt) {
  const ShapeClass base = ClassOf(Everything(), 2);
  const std::vector<ClassChange> changes = {
      {"scale",
       [](heed_problem* p) {
         p->scale_mode = HEED_SCALE_VALUE;
         p->scale = 0.3;
       }},
      {"softcap's value", [](heed_problem* p) { p->softcap = 50; }},
      {"len_q in the bucket", [](heed_problem* p) { p->len_q = 900; }},
      {"window in the bucket", [](heed_problem* p) { p->window_left = 220; }}};
  for (const ClassChange& change : changes) {
    heed_problem problem = Everything();
    change.apply(&problem);
    EXPECT_EQ(ClassOf(problem, 2), base) << change.what;
  }
  // The two corners of a square are the same.
  EXPECT_EQ(
      ClassOf(MakeProblem(1, 4, 4, 512, 512, 64, 64, HEED_CAUSAL_TOP_LEFT), 2),
      ClassOf(MakeProblem(1, 4, 4, 512, 512, 64, 64, HEED_CAUSAL_BOTTOM_RIGHT),
              2));
}

TEST(MachineKeyTest, EveryFieldThatAKernelCanSeeChangesIt) {
  Machine base;
  base.vendor = "AuthenticAMD";
  base.family = 25;
  base.model = 1;
  base.stepping = 1;
  base.targets = {"AVX2", "SSE4"};
  base.l1d = {32768, 8, 1};
  base.l2 = {524288, 8, 1};
  base.l3 = {size_t{32} << 20, 16, 2};
  base.cores = 4;
  base.threads = 2;
  const std::vector<std::function<void(Machine*)>> changes = {
      [](Machine* m) { m->vendor = "GenuineIntel"; },
      [](Machine* m) { ++m->family; },
      [](Machine* m) { ++m->model; },
      [](Machine* m) { ++m->stepping; },
      [](Machine* m) { m->targets[0] = "AVX3"; },
      [](Machine* m) { m->targets[1] = "SSSE3"; },
      [](Machine* m) { m->targets.push_back("SCALAR"); },
      [](Machine* m) { m->l1d.bytes *= 2; },
      [](Machine* m) { m->l1d.ways *= 2; },
      [](Machine* m) { m->l1d.cores_sharing *= 2; },
      [](Machine* m) { m->l2.bytes *= 2; },
      [](Machine* m) { m->l2.ways *= 2; },
      [](Machine* m) { m->l2.cores_sharing *= 2; },
      [](Machine* m) { m->l3.bytes *= 2; },
      [](Machine* m) { m->l3.ways *= 2; },
      [](Machine* m) { m->l3.cores_sharing *= 2; },
      [](Machine* m) { ++m->threads; }};
  const std::string key = MachineKey(base);
  for (size_t i = 0; i < changes.size(); ++i) {
    Machine machine = base;
    changes[i](&machine);
    EXPECT_NE(MachineKey(machine), key) << "change " << i;
  }
  // What no kernel sees: words for people, and cores that are not ours.
  Machine machine = base;
  machine.brand = "a brand";
  machine.cache_source = "elsewhere";
  ++machine.cores;
  EXPECT_EQ(MachineKey(machine), key);
}

}  // namespace
}  // namespace heed::test
