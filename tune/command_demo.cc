// `heed demo`: experiments that show what attention is like.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "tune/canvas.h"
#include "tune/commands.h"
#include "tune/scale_demo.h"

namespace heed {
namespace {

struct DemoOptions {
  ScaleDemoOptions scale;
  std::string image;
  bool json = false;
};

void PrintJson(const DemoOptions& options,
               const std::vector<ScaleDemoRow>& rows) {
  nlohmann::ordered_json json = {{"keys", options.scale.tokens},
                                 {"matrices", options.scale.matrices},
                                 {"seed", options.scale.seed},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const ScaleDemoRow& row : rows) {
    nlohmann::ordered_json peaks, errors;
    for (int i = 0; i < 3; ++i) {
      peaks[kScaleNames[i]] = row.peak[i];
      errors[kScaleNames[i]] = row.error[i];
    }
    json["rows"].push_back(
        {{"d", row.dim}, {"peak", peaks}, {"standard_error", errors}});
  }
  fmt::print("{}\n", json.dump());
}

void PrintText(const DemoOptions& options,
               const std::vector<ScaleDemoRow>& rows) {
  fmt::print(
      "Mean of the largest attention weight of a row, of {} matrices of {} "
      "queries and {} keys,\nall N(0, 1), without a mask, by what scores are "
      "divided by\n\n{:>6}  {:>16}  {:>16}  {:>16}\n",
      options.scale.matrices, options.scale.tokens, options.scale.tokens, "d",
      kScaleNames[0], kScaleNames[1], kScaleNames[2]);
  for (const ScaleDemoRow& row : rows) {
    fmt::print("{:>6}", row.dim);
    for (int i = 0; i < 3; ++i) {
      fmt::print("  {:>6.4f} +- {:.4f}", row.peak[i], row.error[i]);
    }
    fmt::print("\n");
  }
  fmt::print(
      "\n{}\nA score of N(0, 1) numbers is a sum of d products, and its "
      "standard deviation sqrt(d).\nDivided by that, it stays 1 whatever d is. "
      "As they are, wide heads see one key alone;\ndivided by d, they see all "
      "alike.\n",
      DrawScaleText(rows));
}

int RunDemo(const DemoOptions& options) {
  std::vector<ScaleDemoRow> rows;
  std::string why;
  if (!RunScaleDemo(options.scale, &rows, &why) ||
      (!options.image.empty() &&
       !WriteScaleImage(options.scale, rows, options.image, &why))) {
    return FailCommand("demo scale", why);
  }
  (options.json ? PrintJson : PrintText)(options, rows);
  return kDone;
}

}  // namespace

void AddDemoCommand(CLI::App* app, Action* action) {
  const auto options = std::make_shared<DemoOptions>();
  CLI::App* demo = app->add_subcommand(
      "demo", "Experiments that show what attention is like");
  demo->require_subcommand(1);
  CLI::App* scale = demo->add_subcommand(
      "scale",
      "Why scores are divided by the square root of the head's width: the "
      "largest weight of a row for d = 16 to 1024, with scores as they are, "
      "divided by sqrt(d), and by d, as a table and a plot");
  scale
      ->add_option("--keys", options->scale.tokens,
                   "Keys, and queries, of a matrix")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->type_name("N")
      ->capture_default_str();
  scale
      ->add_option("--matrices", options->scale.matrices,
                   "Matrices, whose mean is taken")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->type_name("N")
      ->capture_default_str();
  scale->add_option("--seed", options->scale.seed, "Of the random numbers")
      ->type_name("N")
      ->capture_default_str();
  scale
      ->add_option("--image", options->image,
                   "Draw the plot into this file, .png or .svg")
      ->check(CheckImage)
      ->type_name("FILE");
  scale->add_flag("--json", options->json, "Print JSON");
  scale->callback(
      [options, action] { *action = [options] { return RunDemo(*options); }; });
}

}  // namespace heed
