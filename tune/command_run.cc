// `heed run`: attention on .npy files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/include/heed.h"
#include "runtime/problem.h"
#include "runtime/tile_text.h"
#include "tune/commands.h"
#include "tune/run_check.h"
#include "tune/run_inputs.h"
#include "tune/run_options.h"
#include "tune/run_outputs.h"

namespace heed {
namespace {

std::string Describe(const heed_plan* plan) {
  std::string text(heed_plan_describe(plan, nullptr, 0) + 1, '\0');
  heed_plan_describe(plan, &text[0], text.size());
  text.pop_back();
  return text;
}

void Print(const RunOptions& options, const heed_problem& problem,
           const RunOutputs& outputs, const ReferenceError& error) {
  const std::string plan = Describe(outputs.plan.get());
  const double milliseconds = outputs.seconds * 1e3;
  if (options.json) {
    nlohmann::ordered_json json = {{"problem", ToString(problem)},
                                   {"plan", plan},
                                   {"ms", milliseconds},
                                   {"repeat", options.repeat}};
    if (options.check) {
      json["max_abs_error"] = error.out;
      json["max_abs_error_lse"] = error.lse;
      json["max_abs_reference"] = error.max_abs;
      json["rows_checked"] = error.rows;
    }
    fmt::print("{}\n", json.dump());
    return;
  }
  std::string check;
  if (options.check) {
    check = fmt::format(
        " max_abs_error={:.3g} max_abs_error_lse={:.3g} "
        "max_abs_reference={:.3g}",
        error.out, error.lse, error.max_abs);
  }
  fmt::print("{} time={:.3f}ms{}\n", plan, milliseconds, check);
}

// What is wrong with options that CLI11 takes one by one; empty: nothing.
std::string WrongTogether(const RunOptions& options) {
  const struct {
    const char* option;
    const std::string& path;
  } outputs[] = {{"--out", options.out},
                 {"--lse", options.lse},
                 {"--scores", options.scores.second},
                 {"--weights", options.weights}};
  for (const auto& one : outputs) {
    for (const auto& other : outputs) {
      if (&other == &one) break;
      if (one.path.empty() || one.path != other.path) continue;
      return fmt::format("{} and {} name the same file", one.option,
                         other.option);
    }
  }
  const bool has_offset =
      options.causal_offset.has_value() || !options.causal_offsets.empty();
  const bool needs_place = options.has_window || !options.alibi.empty();
  if (options.align.empty()) {
    if (!needs_place || has_offset || options.causal != "none") return "";
    return fmt::format(
        "{} needs --align, which says where queries stand among the keys, or a "
        "causal line",
        options.has_window ? "--window" : "--alibi");
  }
  if (!needs_place) {
    return "--align places queries for --window or --alibi; expected one of "
           "them";
  }
  if (options.causal != "none") {
    return fmt::format(
        "--align places queries where no causal line does; expected no --align "
        "with --causal {}",
        options.causal);
  }
  if (has_offset != (options.align == "offset")) {
    return fmt::format(
        "--align {}; expected {}", options.align,
        has_offset ? "offset, since an offset is given, or no --align for a "
                     "causal line there"
                   : "--causal-offset or --causal-offsets with it");
  }
  return "";
}

int RunRun(const RunOptions& options) {
  std::string why = WrongTogether(options);
  if (!why.empty()) {
    FailCommand("run", why);
    return kUsage;
  }
  RunInputs inputs;
  RunOutputs outputs;
  if (!ReadRunInputs(options, &inputs, &why) ||
      !ComputeRun(options, inputs, &outputs, &why)) {
    return FailCommand("run", why);
  }
  ReferenceError error;
  if (options.check) {
    error = CheckRun(options, inputs, outputs.out, outputs.lse);
  }
  if (!WriteRun(options, outputs, &why)) return FailCommand("run", why);
  Print(options, inputs.problem, outputs, error);
  return kDone;
}

// A wrong tile is wrong usage, so CLI11 asks for the reason it is wrong.
std::string CheckTile(const std::string& text) {
  heed_tile tile;
  std::string why;
  ParseTileOption(text, &tile, &why);
  return why;
}

std::string CheckMaskBlock(const std::string& text) {
  int32_t queries, keys;
  if (ParseMaskBlock(text, &queries, &keys)) return "";
  return text + "; expected QxK, such as 64x128, of 1 or more each";
}

CLI::Option* AddFile(CLI::App* run, const char* name, std::string* path,
                     const char* help) {
  return run->add_option(name, *path, help)->type_name("FILE");
}

void AddTensors(CLI::App* run, RunOptions* options) {
  AddFile(run, "--q", &options->q, "Queries, (B, Hq, Tq, D)")->required();
  AddFile(run, "--k", &options->k,
          "Keys, (B, Hkv, Tk, D); Hq is a multiple of Hkv")
      ->required();
  AddFile(run, "--v", &options->v, "Values, (B, Hkv, Tk, Dv)")->required();
  AddFile(run, "--out", &options->out,
          "Where the result goes, (B, Hq, Tq, Dv), of the inputs' type; "
          "written whole or not at all")
      ->required();
  AddFile(run, "--lse", &options->lse,
          "Where the logarithms of the rows' sums go, (B, Hq, Tq), always "
          "float32");
  AddFile(run, "--weights", &options->weights,
          "Where the weights of the keys go, (B, Hq, Tq, Tk), float32: rows "
          "sum to 1, with --sinks to less, and hidden keys have 0");
  run->add_option("--scores", options->scores,
                  "Where the scores before the softmax go, as --weights: "
                  "scaled = scale * q k; capped = that after --softcap; biased "
                  "= after --alibi and --mask too, -inf where a key is hidden "
                  "or not in use")
      ->check(
          CLI::IsMember({"scaled", "capped", "biased"}).application_index(0))
      ->type_name("STAGE FILE");
  run->add_option("--dtype", options->dtype,
                  "Type of q, k, v and out: f32 (float32), f16 (float16) or "
                  "bf16 (stored as uint16, which is never taken for bf16 "
                  "unasked). Default: what the files say")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->type_name("TYPE");
}

// Which keys are visible, and where queries stand among them.
void AddPlaces(CLI::App* run, RunOptions* options, CLI::Option** window) {
  CLI::Option* causal =
      run->add_option("--causal", options->causal,
                      "Which keys a query sees: none = all; top_left = key j "
                      "<= query i; bottom_right = j <= i + Tk - Tq")
          ->check(CLI::IsMember({"none", "top_left", "bottom_right"}))
          ->type_name("")
          ->capture_default_str();
  CLI::Option* offset =
      run->add_option("--causal-offset", options->causal_offset,
                      "Query i sees key j <= i + N; N may be negative")
          ->excludes(causal)
          ->type_name("N");
  AddFile(run, "--causal-offsets", &options->causal_offsets,
          "The same with an N for each sequence, int32 or int64 (B,)")
      ->excludes(causal)
      ->excludes(offset);
  *window = run->add_option(
                   "--window", options->window,
                   "Query i at position p sees keys p - L to p + R only, both "
                   "included; -1 = no limit. The last W keys, its own "
                   "included: W-1,0. p is i + the causal line's offset, or "
                   "what --align says")
                ->delimiter(',')
                ->type_name("L,R");
  run->add_option("--align", options->align,
                  "Position p of query i for --window and --alibi without a "
                  "causal line: top_left = i; bottom_right = i + Tk - Tq; "
                  "offset = i + --causal-offset(s), which then hide nothing")
      ->check(CLI::IsMember({"top_left", "bottom_right", "offset"}))
      ->type_name("");
}

void AddBiases(CLI::App* run, RunOptions* options) {
  CLI::Option* mask = AddFile(
      run, "--mask", &options->mask,
      "Mask of 2 to 4 dimensions, (B|1, Hq|1, Tq|1, Tk|1), leading ones left "
      "out or not. bool or uint8: keys where it is not 0 are visible; float32 "
      "or the type of q: added to the scaled score, and -inf hides the key");
  run->add_option("--mask-block", options->mask_block,
                  "An element of a bool or uint8 mask stands for Q queries and "
                  "K keys: the mask is (.., ceil(Tq / Q), ceil(Tk / K))")
      ->needs(mask)
      ->check(CheckMaskBlock)
      ->type_name("QxK");
  run->add_option("--alibi", options->alibi,
                  "Adds slope * (j - p) to the score of key j: a float32 slope "
                  "per query head, (Hq,), or auto = 2^(-8 i / Hq) for heads i "
                  "= 1 to Hq, with the ALiBi paper's rule if Hq is no power of "
                  "two")
      ->type_name("FILE|auto");
  run->add_option("--softcap", options->softcap,
                  "Scores become C * tanh(score / C), before --alibi and "
                  "--mask; 0 = they do not")
      ->type_name("C");
  AddFile(run, "--sinks", &options->sinks,
          "A logit per query head, float32 (Hq,), that joins the denominator");
  run->add_option("--scale", options->scale,
                  "Factor of the scores (default: 1 / sqrt(D))")
      ->type_name("S");
}

void AddSequences(CLI::App* run, RunOptions* options) {
  AddFile(
      run, "--seqused-k", &options->seqused_k,
      "Keys in use of each sequence, int32 or int64 (B,); they, not Tk, count "
      "for bottom_right");
  AddFile(run, "--cu-seqlens-q", &options->cu_seqlens_q,
          "Sequences of any length in one run of tokens: q and out are "
          "(tokens, Hq, width), lse (tokens, Hq), and sequence b is tokens "
          "cu[b] to cu[b + 1] - 1; int32 or int64 (B + 1,). Tq is the longest");
  CLI::Option* starts =
      AddFile(run, "--cu-seqlens-k", &options->cu_seqlens_k,
              "The same of k and v, (tokens, Hkv, width). Tk is the longest");
  AddFile(run, "--block-table", &options->block_table,
          "k and v are (pages, Hkv, page size, width), and entry (b, i) of "
          "this table, int32 or int64 (B, max pages), is the page of the i-th "
          "keys of sequence b. Tk is max pages * page size; --seqused-k says "
          "how many are in use")
      ->excludes(starts);
}

void AddExecution(CLI::App* run, RunOptions* options) {
  run->add_option("--threads", options->threads,
                  "Threads (default: what affinity and quota allow)")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  run->add_option("--target", options->target,
                  "SIMD target, one that `heed info` lists (default: the best)")
      ->type_name("NAME");
  run->add_option("--tile", options->tile,
                  "Tile instead of the record's or the model's, e.g. "
                  "row_block=96,key_tile=192,pack_k=0,pack_v=2,prefetch=0; "
                  "what is left out is the model's; pack 0 reads in place, 1 "
                  "copies per tile, 2 once per call. Changes the time, never "
                  "the result")
      ->check(CheckTile)
      ->type_name("KEY=N,...");
  run->add_option("--repeat", options->repeat,
                  "Run this often and print the median time")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N")
      ->capture_default_str();
  run->add_flag("--check", options->check,
                "Compare out and lse with a reference in double precision on "
                "the same inputs (slow, one thread) and print the largest "
                "absolute error; with f16 and bf16 that includes the rounding "
                "of out");
  run->add_flag("--json", options->json, "Print JSON");
}

}  // namespace

void AddRunCommand(CLI::App* app, Action* action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* run = app->add_subcommand(
      "run",
      "Compute attention on .npy files: q, k and v in float32, float16, or "
      "bfloat16 stored as uint16 (--dtype bf16), all three alike; little "
      "endian, C order, 4 dimensions (batch, heads, tokens, width). Prints one "
      "line: the problem, the plan and the time");
  CLI::Option* window = nullptr;
  AddTensors(run, options.get());
  AddPlaces(run, options.get(), &window);
  AddBiases(run, options.get());
  AddSequences(run, options.get());
  AddExecution(run, options.get());
  run->callback([options, window, action] {
    options->has_window = window->count() > 0;
    *action = [options] { return RunRun(*options); };
  });
}

}  // namespace heed
