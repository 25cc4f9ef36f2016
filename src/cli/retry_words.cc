#include "cli/retry_words.h"

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/selection_words.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {

RetryWords::RetryWords(CLI::App& app, const std::string& command_line) {
  options_.command_line = command_line;
  retry_ = app.add_subcommand("retry", "Try tasks again that have ended without having finished");
  add_selection(*retry_, options_.words, options_.run_directory,
                {.text = "the tasks that failed, of the latest run"});
  retry_->add_option("--memory", options_.memory, "Reserve at least so much memory for each: 20GB")
      ->type_name(value_kinds::kSize);
  retry_->add_option("--gpu-memory", options_.gpu_memory, "The same on each of its GPUs")
      ->type_name(value_kinds::kSize);
  retry_->add_option("--time-limit", options_.time_limit, "Let an attempt take so long: 2h")
      ->type_name(value_kinds::kTime);
  CLI::Option* const changed = retry_->add_flag(
      "--changed", options_.changed,
      "Those alone of which the job file says something else since, finished or not");
  for (const char* const amount : {"--memory", "--gpu-memory", "--time-limit"}) {
    changed->excludes(amount);
    // As of a variable of the shell that is not set.
    retry_->get_option(amount)->check(
        [](const std::string& text) { return std::string(text.empty() ? "is empty" : ""); });
  }
  retry_->add_flag("--cascade", options_.cascade, "Also what was skipped because of them");
  retry_->add_flag("--dry-run", options_.dry_run, "Show what would be tried, and do nothing");
  retry_->footer(
      "Examples:\n"
      "  trainyard retry 46\n"
      "  trainyard retry 46 :oom --gpu-memory 20GB\n"
      "  trainyard retry 46/lr=0.1 --time-limit 2h --cascade\n"
      "  trainyard retry 46 --changed\n"
      "  trainyard retry sweep.yaml --dry-run\n"
      "\n"
      "They begin anew, with all their tries. A run at work takes them in; one that has ended "
      "goes\n"
      "on with them alone, in this terminal, and all else of it stays as it is.\n"
      "Exit codes: of a run at work 0 taken in, 1 one was not, 2 nothing was done; of one that "
      "has\n"
      "ended those of 'run', for these tasks alone.");
}

std::optional<ExitCode> RetryWords::run() {
  if (!retry_->parsed()) return std::nullopt;
  return retry_command(options_);
}

}  // namespace trainyard::cli
