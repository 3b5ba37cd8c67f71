// What the texts about pairs share.
#ifndef HEED_BENCH_PAIRS_TEXT_H_
#define HEED_BENCH_PAIRS_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/pair_rounds.h"

namespace heed {

// "1.043 (1.038 to 1.049)".
std::string IntervalText(const Interval& interval);
nlohmann::ordered_json PairJson(const PairRow& row);
// The object with a member "rows", of one line each.
std::string JsonWithRows(const nlohmann::ordered_json& object,
                         const std::vector<nlohmann::ordered_json>& rows);

}  // namespace heed

#endif  // HEED_BENCH_PAIRS_TEXT_H_
