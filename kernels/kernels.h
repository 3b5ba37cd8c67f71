// What kernels/ offers to the rest of heed: the row program in SIMD, as data.
//
// No threads, no allocation, no I/O, nothing here fails. A caller asks for the
// table of one SIMD target and calls its entries with a Block. This header
// knows no ISA and no Highway type.
#ifndef HEED_KERNELS_KERNELS_H_
#define HEED_KERNELS_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace heed {

// The row program's constants (tests/row_program.h says the same in scalar
// code). Part of the bits: STEP and CHUNK are counted from key 0 of the
// sequence.
constexpr size_t kStep = 48;  // keys between two looks at the running maximum
constexpr size_t kChunk =
    768;  // keys after which a row starts from zero and is merged
constexpr float kRise =
    8.0f;  // how far a score may exceed the running maximum unnoticed

// Storage of 16 bits; arithmetic is f32 always.
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
enum class DType { kF32, kF16, kBF16 };

// Where the kernel reads k or v from.
enum class Pack : uint8_t {
  kNone,  // where the caller has them; f32 only, v only if dim_v % lanes == 0
  kTile,  // each task copies one key tile at a time to its scratch
  kCall,  // a copy of all keys, made once per call by Kernels::pack, shared by
          // all tasks
};

// How the kernel cuts its work. No field changes a bit of the result.
struct Tile {
  size_t row_block =
      0;  // query rows of one task; a multiple of Kernels::row_multiple
  size_t key_tile =
      0;  // keys whose scores are held at once; a multiple of kStep
  Pack pack_k = Pack::kNone;
  Pack pack_v = Pack::kNone;
  // Touch early what comes next: keys, queries and rows of out. For what is
  // not in the L2.
  bool prefetch = false;

  friend bool operator==(const Tile& a, const Tile& b) {
    return a.row_block == b.row_block && a.key_tile == b.key_tile &&
           a.pack_k == b.pack_k && a.pack_v == b.pack_v &&
           a.prefetch == b.prefetch;
  }
};

// How an additive or boolean mask is stored.
enum class MaskType : uint8_t { kNone, kBool, kF32, kF16, kBF16 };

// What changes a score after q . k, and what hides a key beside the ranges.
// Pointers are at (token 0, head 0 of the group); strides count elements, 0
// broadcasts. A score goes through these in this order, all in the log2 domain
// (tests/row_program.h):
//   soft cap, ALiBi, additive mask; then hidden keys are hidden.
struct Bias {
  float softcap = 0.0f;           // 0: none; natural units
  const float* slopes = nullptr;  // [group] ALiBi slopes, natural units
  // Token i, key j: slope * (j - (i + position)).
  int64_t position = 0;
  MaskType mask = MaskType::kNone;
  const void* mask_data = nullptr;  // key 0; keys lie side by side
  int64_t mask_stride_token = 0, mask_stride_head = 0;
  // kBool: an element stands for so many tokens and keys.
  size_t mask_block_token = 1, mask_block_key = 1;
  const float* sinks = nullptr;  // [group] logits, natural units
};

// k and v in pages: keys [i * size, (i + 1) * size) lie in page table[i].
struct Pages {
  const int32_t* table = nullptr;      // null: k and v are one run
  size_t size = 0;                     // keys of a page
  int64_t k_stride = 0, v_stride = 0;  // elements between pages
};

// One task: rows [row_begin, row_begin + rows) of one kv head's row list
// against all its keys. Row r is query token r / group of query head r % group
// within the group. All strides count elements and are signed.
struct Block {
  const void* q;  // (token 0, head 0 of the group)
  const void* k;  // (token 0)
  const void* v;  // (token 0)
  void* out;      // (token 0, head 0 of the group)
  float* lse;     // the same; null = not wanted
  int64_t q_stride_token, q_stride_head;
  int64_t k_stride, v_stride;
  int64_t out_stride_token, out_stride_head;
  int64_t lse_stride_token, lse_stride_head;
  size_t row_begin, rows;  // rows <= tile.row_block
  size_t group;            // query heads per kv head, >= 1
  size_t len_k, dim_qk, dim_v;
  // Token i sees keys [max(0, i + first_key), min(len_k, i + end_key)).
  int64_t first_key;  // kNoBound: from key 0
  int64_t end_key;    // causal: offset + 1; kNoBound: to len_k
  float q_scale;      // scale * log2(e), rounded once to float
  Bias bias;
  Pages pages;  // not with Pack::kNone, which reads k and v as one run
  Tile tile;
  // Pack::kCall: the kv head's copies, each Kernels::packed_.._bytes, aligned
  // to 64; else null.
  float* packed_k;
  float* packed_v;
  void* scratch;  // Kernels::scratch_bytes(...) bytes, aligned to 64; contents
                  // do not matter
};

constexpr int64_t kNoBound = INT64_MIN;

// How far scores are taken before they are shown: scale * q . k for every key;
// soft-capped; with ALiBi and mask, -inf where a key is hidden; or the weights,
// which sum to 1 (0 in a row that sees no key).
enum class ScoreStage { kScaled, kCapped, kBiased, kWeights };

// The pieces of a task, for benchmarks: each does the work of one key tile of
// `rows` x `keys` on scratch of the same layout as the task's, `times` times
// over.
enum class Piece { kScores, kSoftmax, kBlend, kPackQ, kPackV };

// What one SIMD target offers for one storage type.
struct Kernels {
  const char* target;   // Highway's name of the target, e.g. "AVX2"
  DType dtype;          // storage of q, k, v and out
  size_t lanes;         // f32 lanes of a vector
  size_t row_multiple;  // row blocks are multiples of this
  bool fused;  // has fused multiply-add: results are the row program's bits
  // Bytes of scratch that one task needs.
  size_t (*scratch_bytes)(const Tile& tile, size_t dim_qk, size_t dim_v);
  // Bytes of one kv head's copy of k (width dim_qk) or v (width dim_v).
  size_t (*packed_k_bytes)(size_t len_k, size_t dim_qk);
  size_t (*packed_v_bytes)(size_t len_k, size_t dim_v);
  // Copies keys [key_begin, key_end) to packed_k and packed_v, those that are
  // not null. key_begin is a multiple of kChunk.
  void (*pack)(const Block& block, size_t key_begin, size_t key_end);
  // Runs one task. Writes rows * dim_v elements of out (and rows of lse),
  // nothing else.
  void (*attend)(const Block& block);
  // The same rows and bits for few rows (decoding): k and v are read once,
  // where they lie, whatever block.tile says.
  size_t (*decode_scratch_bytes)(size_t rows, size_t dim_qk, size_t dim_v);
  void (*decode)(const Block& block);
  // A decode cut at chunks of keys: decode_part() leaves the state of each
  // chunk in [chunk_begin, chunk_end) at states + chunk * state_floats();
  // merge() merges chunks [0, chunk_end) in order and writes the rows. Chunks
  // no row sees are skipped by both; the block must be the same.
  size_t (*state_floats)(size_t rows, size_t dim_v);
  void (*decode_part)(const Block& block, size_t chunk_begin, size_t chunk_end,
                      float* states);
  void (*merge)(const Block& block, size_t chunk_end, const float* states);
  // For inspection: the block's rows of scores, natural units, to
  // scores + token * stride_token + head * stride_head + key for each key of
  // [0, len_k). Scratch as for decode. out and lse are not written.
  void (*show_scores)(const Block& block, ScoreStage stage, float* scores,
                      int64_t stride_token, int64_t stride_head);
  // f32 only, else null: runs one piece on the block's scratch; returns the
  // multiply-adds (or, for packing and softmax, the elements) of one
  // repetition.
  double (*run_piece)(Piece piece, const Block& block, size_t times);
};

// Targets that are compiled in and that this CPU runs, best first; at most
// `max` are written. Returns how many there are. The values are opaque, for
// GetKernels and GetProbes.
size_t SupportedTargets(int64_t* targets, size_t max);

// The table for one of SupportedTargets(). Cheap; not cached, so that tests can
// walk the targets.
Kernels GetKernels(int64_t target, DType dtype);

}  // namespace heed

#endif  // HEED_KERNELS_KERNELS_H_
