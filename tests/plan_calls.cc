// Creates plans between two marks that strace can see:
// tests/plan_system_calls.sh counts what the kernel was asked for between them.
// Against the library that people link.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "heed.h"

namespace {

// A write that fails, so that nothing else happens.
void Mark(const char* text) {
  if (write(-1, text, std::strlen(text)) >= 0) std::puts("unexpected");
}

bool CreatePlans() {
  for (const char* text :
       {"b1_hq12_hkv12_q128_k128_d64_causal_f32",
        "b1_hq32_hkv8_q1_k4096_d128_f32", "b8_hq12_hkv12_q197_k197_d64_f16"}) {
    heed_problem problem;
    heed_plan* plan = nullptr;
    if (heed_problem_parse(text, &problem) != HEED_OK ||
        heed_plan_create(&problem, nullptr, &plan) != HEED_OK) {
      std::printf("%s\n", heed_last_error());
      return false;
    }
    heed_plan_destroy(plan);
  }
  return true;
}

}  // namespace

int main() {
  // The first one loads.
  if (!CreatePlans()) return 1;
  Mark("heed-mark-begin");
  for (int i = 0; i < 100; ++i) {
    if (!CreatePlans()) return 1;
  }
  Mark("heed-mark-end");
  return 0;
}
