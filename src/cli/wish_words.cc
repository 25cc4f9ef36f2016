#include "cli/wish_words.h"

#include <string>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/help_format.h"
#include "cli/selection_words.h"
#include "cli/value_kinds.h"
#include "model/priority.h"

namespace trainyard::cli {
namespace {

std::string wrong_with_priority(const std::string& word) {
  const Result<int> priority = model::parse_priority(word);
  return priority ? std::string() : priority.error().message;
}

constexpr const char* kCodes =
    "Selected tasks that cannot be changed are printed as 'not changed'.\n"
    "Exit codes: 0 done, 1 a named task was not changed while others were, or the run refused or\n"
    "did not respond in time, 2 nothing was done, or the run is suspended.";

}  // namespace

WishWords::WishWords(CLI::App& app) {
  hold_ = app.add_subcommand("hold", "Keep waiting tasks from starting");
  add_selection(*hold_, options_.words, options_.run_directory, kTasksNeededHelp);
  hold_->footer(
      std::string("Examples:\n"
                  "  trainyard hold lr=0.1\n"
                  "  trainyard hold 46 'train/seed=*'\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "Held tasks wait until 'trainyard release', also in a resumed run. A held task that is\n"
      "skipped or killed has ended, and is no longer held.\n" +
      kCodes);
  release_ = app.add_subcommand("release", "Let held tasks start");
  add_selection(*release_, options_.words, options_.run_directory,
                "Tasks or run (default: all held tasks of the latest run)");
  release_->footer(std::string("Examples:\n"
                               "  trainyard release\n"
                               "  trainyard release 46/lr=0.1\n"
                               "\n") +
                   kSelectionHelp + "\n" + kCodes);
  update_ = app.add_subcommand("update", "Change the priority of tasks");
  add_selection(*update_, options_.words, options_.run_directory, kTasksNeededHelp);
  update_
      ->add_option("--priority", options_.priority,
                   "Priority from -1000 to 1000, larger numbers start first")
      ->group("Priority")
      ->type_name(value_kinds::kNumber)
      ->check(wrong_with_priority)
      ->required();
  update_->footer(
      std::string("Examples:\n"
                  "  trainyard update 43/lr=1e-3 --priority 10\n"
                  "  trainyard update 'seed=0' --priority -1\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "The priority counts whenever the tasks wait, also in a resumed run. A running task is not\n"
      "interrupted: its priority counts when it is retried.\n" +
      kCodes);
  for (CLI::App* const command : {hold_, release_, update_}) {
    command->group(command_groups::kChange);
    command->add_flag("--dry-run", options_.dry_run, "Show the selected tasks, and change nothing")
        ->group(option_groups::kOutput);
  }
}

std::optional<ExitCode> WishWords::run() {
  if (hold_->parsed()) {
    options_.what = WishOptions::What::Hold;
  } else if (release_->parsed()) {
    options_.what = WishOptions::What::Release;
  } else if (update_->parsed()) {
    options_.what = WishOptions::What::Priority;
  } else {
    return std::nullopt;
  }
  return wish_command(options_);
}

}  // namespace trainyard::cli
