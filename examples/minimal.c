/* Causal grouped-query attention on numbers of one's own, in C.
 *
 *   cc minimal.c $(pkg-config --cflags --libs heed) -lm
 */
#include <heed.h>
#include <math.h>
#include <stdio.h>

enum { kHeadsQ = 4, kHeadsKv = 2, kTokens = 5, kDim = 8 };

static float q[kHeadsQ * kTokens * kDim];
static float k[kHeadsKv * kTokens * kDim];
static float v[kHeadsKv * kTokens * kDim];
static float out[kHeadsQ * kTokens * kDim];

/* Something to look at: [heads, tokens, dim], one token after the other. */
static void Fill(float* x, int count, int seed) {
  for (int i = 0; i < count; ++i) {
    x[i] = (float)((i * 37 + seed) % 19 - 9) / 8.0f;
  }
}

int main(void) {
  heed_problem problem;
  heed_call call;
  Fill(q, kHeadsQ * kTokens * kDim, 1);
  Fill(k, kHeadsKv * kTokens * kDim, 2);
  Fill(v, kHeadsKv * kTokens * kDim, 3);

  /* What is computed. */
  heed_problem_init(&problem);
  problem.batch = 1;
  problem.heads_q = kHeadsQ;
  problem.heads_kv = kHeadsKv;
  problem.len_q = problem.len_k = kTokens;
  problem.dim_qk = problem.dim_v = kDim;
  problem.dtype = HEED_F32;
  problem.causal = HEED_CAUSAL_BOTTOM_RIGHT;
  problem.scale_mode = HEED_SCALE_INV_SQRT_DIM;

  /* On what: [batch, heads, tokens, dim]. */
  heed_call_init(&call);
  call.q = heed_dense_input(q, kHeadsQ, kTokens, kDim);
  call.k = heed_dense_input(k, kHeadsKv, kTokens, kDim);
  call.v = heed_dense_input(v, kHeadsKv, kTokens, kDim);
  call.out = heed_dense_output(out, kHeadsQ, kTokens, kDim);

  /* To do the same again and again, make a plan once: heed_plan_create(). */
  if (heed_attention(&problem, NULL, &call) != HEED_OK) {
    fprintf(stderr, "%s\n", heed_last_error());
    return 1;
  }

  /* The first token sees itself alone, so that its result is its value. */
  for (int i = 0; i < kDim; ++i) {
    if (fabsf(out[i] - v[i]) > 1e-6f) {
      fprintf(stderr, "element %d is %g, expected %g\n", i, out[i], v[i]);
      return 1;
    }
  }
  printf("head 0, last token:");
  for (int i = 0; i < kDim; ++i) {
    printf(" %.4f", out[(kTokens - 1) * kDim + i]);
  }
  printf("\n");
  return 0;
}
