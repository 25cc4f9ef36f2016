#include "cli/wish_words.h"

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/selection_words.h"

namespace trainyard::cli {
namespace {

/// The larger go first, as in a job file.
constexpr int kPriorityMax = 1'000'000;

constexpr const char* kCodes =
    "Exit codes: 0 done, 1 of some tasks it could not be done, 2 nothing was done.";

}  // namespace

WishWords::WishWords(CLI::App& app) {
  hold_ = app.add_subcommand("hold", "Keep tasks that wait from starting");
  add_selection(*hold_, options_.words, options_.run_directory);
  hold_->footer(std::string("Examples:\n"
                            "  trainyard hold lr=0.1\n"
                            "  trainyard hold 46 'train/seed=*'\n"
                            "\n"
                            "They wait until 'trainyard release', also in a run that is resumed. "
                            "One that is skipped or\n"
                            "killed meanwhile has ended, and is on hold no more.\n") +
                kCodes);
  release_ = app.add_subcommand("release", "Let tasks start that were kept from it");
  add_selection(*release_, options_.words, options_.run_directory,
                {.text = "all that are on hold, of the latest run"});
  release_->footer(std::string("Examples:\n"
                               "  trainyard release\n"
                               "  trainyard release 46/lr=0.1\n"
                               "\n") +
                   kCodes);
  set_ = app.add_subcommand("set", "Change what tasks of a run at work ask for");
  add_selection(*set_, options_.words, options_.run_directory);
  set_->add_option("--priority", options_.priority,
                   "The larger goes first of all that wait; 0 is that of a task without one")
      ->check(CLI::Range(-kPriorityMax, kPriorityMax))
      ->required();
  set_->footer(std::string("Examples:\n"
                           "  trainyard set 43/lr=1e-3 --priority 10\n"
                           "  trainyard set 'seed=0' --priority -1\n"
                           "\n"
                           "It counts whenever they wait, also in a run that is resumed.\n") +
               kCodes);
  for (CLI::App* const command : {hold_, release_, set_}) {
    command->add_flag("--dry-run", options_.dry_run, "Show which tasks are meant, and do nothing");
  }
}

std::optional<ExitCode> WishWords::run() {
  if (hold_->parsed()) {
    options_.what = WishOptions::What::Hold;
  } else if (release_->parsed()) {
    options_.what = WishOptions::What::Release;
  } else if (set_->parsed()) {
    options_.what = WishOptions::What::Priority;
  } else {
    return std::nullopt;
  }
  return wish_command(options_);
}

}  // namespace trainyard::cli
