/* heed.h as a C99 program sees it: nothing else included before it, linked to
 * the library alone. */
#include <heed.h>
#include <heed_block.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void Expect(int holds, const char* what) {
  if (holds) return;
  printf("FAIL %s (%s)\n", what, heed_last_error());
  ++failures;
}

/* One key: the result is its value, and the logarithm of the sum is the score.
 */
static void OneKeyGivesItsValue(void) {
  const float q[2] = {1, 2}, k[2] = {3, 4}, v[3] = {5, 6, 7};
  float out[3] = {0, 0, 0}, lse = 0;
  heed_problem problem;
  heed_call call;
  heed_problem_init(&problem);
  problem.batch = problem.heads_q = problem.heads_kv = 1;
  problem.len_q = problem.len_k = 1;
  problem.dim_qk = 2;
  problem.dim_v = 3;
  problem.dtype = HEED_F32;
  problem.scale_mode = HEED_SCALE_VALUE;
  problem.scale = 0.5;
  heed_call_init(&call);
  call.q = heed_dense_input(q, 1, 1, 2);
  call.k = heed_dense_input(k, 1, 1, 2);
  call.v = heed_dense_input(v, 1, 1, 3);
  call.out = heed_dense_output(out, 1, 1, 3);
  call.lse = heed_dense_output(&lse, 1, 1, 1);
  Expect(heed_attention(&problem, NULL, &call) == HEED_OK, "attention");
  Expect(fabsf(out[0] - 5) < 1e-6f && fabsf(out[1] - 6) < 1e-6f &&
             fabsf(out[2] - 7) < 1e-6f,
         "out is the value");
  Expect(fabsf(lse - 5.5f) < 1e-5f, "lse is the score");
}

static void APlanRuns(void) {
  const float q[4] = {0, 0, 0, 0}, v[2] = {1, 3};
  float out[4] = {-1, -1, -1, -1};
  char text[512];
  heed_problem problem;
  heed_options options;
  heed_call call;
  heed_plan* plan = NULL;
  Expect(heed_problem_parse("b1_hq1_hkv1_q4_k2_d1_f32", &problem) == HEED_OK,
         "parse");
  heed_options_init(&options);
  options.threads = 1;
  Expect(heed_plan_create(&problem, &options, &plan) == HEED_OK, "plan");
  if (plan == NULL) return;
  Expect(heed_plan_describe(plan, text, sizeof(text)) > 0, "describe");
  heed_call_init(&call);
  call.q = heed_dense_input(q, 1, 4, 1);
  call.k = heed_dense_input(q, 1, 2, 1);
  call.v = heed_dense_input(v, 1, 2, 1);
  call.out = heed_dense_output(out, 1, 4, 1);
  {
    static char memory[1 << 20];
    const size_t size = heed_plan_workspace_size(plan);
    Expect(size + 64 <= sizeof(memory), "workspace is small");
    call.workspace = memory + (64 - (size_t)memory % 64) % 64;
    call.workspace_size = size;
    Expect(heed_plan_run(plan, &call) == HEED_OK, "run");
  }
  heed_plan_destroy(plan);
  Expect(out[0] == 2 && out[1] == 2 && out[2] == 2 && out[3] == 2, "the mean");
}

static void AZeroProblemIsRefused(void) {
  heed_problem problem;
  heed_plan* plan = NULL;
  memset(&problem, 0, sizeof(problem));
  Expect(heed_plan_create(&problem, NULL, &plan) == HEED_INVALID_ARGUMENT,
         "a zero struct is refused");
  Expect(plan == NULL && strlen(heed_last_error()) > 0, "with a message");
  heed_plan_destroy(NULL);
}

/* Of a block that projects to v and back with 1 and to q and k with 0, one
 * token is its value twice. */
static void ABlockRuns(void) {
  const float qkv[3] = {0, 0, 1}, out[1] = {1}, x[1] = {3};
  float y[1] = {0}, z[1] = {0};
  unsigned char room[65536];
  heed_block_desc desc;
  heed_block_call call;
  heed_options options;
  heed_block* block = NULL;
  heed_block_plan* plan = NULL;
  heed_block_desc_init(&desc);
  desc.d_model = desc.heads_q = desc.heads_kv = 1;
  desc.dim_qk = desc.dim_v = 1;
  desc.qkv.data = qkv;
  desc.out.data = out;
  desc.qkv.dtype = desc.out.dtype = HEED_F32;
  desc.qkv.layout = desc.out.layout = HEED_LAYOUT_IN_OUT;
  desc.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  heed_options_init(&options);
  options.threads = 1;
  Expect(heed_block_create(&desc, &options, &block) == HEED_OK, "block");
  Expect(heed_block_plan_create(block, 1, 1, 0, &options, &plan) == HEED_OK,
         "plan of a block");
  heed_block_call_init(&call);
  call.x = heed_dense_input(x, 1, 1, 1);
  call.y = heed_dense_output(y, 1, 1, 1);
  call.z = heed_dense_output(z, 1, 1, 1);
  call.workspace = (void*)(((uintptr_t)room + 63) / 64 * 64);
  call.workspace_size = heed_block_plan_workspace_size(plan);
  Expect(call.workspace_size <= sizeof(room) - 64, "room for a small block");
  Expect(heed_block_run(plan, &call) == HEED_OK, "run of a block");
  Expect(z[0] == 3 && y[0] == 6, "a block's result");
  heed_block_plan_destroy(plan);
  heed_block_destroy(block);
}

int main(void) {
  OneKeyGivesItsValue();
  APlanRuns();
  ABlockRuns();
  AZeroProblemIsRefused();
  Expect(strlen(heed_version()) > 0, "version");
  Expect(strlen(heed_status_name((heed_status)77)) > 0,
         "any status has a name");
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
