// `trainyard hold`, `release` and `update`: sends requests about waiting tasks to the running yard.
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/task_requests.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/queued_runs.h"
#include "cli/selection_words.h"
#include "cli/value_kinds.h"
#include "journal/reader.h"
#include "link/control_client.h"
#include "model/priority.h"
#include "run/begun.h"
#include "wire/control.h"

namespace trainyard::cli {
namespace {

struct WishOptions {
  app::ChangeRequest request;
  std::vector<std::string> words;  ///< Run and tasks, as app/task_selection.h says; for a release
                                   ///< none: all that are on hold.
  std::string run_directory;
};

/// The time limit for an answer, which comes after the journal commit, for any number of tasks.
constexpr Duration kTakenSoon{60'000};

ExitCode wish_command(const WishOptions& options) {
  const app::ChangeRequest& request = options.request;
  Result<TasksOfRun> selection = read_selection({.words = options.words,
                                                 .run_directory = options.run_directory,
                                                 .when_several = WhenSeveral::RefuseLive,
                                                 .command = request.command()});
  if (!selection) return fail(selection.error());
  selection->needs_active = true;
  const std::string& run = selection->run;
  if (waits_in_queue(run)) {
    const bool has_tasks = run::has_begun(run).value_or(false);
    return fail(fmt::format(
        "{} is in your queue and {}: {} removes it, and 'submit --priority' sets the order",
        name_of_run(run),
        has_tasks ? "its tasks cannot be changed before it starts again"
                  : "has no tasks before it starts",
        command_for_run("kill", run)));
  }
  Result<journal::JournalReader> reader = open_run(run);
  if (!reader) return fail(reader.error());
  const Result<std::string> socket = socket_of_run(*reader, run);
  const Result<app::TasksToChange> chosen =
      app::tasks_to_change(request, *selection, *tasks_in(*reader, run), socket, run_facts());
  if (!chosen) return fail(chosen.error());
  if (!chosen->not_changed.empty()) note(chosen->not_changed);
  if (request.dry_run) return answer(names_and_what(chosen->tasks, "is selected"));
  std::vector<wire::ControlRequest> requests;
  requests.reserve(chosen->tasks.size());
  for (const journal::TaskRow& task : chosen->tasks) {
    requests.push_back(app::request_for(request, task));
  }
  const auto replies =
      link::ask_all(*socket, requests, {.run = run, .program = "trainyard", .within = kTakenSoon});
  if (!replies) return fail(replies.error(), ExitCode::TaskFailed);
  const app::ChangeOutcome outcome = app::change_outcome(request, *chosen, *replies);
  for (const std::string& error : outcome.errors) note(error);
  const ExitCode printed = answer(outcome.text);
  return outcome.code == ExitCode::Success ? printed : outcome.code;
}

std::string wrong_with_priority(const std::string& word) {
  const Result<int> priority = model::parse_priority(word);
  return priority ? std::string() : priority.error().message;
}

constexpr const char* kCodes =
    "Selected tasks that cannot be changed are printed as 'not changed'.\n"
    "Exit codes: 0 done; 1 a named task was not changed while others were; 2 nothing was done, or\n"
    "the run is suspended. Code 1 also means that the run refused or did not respond in time.";

/// Adds the options that hold, release and update share, and returns the command.
CLI::App* with_shared_words(CLI::App* command, WishOptions& options) {
  command->group(command_groups::kChange);
  command
      ->add_flag("--dry-run", options.request.dry_run,
                 "Show the selected tasks, and change nothing")
      ->group(option_groups::kOutput);
  return command;
}

CLI::App* add_hold(CLI::App& app, WishOptions& options) {
  CLI::App* const hold = app.add_subcommand("hold", "Keep waiting tasks from starting");
  add_selection(*hold, options.words, options.run_directory, kTasksNeededHelp);
  hold->footer(
      std::string("Examples:\n"
                  "  trainyard hold lr=0.1\n"
                  "  trainyard hold 46 'train/seed=*'\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "Held tasks wait until 'trainyard release', also in a resumed run. A held task that is\n"
      "skipped or killed has ended, and is no longer held.\n" +
      kCodes);
  return with_shared_words(hold, options);
}

CLI::App* add_release(CLI::App& app, WishOptions& options) {
  CLI::App* const release = app.add_subcommand("release", "Let held tasks start");
  add_selection(*release, options.words, options.run_directory,
                "Tasks or run (default: all held tasks of the latest run)");
  release->footer(std::string("Examples:\n"
                              "  trainyard release\n"
                              "  trainyard release 46/lr=0.1\n"
                              "\n") +
                  kSelectionHelp + "\n" + kCodes);
  return with_shared_words(release, options);
}

CLI::App* add_update(CLI::App& app, WishOptions& options) {
  CLI::App* const update = app.add_subcommand("update", "Change the priority of tasks");
  add_selection(*update, options.words, options.run_directory, kTasksNeededHelp);
  update
      ->add_option("--priority", options.request.priority,
                   "Priority, -1000 to 1000, larger starts first (required)")
      ->group("Priority")
      ->type_name(value_kinds::kNumber)
      ->check(wrong_with_priority)
      ->required();
  update->footer(
      std::string("Examples:\n"
                  "  trainyard update 43/lr=1e-3 --priority 10\n"
                  "  trainyard update 'seed=0' --priority -1\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "The priority counts whenever the tasks wait, also in a resumed run. A running task is not\n"
      "interrupted: its priority counts when it is retried.\n" +
      kCodes);
  return with_shared_words(update, options);
}

}  // namespace

Entry hold_entry() { return entry({"hold"}, add_hold, wish_command); }
Entry release_entry() {
  return entry({"release"}, add_release, wish_command,
               {.request = {.change = app::TaskChange::Release}});
}
Entry update_entry() {
  return entry({"update"}, add_update, wish_command,
               {.request = {.change = app::TaskChange::Priority}});
}

}  // namespace trainyard::cli
