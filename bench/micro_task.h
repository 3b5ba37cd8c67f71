// One task of attention, whose pieces can be run one at a time.
#ifndef HEED_BENCH_MICRO_TASK_H_
#define HEED_BENCH_MICRO_TASK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/attention_case.h"
#include "bench/buffer.h"
#include "kernels/kernels.h"

namespace heed {

struct NamedPiece {
  Piece piece;
  const char* name;
  bool is_product;  // counted in multiply-adds; else in elements
};
constexpr NamedPiece kPieces[] = {{Piece::kScores, "scores", true},
                                  {Piece::kSoftmax, "softmax", false},
                                  {Piece::kBlend, "blend", true},
                                  {Piece::kPackQ, "pack_q", false},
                                  {Piece::kPackV, "pack_v", false}};
// Head widths that the pieces are measured at.
constexpr int64_t kPieceDims[] = {64, 128, 256, 40, 80};

// The tile that the model gives an ordinary prompt, with a place in the scratch
// for a copy of v where the piece needs one.
Tile MicroTile(const Kernels& kernels, int64_t dim, Piece piece);

// One task of the tile's rows and keys, as the runtime would hand it out.
class MicroTask {
 public:
  MicroTask(const Kernels& kernels, const Tile& tile, int64_t dim);

  // The pieces leave their results in the scratch; that they are the pieces of
  // a right whole is what can be checked. Empty, or what is wrong in one line.
  std::string Verify();

  // Runs the piece `times` times, after one whole tile that fills the scratch.
  // Returns the multiply-adds, or elements, of one time.
  double Run(Piece piece, size_t times);

  // So many times that the tile before is a hundredth of them.
  size_t Repetitions(Piece piece);

 private:
  Kernels kernels_;
  AttentionCase attention_;
  Floats scratch_;
  Block block_ = {};
};

}  // namespace heed

#endif  // HEED_BENCH_MICRO_TASK_H_
