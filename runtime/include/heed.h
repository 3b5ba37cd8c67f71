/* heed: exact scaled dot-product attention on CPUs.  C99, the only ABI.
 *
 *   out = softmax(softcap(scale * q k^T) + alibi + mask) v
 *
 * per query row, over the keys that the row sees, in float32 arithmetic
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

/* Where query i stands among the keys, at position i + offset, for a window or
 * ALiBi without a causal line (a causal problem's offset is its causal line's).
 * Zero is no alignment. */
typedef enum heed_align {
  HEED_ALIGN_TOP_LEFT = 1,     /* offset 0 */
  HEED_ALIGN_BOTTOM_RIGHT = 2, /* offset = keys in use - queries */
  HEED_ALIGN_OFFSET = 3        /* offset = heed_call.causal_offset */
} heed_align;

/* How heed_call.mask is stored. */
typedef enum heed_mask {
  HEED_MASK_NONE = 0,
  HEED_MASK_BOOL = 1, /* bytes; any value but 0: the key is visible */
  HEED_MASK_F32 = 2,  /* added to the scaled score; only -inf hides the key */
  HEED_MASK_DTYPE = 3 /* the same, stored as the problem's dtype */
} heed_mask;

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
  int32_t align;      /* heed_align; read only if a window or ALiBi is on and
                         causal is HEED_CAUSAL_NONE */
  double scale;       /* read only if scale_mode is HEED_SCALE_VALUE */
  double softcap; /* > 0: scores become softcap * tanh(score / softcap), before
                     ALiBi and mask; 0: they do not */
  /* 1: query i at position p = i + offset sees keys p - window_left to p +
   * window_right, both included, -1 = without limit ("the last W keys, itself
   * included" is W - 1 and 0). 0: no window, and the two are not read. */
  int32_t window;
  int32_t mask; /* heed_mask */
  int64_t window_left, window_right;
  int32_t alibi; /* 1: slope * (j - p) is added, slopes in the call */
  int32_t sinks; /* 1: a logit per query head joins the denominator */
  /* 1: the call gives each sequence's lengths (seqused_k, cu_seqlens_q,
   * cu_seqlens_k, causal_offsets); len_q and len_k are the longest. */
  int32_t ragged;
  int32_t reserved;  /* 0 */
  int64_t page_size; /* > 0: k and v are pages of so many keys, found through
                        heed_call.block_table; 0: they are not */
  /* Of HEED_MASK_BOOL: element (i, j) stands for mask_block_q queries and
   * mask_block_k keys; 0 and 1 are the same.  What blocks hide costs nearly
   * nothing: block-sparse attention, document masks. */
  int32_t mask_block_q, mask_block_k;
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
  int32_t prefetch; /* 1 = none, 2 = the next keys and rows while the current
                       ones are used */
  int32_t tasks_per_thread; /* where the keys of a few rows are cut over
                               threads: tasks for each, 1 to 64 */
  int32_t decode_below; /* a kv head with fewer query rows than this is decoded:
                           its keys are read once, where they lie; 1 = none, at
                           most 65 */
  int32_t reserved[1];
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
  int32_t threads;    /* 0 = HEED_NUM_THREADS of the environment, else min(CPU
                         affinity, cgroup quota, the caller's TBB arena); all
                         but the last are asked for once per process */
  int32_t tuning;     /* heed_tuning */
  heed_tile tile;     /* read only if tuning is HEED_TUNING_PINNED */
  const char* target; /* NULL = HEED_TARGET of the environment, else the best;
                         else a name from heed_targets(): run exactly this
                         one */
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

/* The tokens of k and v in pages: entry (b, i) of the table names the page that
 * holds keys [i * page_size, (i + 1) * page_size) of sequence b.  Pages may be
 * shared and in any order.  Entries beyond a sequence's keys are not read, nor
 * those of keys that end 768 or more keys before any that a row sees.  Of
 * heed_call.k and .v, stride_batch is then the distance between pages. */
typedef struct heed_block_table {
  const int32_t* data; /* [batch, max_pages] */
  int64_t stride_batch;
  int64_t max_pages;
  int64_t num_pages; /* pages that exist: every entry read must be below */
} heed_block_table;

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
  int64_t causal_offset; /* read only if the problem says HEED_CAUSAL_OFFSET or
                            HEED_ALIGN_OFFSET */
  /* [batch|1, heads_q|1, len_q|1, len_k] by strides of 0; read only if the
   * problem has a mask.  Bytes for HEED_MASK_BOOL, and with blocks
   * ceil(len_q / mask_block_q) by ceil(len_k / mask_block_k) of them; strides
   * count elements. */
  heed_input mask;
  const float* alibi_slopes; /* [heads_q]; read only if problem.alibi */
  const float* sinks;        /* [heads_q]; read only if problem.sinks */
  /* Read only if problem.ragged; each may be NULL. */
  const int32_t* seqused_k; /* [batch] keys in use; NULL = all of them */
  /* [batch + 1] rising from 0: sequence b is tokens [cu[b], cu[b + 1]) of q,
   * out and lse (of k and v), all of which have their batch in one run of
   * tokens: stride_batch is not used. */
  const int32_t* cu_seqlens_q;
  const int32_t* cu_seqlens_k;   /* not with pages */
  const int64_t* causal_offsets; /* [batch], instead of causal_offset */
  heed_block_table block_table;  /* read only if problem.page_size > 0 */
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

/* Bytes of scratch a run needs: threads * one tile, copies of k and v in f32 if
 * the tile asks for them, for few rows on several threads their states at every
 * 768th key, and for a ragged problem a list of its row blocks; never len_q *
 * len_k. */
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

/* How far heed_scores() takes the scores: for every key, hidden or not,
 * scale * q . k, and that after the soft cap; after ALiBi and mask, -inf where
 * a key is hidden; and the weights, which sum to 1 in a row (with a sink, to
 * less; 0 in a row that sees no key). */
typedef enum heed_score_stage {
  HEED_SCORES_SCALED = 1,
  HEED_SCORES_CAPPED = 2,
  HEED_SCORES_BIASED = 3,
  HEED_SCORES_WEIGHTS = 4
} heed_score_stage;

/* Writes the scores of a call, or its attention pattern, to look at: f32,
 * [batch, heads_q, len_q, len_k], dense or strided.  Of a ragged call, the rows
 * and keys that sequences have; other elements are not written.  Reads q, k and
 * what hides or biases; v, out, lse and workspace are ignored.  len_q * len_k
 * numbers are no way to compute attention: this runs on one thread and
 * allocates.  options may be NULL; of it the target is used. */
HEED_EXPORT heed_status heed_scores(const heed_problem* problem,
                                    const heed_options* options,
                                    const heed_call* call,
                                    heed_score_stage stage,
                                    const heed_output* scores);

/* New tokens of k and v, and the cache they go to.  Start from
 * heed_append_init(). */
typedef struct heed_append {
  size_t struct_size; /* sizeof(heed_append) */
  int64_t batch;
  int64_t heads_kv;
  int64_t len_new;   /* new tokens of a sequence; the most if cu_seqlens_new */
  int64_t len_cache; /* keys a sequence has room for; the most if
                        cu_seqlens_cache; not read with pages, where it is
                        max_pages * page_size */
  int64_t dim_qk;    /* head width of k */
  int64_t dim_v;     /* head width of v */
  int32_t dtype_new; /* heed_dtype of k_new and v_new */
  int32_t dtype_cache; /* heed_dtype of k_cache and v_cache */
  heed_input k_new;    /* [batch, heads_kv, len_new, dim_qk] */
  heed_input v_new;    /* [batch, heads_kv, len_new, dim_v] */
  heed_output k_cache; /* [batch, heads_kv, len_cache, dim_qk], or as
                          heed_call.k with cu_seqlens_k or pages */
  heed_output v_cache;
  /* [batch] keys that are in the cache already: new token t of sequence b
   * becomes key positions[b] + t.  One of the two; the other is NULL. */
  const int64_t* positions;
  const int32_t* positions_i32;
  /* [batch + 1] or NULL, as heed_call.cu_seqlens_q and _k: the new tokens, and
   * the room of each sequence, in one run of tokens. */
  const int32_t* cu_seqlens_new;
  const int32_t* cu_seqlens_cache; /* not with pages */
  int64_t page_size;               /* > 0: the cache is pages of so many keys */
  heed_block_table block_table;    /* read only if page_size > 0; only entries
                                      of pages that are written to */
} heed_append;

HEED_EXPORT void heed_append_init(heed_append* append);

/* Appends to a cache.  Elements keep their bits where the types are the same;
 * else they widen exactly and round to nearest, ties to even.  Everything is
 * checked before anything is written: positions beyond the room, pages that do
 * not exist, and two tokens for one place, which is an error that names the
 * sequences.  Allocates only to check more than 256 runs of pages. */
HEED_EXPORT heed_status heed_kv_append(const heed_append* append);

/* Two states of the same rows over keys that have nothing in common, and their
 * union.  Start from heed_merge_init().  All f32; out [batch, heads, len, dim],
 * lse [batch, heads, len] whose stride_dim is ignored. */
typedef struct heed_merge {
  size_t struct_size; /* sizeof(heed_merge) */
  int64_t batch, heads, len, dim;
  heed_input out_a, lse_a;
  heed_input out_b, lse_b;
  heed_output out, lse; /* may each be out_a or out_b (lse_a or lse_b), address
                           and strides; else they overlap nothing */
} heed_merge;

HEED_EXPORT void heed_merge_init(heed_merge* merge);

/* The attention over the union of two sets of keys, from those over each, as
 * heed_plan_run leaves them in out and lse (without sinks, or with sinks in one
 * of the two).  Per row, in double, rounded to float at the end:
 *
 *   m = max(lse_a, lse_b)   a = exp(lse_a - m)   b = exp(lse_b - m)
 *   out = (a * out_a + b * out_b) / (a + b)      lse = m + ln(a + b)
 *
 * Error beside that of the inputs: |out| 2^-24 + max(|out_a|, |out_b|) 2^-50,
 * |lse| 2^-24 + 2^-50.  (An error e of an input's lse moves out by up to
 * e |out_a - out_b| / 4.)  The order of a and b does not matter.
 * A state whose lse is -inf has seen no key: the result is the other state, bit
 * for bit, whatever its out holds; of two such, a.  Otherwise a NaN or +inf in
 * lse_a or lse_b makes the row's out and lse NaN, and a NaN or infinity in out
 * is used as IEEE arithmetic of the formula says. */
HEED_EXPORT heed_status heed_merge_states(const heed_merge* merge);

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
