// One piece of a task at a time, over and over: for benchmarks. Included once
// per target.
#if defined(HEED_KERNELS_PIECES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_PIECES_INL_H_
#undef HEED_KERNELS_PIECES_INL_H_
#else
#define HEED_KERNELS_PIECES_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Runs the piece on the first key tile of the block, `times` times; the scratch
// is made ready by scoring that tile once. Needs len_k >= tile.key_tile and
// every row seeing the whole tile.
inline double RunPiece(Piece piece, const Block& b, size_t times) {
  Task t = MakeTask(b, PrefillLayout(b.tile, b.dim_qk, b.dim_v));
  t.m = t.Row(kTotalM);
  t.l = t.Row(kTotalL);
  t.o = t.scratch + t.at.o_total;
  const size_t keys = b.tile.key_tile;
  const float* k = static_cast<const float*>(b.k);
  const float* v = static_cast<const float*>(b.v);
  StartChunk(t);
  RunTile<float>(t, 0, keys);
  const double pairs = static_cast<double>(b.rows) * static_cast<double>(keys);
  switch (piece) {
    case Piece::kScores:
      for (size_t n = 0; n < times; ++n) {
        for (size_t step = 0; step < keys; step += kStep) {
          for (size_t row = 0; row < t.rows; row += t.at.panel) {
            ScorePanel(t, {k, b.k_stride}, row, step, step + kStep,
                       step + kStep, false);
          }
        }
      }
      return pairs * static_cast<double>(b.dim_qk);
    case Piece::kSoftmax:
      // The weights of one round are the scores of the next. So far below the
      // maximum that they stay normal numbers near 0 and the maximum never
      // rises.
      for (size_t r = 0; r < t.rows_padded; ++r) t.m[r] = 100.0f;
      for (size_t n = 0; n < times; ++n) {
        for (size_t step = 0; step < keys; step += kStep) {
          for (size_t row = 0; row < t.rows; row += t.at.panel) {
            WeighPanel<kPanelVecs>(RowTag(), t, RangeOf(t, row), row, step,
                                   step + kStep, step + kStep, false,
                                   MaskView::kPlain, []() HWY_ATTR {});
          }
        }
      }
      return pairs;
    case Piece::kBlend:
      for (size_t n = 0; n < times; ++n) {
        t.pending = 0;
        BlendPending<float>(t, keys);
      }
      return pairs * static_cast<double>(b.dim_v);
    case Piece::kPackQ:
      for (size_t n = 0; n < times; ++n) {
        t.rows_packed = 0;
        TakePanel<float>(t, t.rows - 1);
      }
      return static_cast<double>(b.rows) * static_cast<double>(b.dim_qk);
    case Piece::kPackV:
      for (size_t n = 0; n < times; ++n) {
        PackV(v, b.v_stride, 0, keys, b.dim_v, keys, t.scratch + t.at.v);
      }
      return static_cast<double>(keys) * static_cast<double>(b.dim_v);
  }
  return 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
