// What `heed run` was asked for, as plain values.
#ifndef HEED_TUNE_RUN_OPTIONS_H_
#define HEED_TUNE_RUN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace heed {

struct RunOptions {
  // Files; empty = not given.
  std::string q, k, v, out, lse, weights;
  std::pair<std::string, std::string> scores;  // stage, file
  std::string mask, sinks;
  std::string alibi;  // or "auto"
  std::string seqused_k, cu_seqlens_q, cu_seqlens_k, causal_offsets;
  std::string block_table;

  std::string causal = "none";
  std::optional<int64_t> causal_offset;
  std::string align;  // empty = not given
  bool has_window = false;
  std::pair<int64_t, int64_t> window;
  std::string mask_block;  // "QxK", checked; empty = not given
  std::optional<double> scale;
  double softcap = 0;
  std::string dtype;  // empty = what q's file says
  std::string target, tile;
  int threads = 0;
  int repeat = 1;
  bool check = false, json = false;
};

}  // namespace heed

#endif  // HEED_TUNE_RUN_OPTIONS_H_
