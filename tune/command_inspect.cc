// `heed inspect`: what the heads of a checkpoint's layer attend to.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "tune/canvas.h"
#include "tune/commands.h"
#include "tune/head_checks.h"
#include "tune/head_model.h"
#include "tune/head_run.h"
#include "tune/pattern_image.h"
#include "tune/pattern_text.h"
#include "tune/printable.h"
#include "tune/token_labels.h"

namespace heed {
namespace {

struct InspectOptions {
  HeadOptions head;
  std::string image, labels, draw = "auto";
};

// What is shown, once it is known.
struct Inspection {
  std::string title;
  std::vector<int64_t> heads;  // which of them
  std::vector<PatternFigures> figures;
  std::vector<std::string> labels;
  std::vector<HeadCheck> checks;
  double most = 0;  // the largest weight of those heads
};

// The folder's or file's own name.
std::string ModelName(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  return Printable(slash == std::string::npos ? path : path.substr(slash + 1));
}

void Measure(const InspectOptions& options, const HeadTensors& tensors,
             Inspection* inspection) {
  inspection->title =
      fmt::format("{}, layer {}: attention pattern",
                  ModelName(options.head.model), options.head.layer.layer);
  for (int64_t head = 0; head < tensors.heads_q; ++head) {
    if (options.head.head >= 0 && options.head.head != head) continue;
    const PatternView view = ViewOf(tensors, head);
    inspection->heads.push_back(head);
    inspection->figures.push_back(FiguresOf(view));
    for (int64_t i = 0; i < view.len * view.len; ++i) {
      inspection->most = std::max<double>(inspection->most, view.weights[i]);
    }
  }
}

bool Image(const InspectOptions& options, const HeadTensors& tensors,
           const Inspection& inspection, std::string* why) {
  ImageFormat format;
  *why = FindImageFormat(options.image, &format);
  if (!why->empty()) return false;
  PatternPage page;
  page.title = inspection.title;
  page.labels = inspection.labels;
  page.most = inspection.most;
  const int64_t cells =
      MaxCells(format, static_cast<int64_t>(inspection.heads.size()));
  for (size_t i = 0; i < inspection.heads.size(); ++i) {
    const PatternFigures& figures = inspection.figures[i];
    PatternPanel panel;
    panel.grid = MakeGrid(ViewOf(tensors, inspection.heads[i]), cells);
    panel.title =
        fmt::format("head {}: entropy {:.2f} bits, peak {:.3f}",
                    inspection.heads[i], figures.entropy, figures.peak);
    page.panels.push_back(std::move(panel));
  }
  const int64_t block = page.panels[0].grid.block;
  if (block > 1) {
    page.title +=
        fmt::format(" (a cell: the largest of {} x {})", block, block);
  }
  const std::unique_ptr<Canvas> canvas = DrawPage(page, format, why);
  return canvas != nullptr && WriteImage(options.image, canvas.get(), why);
}

void PrintJson(const HeadTensors& tensors, const Inspection& inspection) {
  nlohmann::ordered_json json = {{"plan", tensors.plan},
                                 {"ms", tensors.seconds * 1e3},
                                 {"heads", nlohmann::ordered_json::array()},
                                 {"checks", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < inspection.heads.size(); ++i) {
    const PatternFigures& figures = inspection.figures[i];
    json["heads"].push_back({{"head", inspection.heads[i]},
                             {"entropy_bits", figures.entropy},
                             {"most_entropy_bits", figures.most_entropy},
                             {"peak", figures.peak}});
  }
  for (const HeadCheck& check : inspection.checks) {
    json["checks"].push_back({{"check", check.what},
                              {"verdict", VerdictName(check.verdict)},
                              {"figure", check.figure}});
  }
  fmt::print("{}\n", json.dump());
}

void PrintText(const InspectOptions& options, const HeadTensors& tensors,
               const Inspection& inspection) {
  fmt::print("{} time={:.3f}ms\n", tensors.plan, tensors.seconds * 1e3);
  const TextStyle style = options.draw == "auto"     ? TerminalStyle()
                          : options.draw == "blocks" ? TextStyle::kBlocks
                                                     : TextStyle::kAscii;
  if (options.draw != "none") {
    for (const int64_t head : inspection.heads) {
      const PatternGrid grid = MakeGrid(ViewOf(tensors, head), kMaxTextCells);
      fmt::print("\nhead {}\n{}", head,
                 DrawPattern(grid, inspection.labels, inspection.most, style));
      if (grid.block > 1) {
        fmt::print("a cell is the largest of {} x {} weights\n", grid.block,
                   grid.block);
      }
    }
    fmt::print("\n{}", DrawLegend(inspection.most, style));
  }
  fmt::print("\n{:>4}  {:>12}  {:>12}  {:>9}\n", "head", "entropy/bits",
             "of at most", "mean peak");
  for (size_t i = 0; i < inspection.heads.size(); ++i) {
    const PatternFigures& figures = inspection.figures[i];
    fmt::print("{:>4}  {:>12.3f}  {:>12.3f}  {:>9.4f}\n", inspection.heads[i],
               figures.entropy, figures.most_entropy, figures.peak);
  }
  fmt::print("\n");
  for (const HeadCheck& check : inspection.checks) {
    fmt::print("{:<9}  {}: {}\n", VerdictName(check.verdict), check.what,
               check.figure);
  }
}

int RunCommand(const InspectOptions& options) {
  HeadModel model;
  HeadTensors tensors;
  Inspection inspection;
  std::string why;
  if (!LoadHead(options.head, &model, &why)) return FailCommand("inspect", why);
  if (options.labels.empty()) {
    inspection.labels = DefaultLabels(options.head.tokens, model.len);
  } else if (!ReadLabels(options.labels, model.len, &inspection.labels, &why)) {
    return FailCommand("inspect", why);
  }
  const int threads = options.head.threads;
  if (!RunHead(model.desc, model.x.data(), model.len, threads, &tensors,
               &why) ||
      !CheckHead(model, tensors, threads, &inspection.checks, &why)) {
    return FailCommand("inspect", why);
  }
  Measure(options, tensors, &inspection);
  if ((!options.image.empty() && !Image(options, tensors, inspection, &why)) ||
      (!options.head.dump.empty() &&
       !DumpHead(tensors, options.head.head, options.head.dump, &why))) {
    return FailCommand("inspect", why);
  }
  if (options.head.json) {
    PrintJson(tensors, inspection);
  } else {
    PrintText(options, tensors, inspection);
  }
  const auto failed = [](const HeadCheck& check) {
    return check.verdict == HeadCheck::Verdict::kFails;
  };
  if (std::none_of(inspection.checks.begin(), inspection.checks.end(),
                   failed)) {
    return kDone;
  }
  return FailCommand("inspect", "a check fails, see above");
}

int CheckAndRun(const InspectOptions& options) {
  const std::string why = WrongTogether(options.head);
  if (why.empty()) return RunCommand(options);
  FailCommand("inspect", why);
  return kUsage;
}

}  // namespace

void AddInspectCommand(CLI::App* app, Action* action) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::App* inspect = app->add_subcommand(
      "inspect",
      "Show what each head of a layer of a checkpoint attends to: its pattern "
      "as a heat map, the entropy of its weights and their peak, means over "
      "rows; and try what must hold: rows sum to 1; hidden weights are exactly "
      "0; a changed token leaves the rows before it as they are, to the byte; "
      "without the divisor of the scores the pattern is sharper; a token at "
      "two places has one query without RoPE and two with it; without the mask "
      "the upper triangle is filled. Exit code 1 if one of them fails");
  AddHeadOptions(inspect, &options->head);
  inspect
      ->add_option("--image", options->image,
                   "Draw the heat maps into this file, .png or .svg")
      ->check(CheckImage)
      ->type_name("FILE");
  inspect
      ->add_option("--labels", options->labels,
                   "Names of the tokens, a line of UTF-8 each (default: their "
                   "ids or places). Pictures have the characters of the "
                   "system's sans-serif font")
      ->type_name("FILE");
  inspect
      ->add_option("--draw", options->draw,
                   "Heat maps in the terminal: blocks = UTF-8 and colours; "
                   "ascii = characters; none; auto = blocks if it is a "
                   "terminal with UTF-8 and NO_COLOR is unset, else ascii")
      ->check(CLI::IsMember({"auto", "blocks", "ascii", "none"}))
      ->type_name("")
      ->capture_default_str();
  inspect->callback([options, action] {
    *action = [options] { return CheckAndRun(*options); };
  });
}

}  // namespace heed
