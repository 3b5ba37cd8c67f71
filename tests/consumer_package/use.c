/* A user of the installed C API, compiled as C99: one query over three keys, by
 * hand and by heed. */
#include <heed.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const float q[2] = {1.0f, 0.0f};
  const float k[6] = {0.0f, 1.0f, 1.0f, 0.0f, 2.0f, 0.0f}; /* scores 0, 1, 2 */
  const float v[3] = {3.0f, 5.0f, 7.0f};
  float out = 0.0f;
  float lse = 0.0f;
  const double sum = exp(0.0) + exp(1.0) + exp(2.0);
  const double want = (3.0 * exp(0.0) + 5.0 * exp(1.0) + 7.0 * exp(2.0)) / sum;
  heed_problem problem;
  heed_call call;

  heed_problem_init(&problem);
  problem.batch = problem.heads_q = problem.heads_kv = problem.len_q = 1;
  problem.len_k = 3;
  problem.dim_qk = 2;
  problem.dim_v = 1;
  problem.dtype = HEED_F32;
  problem.scale_mode = HEED_SCALE_VALUE;
  problem.scale = 1.0;

  heed_call_init(&call);
  call.q = heed_dense_input(q, 1, 1, 2);
  call.k = heed_dense_input(k, 1, 3, 2);
  call.v = heed_dense_input(v, 1, 3, 1);
  call.out = heed_dense_output(&out, 1, 1, 1);
  call.lse = heed_dense_output(&lse, 1, 1, 1);
  if (heed_attention(&problem, NULL, &call) != HEED_OK) {
    fprintf(stderr, "heed_attention: %s\n", heed_last_error());
    return 1;
  }
  if (fabs(out - want) > 1e-5 || fabs(lse - log(sum)) > 1e-5) {
    fprintf(stderr, "got %g and lse %g, expected %g and %g\n", out, lse, want,
            log(sum));
    return 1;
  }

  problem.len_k = -1;
  if (heed_attention(&problem, NULL, &call) != HEED_INVALID_ARGUMENT ||
      strlen(heed_last_error()) == 0) {
    fprintf(stderr, "a negative length was not refused with a message\n");
    return 1;
  }
  printf("heed %s: %g\n", heed_version(), out);
  return 0;
}
