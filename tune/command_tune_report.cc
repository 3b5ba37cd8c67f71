// `heed tune report`: a record and its journals as a page.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tune/commands.h"
#include "tune/journal.h"
#include "tune/record_option.h"
#include "tune/report_data.h"
#include "tune/staged_file.h"

namespace heed {
namespace {

struct ReportOptions {
  std::string record, out;
  std::vector<std::string> journals;
};

int Report(const ReportOptions& options) {
  const std::string path = FindRecordPath(options.record);
  std::vector<std::string> journals = options.journals;
  if (journals.empty()) {
    journals = JournalsIn(std::filesystem::path(path).parent_path().string());
  }
  ReportData data;
  std::string why;
  if (!LoadReport(path, journals, &data, &why)) {
    return FailCommand("tune report", why, kBadData);
  }
  const std::string extension =
      std::filesystem::path(options.out).extension().string();
  const std::string text =
      extension == ".md" ? ReportMarkdown(data) : ReportHtml(data);
  StagedFile file;
  if (!file.Open(options.out, &why) ||
      !file.Append(text.data(), text.size(), &why) ||
      !StagedFile::CommitAll({&file}, &why)) {
    return FailCommand("tune report", why, kCannotWrite);
  }
  fmt::print("wrote {} from {} and {} rounds of its journals\n", options.out,
             path, data.timeline.size());
  return kDone;
}

}  // namespace

void AddTuneReportCommand(CLI::App* tune, Action* action) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* report = tune->add_subcommand(
      "report",
      "Draw a record and its journals: gains with their intervals, roofline, "
      "races, heat maps, noise. One HTML page that loads nothing, or Markdown");
  report
      ->add_option("--record", options->record,
                   "File or folder (default: results/tuning)")
      ->type_name("PATH");
  report
      ->add_option("--journal", options->journals,
                   "Journals (default: those beside the record)")
      ->type_name("FILE");
  report->add_option("--out", options->out, "FILE.html or FILE.md")
      ->required()
      ->check(CLI::Validator(
          [](const std::string& path) {
            const std::string extension =
                std::filesystem::path(path).extension().string();
            return extension == ".html" || extension == ".md"
                       ? std::string()
                       : "'" + path + "' ends in neither .html nor .md";
          },
          "", "extension"))
      ->type_name("FILE");
  report->callback(
      [options, action] { *action = [options] { return Report(*options); }; });
}

}  // namespace heed
