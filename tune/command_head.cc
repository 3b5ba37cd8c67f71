// `heed head`: an attention block out of a checkpoint.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "tune/commands.h"
#include "tune/head_model.h"
#include "tune/head_run.h"
#include "tune/printable.h"

namespace heed {
namespace {

// Scores hold -inf where a key is hidden, which is no size.
float MaxAbs(const TensorPart& part) {
  float most = 0;
  for (size_t i = 0; i < part.count; ++i) {
    if (std::isinf(part.data[i])) continue;
    most = std::max(most, std::fabs(part.data[i]));
  }
  return most;
}

void Print(const HeadOptions& options, const HeadTensors& tensors) {
  nlohmann::ordered_json json = {{"plan", tensors.plan},
                                 {"ms", tensors.seconds * 1e3},
                                 {"tensors", nlohmann::ordered_json::object()}};
  if (!options.json) {
    fmt::print("{} time={:.3f}ms\n{:<9} {:<20} {}\n", tensors.plan,
               tensors.seconds * 1e3, "tensor", "shape", "largest");
  }
  for (const NamedTensor& tensor : AllTensors(tensors)) {
    const TensorPart part = PartOf(tensors, tensor, options.head);
    if (options.json) {
      json["tensors"][tensor.name] = {{"shape", part.shape},
                                      {"max_abs", MaxAbs(part)}};
    } else {
      fmt::print("{:<9} {:<20} {:.6g}\n", tensor.name, ShapeText(part.shape),
                 MaxAbs(part));
    }
  }
  if (options.json) fmt::print("{}\n", json.dump());
}

int RunCommand(const HeadOptions& options) {
  HeadModel model;
  HeadTensors tensors;
  std::string why;
  if (!LoadHead(options, &model, &why) ||
      !RunHead(model.desc, model.x.data(), model.len, options.threads, &tensors,
               &why) ||
      (!options.dump.empty() &&
       !DumpHead(tensors, options.head, options.dump, &why))) {
    return FailCommand("head", why);
  }
  Print(options, tensors);
  return kDone;
}

int CheckAndRun(const HeadOptions& options) {
  const std::string why = WrongTogether(options);
  if (why.empty()) return RunCommand(options);
  FailCommand("head", why);
  return kUsage;
}

}  // namespace

void AddHeadCommand(CLI::App* app, Action* action) {
  const auto options = std::make_shared<HeadOptions>();
  CLI::App* head = app->add_subcommand(
      "head",
      "Run the attention block of a layer of a checkpoint: norm, projection to "
      "q, k and v, RoPE where the model has it, attention, merge of heads, "
      "output projection, residual add. Prints the plan, the time, and of each "
      "tensor in between its shape and largest magnitude");
  AddHeadOptions(head, options.get());
  head->callback([options, action] {
    *action = [options] { return CheckAndRun(*options); };
  });
}

}  // namespace heed
