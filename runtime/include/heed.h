/* heed: exact scaled dot-product attention on CPUs.  C99, the only ABI.
 *
 *   out = softmax(scale * q k^T + causal) v        per query row, float32
 * arithmetic
 *
 * Shapes: q [batch, heads_q, len_q, dim_qk], k [batch, heads_kv, len_k,
 * dim_qk], v [batch, heads_kv, len_k, dim_v], out [batch, heads_q, len_q,
 * dim_v], lse [batch, heads_q, len_q].  Query head h reads kv head h / (heads_q
 * / heads_kv).
 *
 * A row's bits depend on its own query, its visible keys and values and the
 * parameters only: not on threads, tiles, batch, other rows, or which SIMD
 * target with fused multiply-add ran it.
 *
 * Errors are values; a failed call writes nothing.  heed_last_error() says what
 * was wrong. Requires the default floating-point environment (round to nearest,
 * no flush-to-zero).
 */
#ifndef HEED_H_
#define HEED_H_

#include <stddef.h>
#include <stdint.h>

#include "heed_export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum heed_status {
  HEED_OK = 0,
  HEED_INVALID_ARGUMENT = 1, /* a shape, stride, pointer or option is wrong */
  HEED_UNSUPPORTED = 2, /* well formed, but this build or CPU cannot do it */
  HEED_OUT_OF_MEMORY = 3,
  HEED_INTERNAL = 4 /* a fault of heed itself; please report it */
} heed_status;

/* Storage type of q, k, v and out.  lse is always f32.  Zero is not a type. */
typedef enum heed_dtype {
  HEED_F32 = 1,
  HEED_F16 = 2,
  HEED_BF16 = 3
} heed_dtype;

/* Key j is visible to query i iff j <= i + offset; which offset, the caller
 * says. */
typedef enum heed_causal {
  HEED_CAUSAL_NONE = 0,     /* every key is visible */
  HEED_CAUSAL_TOP_LEFT = 1, /* offset 0 (PyTorch is_causal) */
  HEED_CAUSAL_BOTTOM_RIGHT =
      2, /* offset len_k - len_q (flash-attn >= 2.1, a KV cache) */
  HEED_CAUSAL_OFFSET = 3 /* offset = heed_call.causal_offset, may be negative */
} heed_causal;

/* Zero is refused, so that a zero-initialised struct never means "scale 0" nor
 * a hidden default. */
typedef enum heed_scale_mode {
  HEED_SCALE_INV_SQRT_DIM = 1, /* 1 / sqrt(dim_qk); 1 when dim_qk is 0 */
  HEED_SCALE_VALUE =
      2 /* heed_problem.scale: any finite value, 0 and negative included */
} heed_scale_mode;

/* What is computed.  Start from heed_problem_init(). */
typedef struct heed_problem {
  size_t struct_size; /* sizeof(heed_problem) */
  int64_t batch;
  int64_t heads_q;    /* a multiple of heads_kv */
  int64_t heads_kv;   /* 0 only if heads_q is 0 */
  int64_t len_q;      /* query tokens */
  int64_t len_k;      /* key tokens */
  int64_t dim_qk;     /* head width of q and k */
  int64_t dim_v;      /* head width of v and out */
  int32_t dtype;      /* heed_dtype */
  int32_t causal;     /* heed_causal */
  int32_t scale_mode; /* heed_scale_mode */
  int32_t reserved;   /* 0 */
  double scale;       /* read only if scale_mode is HEED_SCALE_VALUE */
} heed_problem;

/* What the tuner picks.  No field changes a result's bits.  0 = the model's
 * choice. */
typedef struct heed_tile {
  int32_t row_block; /* query rows one task owns; rounded up to the target's row
                        multiple */
  int32_t key_tile;  /* keys whose scores are held at once; rounded up to a
                        multiple of 48 */
  /* 1 = read where it lies (f32 only), 2 = copied to scratch, a tile at a time
   * by each task, 3 = copied once per call, for all tasks.  16-bit types are
   * widened by the copy. */
  int32_t pack_k;
  int32_t pack_v;
  int32_t prefetch; /* 1 = none, 2 = the next keys while the current ones are
                       used */
  int32_t reserved[3];
} heed_tile;

typedef enum heed_tuning {
  HEED_TUNING_AUTO =
      0, /* a record for this machine if there is one, else the model */
  HEED_TUNING_OFF = 1,   /* the model; no file is read */
  HEED_TUNING_PINNED = 2 /* heed_options.tile */
} heed_tuning;

/* Runs task(task_ctx, i) once for each i in [0, count), in any order, on any
 * threads, then returns. count is at most the plan's thread count.  Running
 * them one after another is allowed. */
typedef struct heed_runner {
  void (*run)(void* runner_ctx, size_t count,
              void (*task)(void* task_ctx, size_t i), void* task_ctx);
  void* runner_ctx;
} heed_runner;

/* How it is computed.  Zeros (but for struct_size) are the defaults.  Start
 * from heed_options_init(). */
typedef struct heed_options {
  size_t struct_size; /* sizeof(heed_options) */
  int32_t
      threads; /* 0 = min(CPU affinity, cgroup quota, the caller's TBB arena) */
  int32_t tuning;     /* heed_tuning */
  heed_tile tile;     /* read only if tuning is HEED_TUNING_PINNED */
  const char* target; /* NULL = best; else a name from heed_targets(): run
                         exactly this one */
  const heed_runner* runner; /* NULL = oneTBB in the caller's arena; copied by
                                heed_plan_create */
} heed_options;

/* A tensor of the problem's dtype.  Strides are signed and count elements; 0
 * broadcasts (inputs only).  stride_dim must be 1 unless the last dimension has
 * at most one element. */
typedef struct heed_input {
  const void* data;
  int64_t stride_batch, stride_head, stride_token, stride_dim;
} heed_input;

typedef struct heed_output {
  void* data;
  int64_t stride_batch, stride_head, stride_token, stride_dim;
} heed_output;

/* The data of one call.  Start from heed_call_init().  out, lse and workspace
 * must share no byte with each other or an input.  Tensors may interleave in
 * one buffer if they do so with a common stride (q, k, v and out side by side
 * per token); other overlapping ranges are refused. */
typedef struct heed_call {
  size_t struct_size; /* sizeof(heed_call) */
  heed_input q, k, v;
  heed_output out;
  heed_output lse; /* f32 whatever the dtype; data NULL = not wanted; stride_dim
                      is ignored */
  int64_t causal_offset; /* read only if the problem says HEED_CAUSAL_OFFSET */
  void* workspace; /* heed_plan_workspace_size() bytes, aligned to 64; may be
                      NULL if that is 0 */
  size_t workspace_size; /* bytes */
} heed_call;

typedef struct heed_plan heed_plan;

/* Zero the struct and set struct_size.  dtype and scale_mode (and shapes) are
 * still to be set. */
HEED_EXPORT void heed_problem_init(heed_problem* problem);
HEED_EXPORT void heed_options_init(heed_options* options);
HEED_EXPORT void heed_call_init(heed_call* call);

/* Sets the strides of a dense [batch, heads, len, dim] tensor. */
HEED_EXPORT heed_input heed_dense_input(const void* data, int64_t heads,
                                        int64_t len, int64_t dim);
HEED_EXPORT heed_output heed_dense_output(void* data, int64_t heads,
                                          int64_t len, int64_t dim);

/* Everything that can be slow or can fail for a shape: validation, CPU
 * detection, tile look-up. options may be NULL.  On success *plan is to be
 * freed with heed_plan_destroy; on failure it is NULL.  A plan is immutable:
 * any number of threads may run it at once, each with its own workspace. */
HEED_EXPORT heed_status heed_plan_create(const heed_problem* problem,
                                         const heed_options* options,
                                         heed_plan** plan);
HEED_EXPORT void heed_plan_destroy(heed_plan* plan); /* NULL is allowed */

/* Bytes of scratch a run needs: threads * one tile, and copies of k and v in
 * f32 if the tile asks for them; never len_q * len_k. */
HEED_EXPORT size_t heed_plan_workspace_size(const heed_plan* plan);

/* Computes.  Allocates nothing, does no I/O.  Checks the call's pointers and
 * strides first. */
HEED_EXPORT heed_status heed_plan_run(const heed_plan* plan,
                                      const heed_call* call);

/* One line, "problem=... target=AVX2 threads=2 tile=rb96.kt192... tier=exact
 * ...", as snprintf: writes at most size bytes, NUL included, and returns the
 * length of the whole line. */
HEED_EXPORT size_t heed_plan_describe(const heed_plan* plan, char* text,
                                      size_t size);

/* Plan, workspace, run and destroy in one call; call->workspace is ignored. For
 * one-off use. */
HEED_EXPORT heed_status heed_attention(const heed_problem* problem,
                                       const heed_options* options,
                                       const heed_call* call);

/* The problem string, e.g. b1_hq32_hkv8_q2048_k2048_d128_causal_f32: README
 * "Problem strings". Prints as snprintf does; 0 if the problem is not printable
 * (unknown enum value). */
HEED_EXPORT size_t heed_problem_print(const heed_problem* problem, char* text,
                                      size_t size);
HEED_EXPORT heed_status heed_problem_parse(const char* text,
                                           heed_problem* problem);

/* Names of the SIMD targets compiled in and runnable here, best first,
 * separated by spaces; as snprintf. */
HEED_EXPORT size_t heed_targets(char* text, size_t size);

/* "0.1.0" */
HEED_EXPORT const char* heed_version(void);

/* Why the last call on this thread that did not return HEED_OK failed: one line
 * naming the argument, its value and what was expected.  Valid until the next
 * failing call on this thread. */
HEED_EXPORT const char* heed_last_error(void);

/* "invalid argument" and so on; never NULL. */
HEED_EXPORT const char* heed_status_name(heed_status status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEED_H_ */
