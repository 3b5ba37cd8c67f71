#include "tune/scale_demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/include/heed.h"

namespace heed {
namespace {

// The mean of the largest weights of each matrix' rows.
bool MeanPeaks(const ScaleDemoOptions& options, int64_t dim, double power,
               const std::vector<float>& q, const std::vector<float>& k,
               std::vector<double>* means, std::string* why) {
  const int64_t tokens = options.tokens, matrices = options.matrices;
  std::vector<float> weights(static_cast<size_t>(matrices * tokens * tokens));
  heed_problem problem;
  heed_problem_init(&problem);
  problem.batch = matrices;
  problem.heads_q = problem.heads_kv = 1;
  problem.len_q = problem.len_k = tokens;
  problem.dim_qk = dim;
  problem.dtype = HEED_F32;
  problem.scale_mode = HEED_SCALE_VALUE;
  problem.scale = std::pow(static_cast<double>(dim), -power);
  heed_call call;
  heed_call_init(&call);
  call.q = heed_dense_input(q.data(), 1, tokens, dim);
  call.k = heed_dense_input(k.data(), 1, tokens, dim);
  const heed_output output =
      heed_dense_output(weights.data(), 1, tokens, tokens);
  if (heed_scores(&problem, nullptr, &call, HEED_SCORES_WEIGHTS, &output) !=
      HEED_OK) {
    *why = heed_last_error();
    return false;
  }
  means->clear();
  auto row = weights.begin();
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    double sum = 0;
    for (int64_t query = 0; query < tokens; ++query, row += tokens) {
      sum += *std::max_element(row, row + tokens);
    }
    means->push_back(sum / static_cast<double>(tokens));
  }
  return true;
}

}  // namespace

bool RunScaleDemo(const ScaleDemoOptions& options,
                  std::vector<ScaleDemoRow>* rows, std::string* why) {
  std::mt19937_64 random(options.seed);
  std::normal_distribution<float> normal;
  for (int64_t dim = 16; dim <= 1024; dim *= 2) {
    std::vector<float> q(
        static_cast<size_t>(options.matrices * options.tokens * dim));
    std::vector<float> k(q.size());
    for (float& value : q) value = normal(random);
    for (float& value : k) value = normal(random);
    ScaleDemoRow row = {dim, {}, {}};
    for (int i = 0; i < 3; ++i) {
      std::vector<double> means;
      if (!MeanPeaks(options, dim, kScalePowers[i], q, k, &means, why)) {
        return false;
      }
      const auto count = static_cast<double>(means.size());
      double sum = 0, squares = 0;
      for (const double mean : means) sum += mean;
      row.peak[i] = sum / count;
      for (const double mean : means) {
        squares += (mean - row.peak[i]) * (mean - row.peak[i]);
      }
      row.error[i] = count > 1 ? std::sqrt(squares / (count - 1) / count) : 0;
    }
    rows->push_back(row);
  }
  return true;
}

std::string DrawScaleText(const std::vector<ScaleDemoRow>& rows) {
  constexpr int kColumns = 60;
  // Where two meet the later stands.
  constexpr char kMarks[] = {'1', 's', 'd'};
  std::string text = fmt::format("{:>6} 0{:>{}}{:>{}}\n", "", "0.5",
                                 kColumns / 2 + 1, "1", kColumns / 2);
  for (const ScaleDemoRow& row : rows) {
    std::string line(kColumns + 1, ' ');
    for (int i = 0; i < 3; ++i) {
      const double place = std::min(std::max(row.peak[i], 0.0), 1.0);
      line[static_cast<size_t>(std::lround(place * kColumns))] = kMarks[i];
    }
    text += fmt::format("{:>6} |{}|\n", row.dim, line);
  }
  return text + "       1: as they are, s: divided by sqrt(d), d: by d\n";
}

}  // namespace heed
