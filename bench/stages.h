// `heed_bench --heed_stages`: where the time of a prompt goes, stage by stage.
#ifndef HEED_BENCH_STAGES_H_
#define HEED_BENCH_STAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_context.h"
#include "bench/interleaved.h"
#include "bench/options.h"
#include "bench/provenance.h"

namespace heed {

// One stage, or the whole call.
struct Stage {
  std::string name;
  // Of a round's sample: scores of a full prompt of kStageLength tokens that
  // its work belongs to.
  double scores = 0;
  std::vector<Round> rounds;
};

// A head of one width on one target, one thread.
struct StageRow {
  int64_t dim = 0;
  std::string target, tile;
  std::vector<Stage> stages;  // kPieces in order, then full, then causal
  double best_canary = 0;     // of the whole process
};

constexpr int64_t kStageLength = 1024;  // tokens of the prompt

// Seconds per score of a stage.
struct StageTime {
  double median = 0;  // of the quiet rounds; 0 if there is none
  double least = 0;   // of the shortest sample
  int kept = 0, dropped = 0;
};

// What a table says of a row, each in per cent of the time that the
// multiply-adds of a score take at the FMA peak.
struct StageShares {
  double scores = 0, softmax = 0, blend = 0, pack_q = 0, pack_v = 0;
  double full = 0, causal = 0;  // the whole call, per visible score
  // full less its stages: what surrounds them, and the caches between them.
  double rest() const {
    return full - scores - softmax - blend - pack_q - pack_v;
  }
};

// Measures the stages of every width of kPieceDims on every target. False, and
// `why` in one line, if a result is wrong.
bool MeasureStages(const BenchOptions& options, BenchContext* context,
                   std::vector<StageRow>* rows, std::string* why);

// Pure.
StageTime TimeOf(const Stage& stage, double best_canary);
// By the shortest samples, or by the medians (0 where no round was quiet).
StageShares SharesOf(const StageRow& row, bool medians);
std::string StagesMarkdown(const Provenance& provenance,
                           const std::vector<StageRow>& rows);
std::string StagesJson(const Provenance& provenance,
                       const std::vector<StageRow>& rows);

}  // namespace heed

#endif  // HEED_BENCH_STAGES_H_
