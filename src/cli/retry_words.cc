// `trainyard retry` on the command line.
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/entry.h"
#include "cli/help_format.h"
#include "cli/selection_words.h"
#include "cli/value_kinds.h"

namespace trainyard::cli {
namespace {

CLI::App* add_retry(CLI::App& app, app::RetryRequest& options) {
  CLI::App* retry = app.add_subcommand("retry", "Retry failed tasks, or named unfinished tasks");
  retry->group(command_groups::kRun);
  add_selection(*retry, options.words, options.run_directory,
                "Tasks or run (default: failed tasks of the latest run)");
  const auto in_selection = [](CLI::Option* option) { option->group(option_groups::kSelection); };
  CLI::Option* const changed = retry->add_flag(
      "--changed", options.changed, "Retry only tasks changed in the job file, even if finished");
  in_selection(changed);
  CLI::Option* const other_code =
      retry->add_flag("--other-code", options.other_code,
                      "Retry only tasks that ran other code than the latest ones");
  in_selection(other_code->excludes(changed));
  in_selection(retry->add_flag("--cascade", options.cascade,
                               "Also retry skipped and out-of-date tasks that need them"));
  retry->add_flag("--fresh", options.fresh, "Start without their checkpoints, which are renamed")
      ->group("Checkpoints");
  const auto in_resources = [](CLI::Option* option) { option->group("Resources"); };
  in_resources(retry->add_option("--memory", options.memory, "Reserve at least this memory: 20GB")
                   ->type_name(value_kinds::kSize));
  in_resources(retry
                   ->add_option("--gpu-memory", options.gpu_memory,
                                "Reserve at least this memory on each GPU")
                   ->type_name(value_kinds::kSize));
  in_resources(retry->add_option("--time-limit", options.time_limit, "Time limit of an attempt: 2h")
                   ->type_name(value_kinds::kTime));
  for (const char* const amount : {"--memory", "--gpu-memory", "--time-limit"}) {
    changed->excludes(amount);
    other_code->excludes(amount);
    // An unset variable of the shell is an empty value.
    retry->get_option(amount)->check(
        [](const std::string& text) { return std::string(text.empty() ? "is empty" : ""); });
  }
  retry->add_flag("--dry-run", options.dry_run, "Show which tasks would run, and run nothing")
      ->group(option_groups::kOutput);
  retry->footer(
      std::string("Examples:\n"
                  "  trainyard retry 46\n"
                  "  trainyard retry 46 :oom --gpu-memory 20GB\n"
                  "  trainyard retry 46/lr=0.1 --time-limit 2h --cascade\n"
                  "  trainyard retry 46 --cascade\n"
                  "  trainyard retry 46 --changed\n"
                  "  trainyard retry 46 --other-code\n"
                  "  trainyard retry 46/seed=3 --fresh\n"
                  "  trainyard retry sweep.yaml --dry-run\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "Stopped and skipped tasks are retried only if you name them, or their state (46 :stopped).\n"
      "With a skipped task, also name the unfinished tasks that it needs. 'trainyard run\n"
      "--resume' runs all unfinished tasks. Finished tasks are retried only with --changed,\n"
      "--other-code or --cascade; 'trainyard run --new' runs them in another run.\n"
      "An active run retries the tasks itself. A run that has ended is resumed in this terminal,\n"
      "with these tasks alone. The tasks have all their retries again. They start with the\n"
      "requests of the job file: give --memory and --time-limit again if an earlier retry had\n"
      "them. They continue from their checkpoints unless --fresh is given. --fresh renames\n"
      "'checkpoints' in their directories to 'checkpoints.1', '.2' and so on, and deletes\n"
      "nothing.\n"
      "--changed takes tasks whose entry in the job file was edited: command, env and so on. An\n"
      "edited script does not count. --other-code takes the tasks that 'status' marks 'other "
      "code',\n"
      "which ran other code than the tasks that started last. Only files that git tracks count.\n"
      "A submission that was skipped, refused or removed before it started goes back into your\n"
      "queue, with the environment and the limits of this shell.\n"
      "--cascade also retries finished tasks that are out of date because a task that they need\n"
      "ran again. Skipped tasks that these tasks need are run first. An active run retries no\n"
      "finished task. --cascade also puts back the submissions that were skipped because of the\n"
      "run, and those that ran and are out of date: all of their tasks run again.\n"
      "Tasks named by id that are waiting, running or finished are printed as 'not retried'.\n"
      "Exit codes for an active run or a submission: 0 all accepted; 1 some refused, or no\n"
      "response in time; 2 nothing was done, or the run is suspended. For a run that\n"
      "had ended: those of 'run' for these tasks; 1 also if all of them\n"
      "succeeded and a submission was refused.");
  return retry;
}

}  // namespace

Entry retry_entry(const std::string& command_line) {
  return entry({"retry"}, add_retry, retry_command,
               app::RetryRequest{.command_line = command_line});
}

}  // namespace trainyard::cli
