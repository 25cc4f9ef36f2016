// `trainyard hold`, `release` and `update`: sends requests about waiting tasks to the running yard.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

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
#include "model/ids.h"
#include "model/priority.h"
#include "model/status.h"
#include "report/task_state.h"
#include "run/begun.h"
#include "wire/control.h"

namespace trainyard::cli {
namespace {

/// A user's request about waiting tasks of an active run.
struct WishOptions {
  enum class What : std::uint8_t { Hold, Release, Priority };
  What what = What::Hold;
  std::vector<std::string> words;  ///< Run and tasks, as app/task_selection.h says; for Release
                                   ///< none: all that are on hold.
  std::string run_directory;
  int priority = 0;
  bool dry_run = false;
};

using What = WishOptions::What;

/// The time limit for an answer, which comes after the journal commit, for any number of tasks.
constexpr Duration kTakenSoon{60'000};

wire::ControlRequest request_for(const WishOptions& options, const journal::TaskRow& task) {
  if (options.what == What::Priority) {
    return wire::SetPriority{.group = task.group_name, .id = task.id, .priority = options.priority};
  }
  return wire::Hold{.group = task.group_name, .id = task.id, .hold = options.what == What::Hold};
}

std::string done_text(const WishOptions& options) {
  switch (options.what) {
    case What::Hold:
      return "on hold";
    case What::Release:
      return "may start";
    case What::Priority:
      break;
  }
  return fmt::format("has priority {}", options.priority);
}

/// "update --priority 5": the words before the tasks.
std::string words_before_tasks(const WishOptions& options) {
  const std::string command = options.what == What::Hold ? "hold"
                              : options.what == What::Release
                                  ? "release"
                                  : fmt::format("update --priority {}", options.priority);
  return options.dry_run ? command + " --dry-run" : command;
}

/// Whether the request can be met for the task, as far as the journal knows.
bool may_be_done(const WishOptions& options, const journal::TaskRow& task) {
  if (task.standing.verdict != model::Verdict::None) return false;
  switch (options.what) {
    case What::Hold:
      return report::is_in(task.standing, report::TaskState::Waiting) ||
             report::is_in(task.standing, report::TaskState::Retrying);
    case What::Release:
      return report::is_in(task.standing, report::TaskState::OnHold);
    case What::Priority:
      break;
  }
  return true;
}

bool is_held_already(const WishOptions& options, const journal::TaskRow& task) {
  return options.what == What::Hold && report::is_in(task.standing, report::TaskState::OnHold);
}

Error cannot_be_done(const WishOptions& options, const journal::TaskRow& task) {
  if (is_held_already(options, task)) {
    return Error{fmt::format("{} is on hold already", shown_name(task))};
  }
  const std::string_view why = options.what == What::Hold ? "only waiting tasks can be put on hold"
                               : options.what == What::Release
                                   ? "only tasks on hold can be released"
                                   : "only waiting and running tasks have a priority";
  return Error{fmt::format("{} is {}: {}", shown_name(task), model::word_for(task.standing), why)};
}

struct Wished {
  std::string run;
  std::string socket;
  std::vector<journal::TaskRow> tasks;
  std::string passed_over;  ///< Selected tasks that cannot be changed, for users; may be empty.
  bool names_one_of_them = false;  ///< By its id, and not by a pattern or a state.
};

/// Takes those out to which it cannot be done, and names the first of them.
std::string pass_over(const WishOptions& options, std::vector<journal::TaskRow>& tasks) {
  const auto cannot_change = [&options](const journal::TaskRow& task) {
    return !may_be_done(options, task);
  };
  std::vector<journal::TaskRow> unchanged;
  std::ranges::copy_if(tasks, std::back_inserter(unchanged), cannot_change);
  std::erase_if(tasks, cannot_change);
  return unchanged.empty() ? "" : "not changed: " + names_and_words(unchanged);
}

Result<Wished> look_up_wished(const WishOptions& options) {
  Result<TasksOfRun> selection = read_selection({.words = options.words,
                                                 .run_directory = options.run_directory,
                                                 .when_several = WhenSeveral::RefuseLive,
                                                 .command = words_before_tasks(options)});
  if (!selection) return std::unexpected(std::move(selection.error()));
  selection->needs_active = true;
  if (waits_in_queue(selection->run)) {
    const bool has_tasks = run::has_begun(selection->run).value_or(false);
    return std::unexpected(Error{fmt::format(
        "{} is in your queue and {}: {} removes it, and 'submit --priority' sets the order",
        name_of_run(selection->run),
        has_tasks ? "its tasks cannot be changed before it starts again"
                  : "has no tasks before it starts",
        command_for_run("kill", selection->run))});
  }
  const bool none_named = selection->is_all();
  if (none_named && options.what == What::Release) selection->states = {report::TaskState::OnHold};
  Result<journal::JournalReader> reader = open_run(selection->run);
  if (!reader) return std::unexpected(std::move(reader.error()));
  Result<std::vector<journal::TaskRow>> tasks =
      selected_tasks(*reader, *selection, SameName::Refuse);
  if (!tasks) return std::unexpected(std::move(tasks.error()));
  Result<std::string> socket = socket_of_run(*reader, selection->run);
  if (!socket) return std::unexpected(std::move(socket.error()));
  if (names_no_task(*selection, tasks->size()) && options.what != What::Release) {
    return std::unexpected(
        Error{fmt::format("which tasks of '{}'? {}", selection->shown,
                          how_to_name_all(words_before_tasks(options), *selection))});
  }
  if (tasks->empty() && none_named) {
    return std::unexpected(Error{fmt::format("no task of '{}' is on hold", selection->shown)});
  }
  if (tasks->empty()) return std::unexpected(Error{none_in_state(*selection)});
  if (tasks->size() == 1 && !may_be_done(options, tasks->front())) {
    return std::unexpected(cannot_be_done(options, tasks->front()));
  }
  const std::set<model::TaskIndex> named = named_tasks(*selection, *tasks);
  const bool names_one = std::ranges::any_of(*tasks, [&](const journal::TaskRow& task) {
    return named.contains(task.index) && !may_be_done(options, task);
  });
  const bool all_held = std::ranges::all_of(
      *tasks, [&options](const journal::TaskRow& task) { return is_held_already(options, task); });
  std::string passed_over = pass_over(options, *tasks);
  if (all_held) {
    return std::unexpected(
        Error{fmt::format("all of these tasks of '{}' are on hold already", selection->shown)});
  }
  if (tasks->empty()) {
    return std::unexpected(
        Error{fmt::format("no selected task of '{}' {}; {}", selection->shown,
                          options.what == What::Hold      ? "is waiting"
                          : options.what == What::Release ? "is on hold"
                                                          : "can be changed: all have ended",
                          passed_over)});
  }
  return Wished{.run = selection->run,
                .socket = std::move(*socket),
                .tasks = std::move(*tasks),
                .passed_over = std::move(passed_over),
                .names_one_of_them = names_one};
}

ExitCode wish_command(const WishOptions& options) {
  const Result<Wished> wished = look_up_wished(options);
  if (!wished) return fail(wished.error());
  if (!wished->passed_over.empty()) fail(wished->passed_over);
  if (options.dry_run) return answer(names_and_what(wished->tasks, "is selected"));
  std::vector<wire::ControlRequest> requests;
  requests.reserve(wished->tasks.size());
  for (const journal::TaskRow& task : wished->tasks) {
    requests.push_back(request_for(options, task));
  }
  const auto replies = link::ask_all(
      wished->socket, requests, {.run = wished->run, .program = "trainyard", .within = kTakenSoon});
  if (!replies) return fail(replies.error(), ExitCode::TaskFailed);
  std::vector<journal::TaskRow> done;
  std::vector<journal::TaskRow> done_for_retry;  // A priority counts when these are retried.
  ExitCode code = wished->names_one_of_them ? ExitCode::TaskFailed : ExitCode::Success;
  for (std::size_t i = 0; i < wished->tasks.size(); ++i) {
    const journal::TaskRow& task = wished->tasks[i];
    const wire::ControlReply& reply = (*replies)[i];
    if (reply.outcome == wire::Outcome::Done) {
      const bool runs = report::is_in(task.standing, report::TaskState::Running);
      (options.what == What::Priority && runs ? done_for_retry : done).push_back(task);
      continue;
    }
    code = fail(reply.outcome == wire::Outcome::Error
                    ? reply.text
                    : fmt::format("{} has started or ended meanwhile", shown_name(task)),
                ExitCode::TaskFailed);
  }
  std::string text;
  if (!done_for_retry.empty()) {
    text = names_and_what(done_for_retry, done_text(options) + ", which counts when it is retried");
  }
  if (text.empty() || !done.empty()) text += names_and_what(done, done_text(options));
  const ExitCode printed = answer(text);
  return code == ExitCode::Success ? printed : code;
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
  command->add_flag("--dry-run", options.dry_run, "Show the selected tasks, and change nothing")
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
      ->add_option("--priority", options.priority,
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

Entry hold_entry() { return entry({"hold"}, add_hold, wish_command, {.what = What::Hold}); }
Entry release_entry() {
  return entry({"release"}, add_release, wish_command, {.what = What::Release});
}
Entry update_entry() {
  return entry({"update"}, add_update, wish_command, {.what = What::Priority});
}

}  // namespace trainyard::cli
