#include "cli/learned_words.h"

#include <optional>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {
namespace {

void add_job(CLI::App& command, LearnedOptions& options) {
  command
      .add_option("job", options.job_file,
                  "The job file (default: that of the latest run under ./runs)")
      ->type_name(value_kinds::kJobFile);
  command.add_flag("--json", options.json, "For programs");
}

void add_configuration_of(CLI::App& command, LearnedOptions& options) {
  command
      .add_option("--config", options.config_file, "Configuration file (default: ./trainyard.yaml)")
      ->type_name(value_kinds::kFile);
  command
      .add_option("--set", options.settings, "A setting, as in --set scheduler.default-memory=4GB")
      ->type_name(value_kinds::kSetting)
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

}  // namespace

LearnedWords::LearnedWords(CLI::App& app) {
  learned_ = app.add_subcommand("learned", "Show, write down or forget what runs have taught");
  add_job(*learned_, options_);
  add_configuration_of(*learned_, options_);
  learned_->footer(
      "Examples:\n"
      "  trainyard learned sweep.yaml\n"
      "  trainyard learned write sweep.yaml --dry-run\n"
      "  trainyard learned forget sweep.yaml train\n"
      "\n"
      "Exit codes: 0 done, 1 something of it could not be, 2 the command line or the job file is\n"
      "wrong.");
  CLI::App* show = learned_->add_subcommand(
      "show", "What the job file says, what tasks took, what comes next (the default)");
  add_job(*show, options_);
  add_configuration_of(*show, options_);
  show->footer(
      "Examples:\n"
      "  trainyard learned\n"
      "  trainyard learned show sweep.yaml --json");
  write_ = learned_->add_subcommand("write", "Put the numbers into the job file's own lines");
  add_job(*write_, options_);
  add_configuration_of(*write_, options_);
  write_->add_flag("--dry-run", options_.dry_run, "Show what would change, and change nothing");
  write_->footer(
      "Examples:\n"
      "  trainyard learned write sweep.yaml --dry-run\n"
      "  trainyard learned write sweep.yaml\n"
      "\n"
      "Changes 'memory', 'gpu-memory' and 'duration' where they stand and are off by more than a\n"
      "tenth; comments, order and blanks stay, and no line is added. A number that may have been\n"
      "more ('at least'), that another card has taught, or that is a hard limit, is only raised.\n"
      "Exit codes: 0 all is as it should be, 1 some is left to you, 2 the command line or the job\n"
      "file is wrong.");
  forget_ = learned_->add_subcommand("forget", "Forget all, or that of a group or of one task");
  add_job(*forget_, options_);
  forget_->add_option("what", options_.what, "A group, or <group>/<id>; several are fine")
      ->type_name(value_kinds::kName);
  forget_->footer(
      "Examples:\n"
      "  trainyard learned forget sweep.yaml\n"
      "  trainyard learned forget sweep.yaml train\n"
      "  trainyard learned forget sweep.yaml train/lr=0.1,seed=2\n"
      "\n"
      "Runs keep their journals: one that is resumed goes on with what it has learned itself.\n"
      "Exit codes: 0 forgotten, 1 nothing is known of it, 2 the command line is wrong.");
}

std::optional<ExitCode> LearnedWords::run() {
  if (write_->parsed()) return learned_write_command(options_);
  if (forget_->parsed()) return learned_forget_command(options_);
  if (learned_->parsed()) return learned_show_command(options_);
  return std::nullopt;
}

}  // namespace trainyard::cli
