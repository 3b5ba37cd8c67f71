/* heed: a whole attention block.  C99, on top of heed.h.
 *
 *   pre-norm    y = x + out_proj(attention(qkv_proj(norm(x))))
 *   post-norm   y = norm(x + out_proj(attention(qkv_proj(x))))
 *
 * as transformers have it: LayerNorm or RMSNorm (or none), projection to
 * queries, keys and values, optional RoPE, attention over the visible keys,
 * merge of heads, output projection, residual add (or none).
 *
 * Shapes: x, y, ln, attn_out, resid [batch, len, d_model]; q [batch, heads_q,
 * len, dim_qk], k [batch, heads_kv, len, dim_qk], v [batch, heads_kv, len,
 * dim_v], z [batch, heads_q, len, dim_v]; all f32.  Arithmetic is f32; weights
 * are f32, f16 or bf16 and keep their type.
 *
 * Three objects.  A heed_block holds packed weights: made once, immutable,
 * shared by any number of threads and plans.  A heed_block_plan binds it to a
 * number of sequences and tokens: immutable too.  heed_block_run() computes,
 * in a workspace of the caller's.
 *
 * Every output element is one fixed chain of operations (below), so that a
 * token's bits, in y and in each intermediate, depend on that token and those
 * before it that it sees alone: not on how many tokens are computed with it,
 * their place in the batch, threads, tiles or which SIMD target with fused
 * multiply-add ran.  Tokens computed one at a time against a cache have the
 * bits they have when all are computed at once.
 *
 * The chains, u = 2^-24, every operation rounded to f32, fma rounded once:
 *
 *   sum16(t)    s_j = sum over i = j mod 16 of t_i, in order, from 0; then
 *               s_j += s_j+8, s_j += s_j+4, s_j += s_j+2, s_0 + s_1
 *   LayerNorm   m = sum16(x) / d;  e = sum16(x_i - m) / d;
 *               t_i = (x_i - m) - e;  r = 1 / sqrt(sum16(t_i^2) / d + eps)
 *               where a square joins its sum by fma;
 *               ln_i = fma(t_i * r, gain_i, bias_i)
 *   RMSNorm     r = 1 / sqrt(sum16(x_i^2) / d + eps);
 *               ln_i = fma(x_i * r, gain_i, bias_i)
 *   projection  y = bias (0 without one); for each 256 inputs in turn:
 *               c = 0, c = fma(x_i, w_i, c) in order, y = y + c.
 *               |error| <= (n + 1) u (|bias| + sum |x_i w_i|) / (1 - (n + 1) u)
 *               with n = min(inputs, 256) + ceil(inputs / 256): a chain of 4096
 *               inputs errs like one of 272.
 *   RoPE        of a pair (a, b): (fma(a, c, -(b * s)), fma(b, c, a * s)) with
 *               c and s the cosine and sine, rounded once from double
 *   attention   heed.h
 *   residual    resid = x + attn_out
 *
 * NaN and infinity in a token's x follow IEEE arithmetic and reach those tokens
 * that see it.  Requires the default floating-point environment.
 */
#ifndef HEED_BLOCK_H_
#define HEED_BLOCK_H_

#include <stddef.h>
#include <stdint.h>

#include "heed.h"
#include "heed_export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum heed_norm {
  HEED_NORM_NONE = 0,
  HEED_NORM_LAYER = 1, /* (x - mean) / sqrt(variance + eps) * gain + bias */
  HEED_NORM_RMS = 2    /* x / sqrt(mean of squares + eps) * gain + bias */
} heed_norm;

/* Where the norm stands.  Read only if there is one; zero is no place. */
typedef enum heed_norm_place {
  HEED_NORM_PRE = 1, /* of x, before the projections (GPT-2, Llama) */
  HEED_NORM_POST = 2 /* of x + attn_out, as the block's end (BERT) */
} heed_norm_place;

/* How a matrix of [inputs, outputs] is stored.  Zero is no layout. */
typedef enum heed_layout {
  HEED_LAYOUT_IN_OUT = 1, /* [inputs, outputs]: y = x W + b (GPT-2's Conv1D) */
  HEED_LAYOUT_OUT_IN = 2  /* [outputs, inputs]: torch.nn.Linear */
} heed_layout;

/* The pairs of elements that RoPE turns, of the first rope_width elements of a
 * head: pair i by the angle position * frequency_i. */
typedef enum heed_rope {
  HEED_ROPE_NONE = 0,
  HEED_ROPE_INTERLEAVED = 1, /* (2i, 2i + 1): RoFormer, GPT-J, Meta's Llama */
  HEED_ROPE_HALF = 2 /* (i, i + rope_width / 2): GPT-NeoX, Llama as Hugging Face
                        stores it */
} heed_rope;

/* frequency_i = rope_theta^(-2i / rope_width), then: */
typedef enum heed_rope_scaling {
  HEED_ROPE_SCALING_NONE = 0,
  HEED_ROPE_SCALING_LINEAR = 1, /* frequency / rope_factor */
  /* Llama 3.1 ("rope_type": "llama3"): with wavelength = 2 pi / frequency,
   * frequency / rope_factor where wavelength > rope_original_len /
   * rope_low_freq_factor, unchanged where it is below rope_original_len /
   * rope_high_freq_factor, and blended in between. */
  HEED_ROPE_SCALING_LLAMA3 = 2
} heed_rope_scaling;

/* Numbers of a checkpoint, side by side; data NULL: there are none.  How many,
 * the block says.  Read by heed_block_create() only. */
typedef struct heed_vector {
  const void* data;
  int32_t dtype;    /* heed_dtype */
  int32_t reserved; /* 0 */
} heed_vector;

/* A matrix of a checkpoint and its bias, which is optional.  data NULL: there
 * is none.  Any alignment.  Read by heed_block_create() only. */
typedef struct heed_matrix {
  const void* data;
  int32_t dtype;    /* heed_dtype */
  int32_t layout;   /* heed_layout */
  int64_t stride;   /* elements between stored rows; 0: dense */
  heed_vector bias; /* [outputs] */
} heed_matrix;

/* What a block is.  Start from heed_block_desc_init(). */
typedef struct heed_block_desc {
  size_t struct_size; /* sizeof(heed_block_desc) */
  int64_t d_model;    /* width of x and y */
  int64_t heads_q;    /* a multiple of heads_kv */
  int64_t heads_kv;
  int64_t dim_qk; /* head width of q and k */
  int64_t dim_v;  /* head width of v and z */

  int32_t norm;          /* heed_norm */
  int32_t norm_place;    /* heed_norm_place; read only if there is a norm */
  double norm_eps;       /* finite, 0 or more; rounded to f32 */
  heed_vector norm_gain; /* [d_model]; NULL: 1 */
  heed_vector norm_bias; /* [d_model]; NULL: 0 */

  /* d_model to heads_q * dim_qk, heads_kv * dim_qk and heads_kv * dim_v: either
   * qkv, whose outputs are those of q, k and v in this order, or q, k and v
   * apart, which then are all there and qkv is not.  Kept in one panel: if
   * their types differ, as f32. */
  heed_matrix qkv;
  heed_matrix q, k, v;
  heed_matrix out; /* heads_q * dim_v, head by head, to d_model */

  int32_t rope;                 /* heed_rope; the rest only if it is on */
  int32_t rope_scaling;         /* heed_rope_scaling */
  int64_t rope_width;           /* even, at most dim_qk; 0: dim_qk */
  double rope_theta;            /* > 0, e.g. 10000 */
  double rope_factor;           /* > 0; read with a scaling */
  double rope_low_freq_factor;  /* these three with HEED_ROPE_SCALING_LLAMA3: */
  double rope_high_freq_factor; /* > rope_low_freq_factor > 0 */
  int64_t rope_original_len;    /* > 0 */

  int32_t causal;     /* 1: token t sees tokens 0 .. t; 0: all */
  int32_t scale_mode; /* heed_scale_mode, as heed_problem */
  double scale;       /* read only if scale_mode is HEED_SCALE_VALUE */
  double softcap;     /* as heed_problem; 0: none */
  /* 1: token t sees tokens t - window_left to t + window_right (and with
   * `causal` none after t); -1 = without limit. */
  int32_t window;
  int32_t residual; /* 1: x is added (the default); 0: not */
  int64_t window_left, window_right;
  const float* alibi_slopes; /* [heads_q], copied; NULL: none */
  const float* sinks;        /* [heads_q], copied; NULL: none */
} heed_block_desc;

typedef struct heed_block heed_block;
typedef struct heed_block_plan heed_block_plan;

/* Zeroes the struct and sets struct_size and residual.  Sizes, matrices and
 * scale_mode are still to be set. */
HEED_EXPORT void heed_block_desc_init(heed_block_desc* desc);

/* Checks the description and packs its weights for a SIMD target; nothing of
 * `desc` is needed afterwards.  Takes as much memory as the weights do (each
 * matrix' outputs rounded up to a multiple of at most 48) and
 * `options->threads` threads.  Of `options`, which may be NULL, the target,
 * threads and runner are used.  On success *block is to be freed with
 * heed_block_destroy(), after its plans; on failure it is NULL. */
HEED_EXPORT heed_status heed_block_create(const heed_block_desc* desc,
                                          const heed_options* options,
                                          heed_block** block);
HEED_EXPORT void heed_block_destroy(heed_block* block); /* NULL is allowed */

/* A block for `batch` sequences of `len` new tokens each.  len_cache is the
 * room, in tokens, of the cache that a run is given, or 0: no cache, the tokens
 * see each other alone.  To fill a cache and then decode, make two plans, of
 * len = the prompt's and len = 1.  `options` as for heed_plan_create(), where
 * target has to be NULL or the block's own.  The block has to outlive the plan.
 */
HEED_EXPORT heed_status heed_block_plan_create(const heed_block* block,
                                               int64_t batch, int64_t len,
                                               int64_t len_cache,
                                               const heed_options* options,
                                               heed_block_plan** plan);
HEED_EXPORT void heed_block_plan_destroy(heed_block_plan* plan);

/* Bytes of scratch that a run needs: about batch * len rows of d_model, q, k, v
 * and z, a tile per thread and what attention needs; never len * len. */
HEED_EXPORT size_t heed_block_plan_workspace_size(const heed_block_plan* plan);

/* One line, "block=d768_hq12_hkv12_... target=AVX2 threads=2 attention=(...)",
 * as heed_plan_describe(). */
HEED_EXPORT size_t heed_block_plan_describe(const heed_block_plan* plan,
                                            char* text, size_t size);

/* Where a run's time goes. */
typedef enum heed_block_stage {
  HEED_STAGE_NORM = 0,  /* before the projections, or at the end */
  HEED_STAGE_QKV = 1,   /* projection to q, k and v */
  HEED_STAGE_PLACE = 2, /* RoPE; q, k and v to the cache and to where they are
                           wanted */
  HEED_STAGE_ATTENTION = 3,
  HEED_STAGE_OUT = 4,  /* output projection and residual add */
  HEED_STAGE_SHOW = 5, /* scores, pattern and z, where wanted */
  HEED_STAGE_COUNT = 6
} heed_block_stage;

/* The data of one run.  Start from heed_block_call_init().
 *
 * Tensors without heads (x, y, ln, attn_out, resid) have strides as
 * heed_dense_input(x, 1, len, d_model) sets them; stride_head is not read.
 * stride_dim is 1.  What is written shares no byte with anything else of the
 * call. */
typedef struct heed_block_call {
  size_t struct_size; /* sizeof(heed_block_call) */
  heed_input x;       /* [batch, len, d_model] f32 */
  heed_output y;      /* [batch, len, d_model] f32 */

  /* [batch] Token t of sequence b stands at position positions[b] + t >= 0; its
   * keys are those of positions 0 .. positions[b] + len - 1, as far as they are
   * visible.  With a cache, positions[b] tokens are in it already, and the new
   * ones' k and v are written at positions[b] (as heed_kv_append() does).
   * Without one, keys are the call's own and positions matter to RoPE alone;
   * NULL is then 0. */
  const int64_t* positions;
  heed_output k_cache; /* [batch, heads_kv, len_cache, dim_qk] f32 */
  heed_output v_cache; /* [batch, heads_kv, len_cache, dim_v] f32 */

  /* Intermediates to look at; data NULL (the default) = not wanted. */
  heed_output ln;   /* what the norm gave: what is projected, or y; without a
                       norm it is not written */
  heed_output q, k; /* of the new tokens, after RoPE */
  heed_output v;
  /* f32 [batch, heads_q, len, keys], keys = len_cache, or len without a cache;
   * only keys that a sequence has are written.  As heed_scores() gives them
   * with HEED_SCORES_BIASED (-inf where hidden) and HEED_SCORES_WEIGHTS. */
  heed_output scores, pattern;
  heed_output z;        /* attention's result, before the heads are merged */
  heed_output attn_out; /* the output projection's */
  heed_output resid;    /* x + attn_out (attn_out if residual is 0) */

  double* stage_seconds; /* [HEED_STAGE_COUNT] seconds are stored; or NULL */
  void* workspace;       /* heed_block_plan_workspace_size() bytes, aligned to
                            64; NULL if that is 0 */
  size_t workspace_size; /* bytes */
} heed_block_call;

HEED_EXPORT void heed_block_call_init(heed_block_call* call);

/* Computes.  Re-entrant: any number of threads may run one plan, each with a
 * workspace (and cache) of its own.  Allocates nothing, unless scores or
 * pattern are wanted, which also run on one thread.  Checks the call first; a
 * call that fails the check has written nothing. */
HEED_EXPORT heed_status heed_block_run(const heed_block_plan* plan,
                                       const heed_block_call* call);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEED_BLOCK_H_ */
