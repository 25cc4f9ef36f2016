#include "cli/learned_words.h"

#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest.h"
#include "cli/console.h"
#include "cli/help_format.h"
#include "cli/shared_words.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {
namespace {

void add_job(CLI::App& command, LearnedOptions& options) {
  command
      .add_option("job", options.job_file, "Job file (default: that of the latest run in ./runs)")
      ->type_name(value_kinds::kJobFile)
      ->check(empty_job_file_error);
  add_json(command, options.json);
}

}  // namespace

LearnedWords::LearnedWords(CLI::App& app) {
  learned_ = app.add_subcommand("learned", "Show or forget learned estimates");
  learned_->group(command_groups::kWatch);
  add_job(*learned_, options_);
  add_configuration(*learned_, options_.config_file, options_.settings);
  learned_->footer(
      "Examples:\n"
      "  trainyard learned sweep.yaml\n"
      "  trainyard learned forget sweep.yaml train\n"
      "\n"
      "Exit codes: 0 done, 1 not done, 2 the command line or the job file is wrong.");
  CLI::App* show = learned_->add_subcommand("show", "Compare the job file with what tasks used");
  add_job(*show, options_);
  add_configuration(*show, options_.config_file, options_.settings);
  show->footer(
      "Examples:\n"
      "  trainyard learned\n"
      "  trainyard learned show sweep.yaml --json\n"
      "\n"
      "SUGGESTED is a value for the job file: 'memory: 2.2GB'. It is '-' if the present value is\n"
      "within 10 % of it, or comes from the matrix. Hard limits, and values whose estimate is\n"
      "uncertain, are only raised.");
  forget_ = learned_->add_subcommand("forget", "Delete learned estimates");
  add_job(*forget_, options_);
  forget_->add_option("what", options_.what, "Groups, or tasks as <group>/<id> (default: all)")
      ->type_name(value_kinds::kName);
  forget_->footer(
      "Examples:\n"
      "  trainyard learned forget sweep.yaml\n"
      "  trainyard learned forget sweep.yaml train\n"
      "  trainyard learned forget sweep.yaml train/lr=0.1,seed=2\n"
      "\n"
      "The journals of runs stay: a resumed run uses the estimates in its journal.\n"
      "Exit codes: 0 deleted, 1 nothing is known, 2 the command line is wrong.");
}

std::optional<ExitCode> LearnedWords::run() {
  // A command that is typed wrong is a job file to CLI11.
  constexpr std::array<std::string_view, 2> kCommands{"show", "forget"};
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(options_.job_file, ignored);
  const auto meant = is_file ? std::nullopt : nearest(options_.job_file, kCommands);
  if (learned_->parsed() && meant && learned_->get_subcommands().empty()) {
    return fail(
        fmt::format("unknown command '{}' (did you mean '{}'?)", options_.job_file, *meant));
  }
  if (forget_->parsed()) return learned_forget_command(options_);
  if (learned_->parsed()) return learned_show_command(options_);
  return std::nullopt;
}

}  // namespace trainyard::cli
