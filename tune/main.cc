// The command `heed`: looks at the machine and at the heads of a model, runs
// attention on files, tunes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "runtime/include/heed.h"
#include "tune/commands.h"

namespace {

// CLI11 puts some messages on several lines.
std::string OneLine(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

int Run(int argc, char** argv) {
  CLI::App app{"heed: exact scaled dot-product attention on CPUs"};
  app.name("heed");
  app.set_version_flag("--version", std::string("heed ") + heed_version());
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 65 bad record, 73 cannot "
      "write, 75 another tuner is measuring, 130 interrupted.\n"
      "`heed COMMAND --help` explains a command's options.");
  heed::Action action;
  heed::AddDemoCommand(&app, &action);
  heed::AddHeadCommand(&app, &action);
  heed::AddInfoCommand(&app, &action);
  heed::AddInspectCommand(&app, &action);
  heed::AddRunCommand(&app, &action);
  heed::AddTuneCommand(&app, &action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    // CLI11 only says that a subcommand is required.
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      std::fprintf(
          stderr,
          "heed: '%s' is no command; expected demo, head, info, inspect, "
          "run or tune\n",
          OneLine(argv[1]).c_str());
      return heed::kUsage;
    }
    if (argc > 2 && argv[2][0] != '-' && app.got_subcommand("demo") &&
        app.get_subcommand("demo")->get_subcommands().empty()) {
      std::fprintf(stderr, "heed demo: '%s' is none; expected scale\n",
                   OneLine(argv[2]).c_str());
      return heed::kUsage;
    }
    std::fprintf(stderr, "heed: %s (heed --help)\n",
                 OneLine(error.what()).c_str());
    return heed::kUsage;
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "heed: out of memory\n");
    return heed::kFailed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "heed: %s\n", OneLine(error.what()).c_str());
    return heed::kFailed;
  }
}
