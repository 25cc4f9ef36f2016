// `trainyard kill`: kills tasks of an active run, or removes a submission from the queue.
#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "app/task_requests.h"
#include "base/result.h"
#include "cli/console.h"
#include "cli/entry.h"
#include "cli/exit_code.h"
#include "cli/help_format.h"
#include "cli/known_runs.h"
#include "cli/queued_runs.h"
#include "cli/selection_words.h"
#include "journal/reader.h"
#include "link/control_client.h"
#include "model/status.h"
#include "run/active_run.h"
#include "run/begun.h"
#include "sys/this_process.h"
#include "wire/control.h"

namespace trainyard::cli {
namespace {

struct KillOptions {
  std::vector<std::string> words;  ///< Run and tasks, as app/task_selection.h says.
  std::string run_directory;
  bool dry_run = false;
};

/// The yard has the requests by then, and kills the tasks without this process.
[[noreturn]] void stop_waiting(int signal) {
  sys::end_at_once("trainyard: stopped waiting; the kill continues\n",
                   static_cast<int>(interrupted_by(signal)));
}

/// The task after the yard has answered: it writes down before it answers.
journal::TaskRow as_it_is_now(journal::JournalReader& reader, const journal::TaskRow& task) {
  Result<std::optional<journal::TaskRow>> now = reader.find(task.index);
  return now ? std::move(*now).value_or(task) : task;
}

/// Kills all of them; the exit code is the first error.
ExitCode end_tasks(journal::JournalReader& reader, const std::string& run,
                   const app::TasksToKill& chosen) {
  const std::vector<journal::TaskRow>& tasks = chosen.tasks;
  const Result<std::string> socket = socket_of_run(reader, run);
  if (!socket) return fail(socket.error());
  // The request may take a while, and an open read transaction keeps the yard from shortening the
  // journal's log.
  if (const Result<void> rested = reader.rest(); !rested) return fail(rested.error());
  std::vector<wire::ControlRequest> requests;
  requests.reserve(tasks.size());
  for (const journal::TaskRow& task : tasks) {
    requests.emplace_back(wire::Kill{.group = task.group_name, .id = task.id});
  }
  const auto on_all_sent = [&tasks] {
    std::signal(SIGINT, stop_waiting);
    if (const std::string text = app::kill_wait_note(tasks); !text.empty()) note(text);
  };
  const auto replies = link::ask_all(*socket, requests,
                                     {.run = run,
                                      .program = "trainyard kill",
                                      .within = app::kill_wait_max(tasks),
                                      .on_all_sent = on_all_sent});
  std::signal(SIGINT, SIG_DFL);
  if (!replies) return fail(replies.error(), ExitCode::TaskFailed);
  if (const Result<void> fresh = reader.refresh(); !fresh) return fail(fresh.error());
  ExitCode code = ExitCode::Success;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const app::KillOutcome outcome =
        app::kill_outcome((*replies)[i], tasks[i], as_it_is_now(reader, tasks[i]),
                          chosen.named.contains(tasks[i].index));
    const ExitCode told =
        outcome.code == ExitCode::Success ? answer(outcome.text) : fail(outcome.text, outcome.code);
    if (code == ExitCode::Success) code = told;
  }
  return code;
}

/// Whether `kill` would remove the whole submission, since none of its tasks is running.
bool is_removed_from_queue(const std::string& run) {
  return waits_in_queue(run) || (goes_on_in_queue(run) && !run::active_process(run));
}

/// For a dry run: the tasks that would be killed. A task that was named must not have ended.
ExitCode show_tasks(std::vector<journal::TaskRow> tasks) {
  ExitCode code = ExitCode::Success;
  std::erase_if(tasks, [&code](const journal::TaskRow& task) {
    if (task.standing.verdict == model::Verdict::None) return false;
    code = fail(app::kill_refusal(task), ExitCode::TaskFailed);
    return true;
  });
  const ExitCode answered = answer(names_and_what(tasks, "is selected"));
  return code == ExitCode::Success ? answered : code;
}

ExitCode kill_command(const KillOptions& options) {
  const std::string command = options.dry_run ? "kill --dry-run" : "kill";
  Result<TasksOfRun> selection = read_selection({.words = options.words,
                                                 .run_directory = options.run_directory,
                                                 .when_several = WhenSeveral::RefuseLive,
                                                 .command = command});
  if (!selection) return fail(selection.error());
  selection->needs_active = true;
  // Without its name, a run is not meant as a whole.
  const bool means_all = app::means_whole_run(*selection, !selection->named.empty());
  if (!means_all && goes_on_in_queue(selection->run) && !run::active_process(selection->run)) {
    const bool has_tasks = run::has_begun(selection->run).value_or(false);
    return fail(fmt::format("{} is in your queue and {}: {} removes the whole run",
                            name_of_run(selection->run),
                            has_tasks ? "none of its tasks is running" : "has no tasks yet",
                            command_for_run("kill", selection->run)));
  }
  if (options.dry_run && means_all && is_removed_from_queue(selection->run)) {
    return answer(name_of_run(selection->run) + " would be removed from your queue\n");
  }
  if (const auto taken = means_all ? take_out_of_queue(selection->run) : std::nullopt) {
    return answer(*taken);
  }
  Result<journal::JournalReader> reader = open_run(selection->run);
  if (!reader) return fail(reader.error());
  Result<std::vector<journal::TaskRow>> tasks =
      selected_tasks(*reader, *selection, SameName::Refuse);
  if (!tasks) return fail(tasks.error());
  if (tasks->empty()) return fail(none_in_state(*selection));
  if (names_no_task(*selection, tasks->size())) {
    const Result<std::string> socket = socket_of_run(*reader, selection->run);
    if (!socket) return fail(socket.error());
    return fail(fmt::format("which tasks of '{}'? {}", selection->shown,
                            how_to_name_all(command, *selection)));
  }
  app::TasksToKill chosen = app::tasks_to_kill(*selection, *std::move(tasks));
  if (options.dry_run) return show_tasks(std::move(chosen.tasks));
  return end_tasks(*reader, selection->run, chosen);
}

CLI::App* add_kill(CLI::App& app, KillOptions& options) {
  CLI::App* kill = app.add_subcommand("kill", "Kill tasks of a run, and skip tasks that need them");
  kill->alias("cancel")->group(command_groups::kChange);
  add_selection(*kill, options.words, options.run_directory, kTasksNeededHelp);
  kill->add_flag("--dry-run", options.dry_run, "Show the selected tasks, and kill nothing")
      ->group(option_groups::kOutput);
  kill->footer(
      std::string("Examples:\n"
                  "  trainyard kill train/lr=0.1,seed=2\n"
                  "  trainyard kill 46/lr=0.1\n"
                  "  trainyard kill 46 'seed=*' :waiting\n"
                  "\n") +
      kSelectionHelp +
      "\n"
      "'kill 46/train' kills all tasks of the group 'train'.\n"
      "A running task gets SIGTERM, then SIGKILL after 10 s. With 'signal: USR1@120' it gets "
      "SIGUSR1\n"
      "120 s before SIGTERM. The command waits until the task has ended: up to 30 s, plus the\n"
      "time of 'signal'.\n"
      "Ctrl-C stops only the waiting.\n"
      "A killed task counts as failed; 'retry' and 'run --resume' run it again. A task without an\n"
      "attempt is SKIPPED: 'run --resume' runs it, and 'retry' only if it is named. Other tasks "
      "continue. With\n"
      "'fail-fast: true', the rest of its group is killed or skipped, unless the task was "
      "WAITING.\n"
      "Exit codes: 0 done; 1 partly done; 2 nothing done, or the run is suspended; 130 Ctrl-C. A\n"
      "code of 1 also means that all selected tasks of an active run had already ended, or that\n"
      "the run did not respond in time.");
  return kill;
}

}  // namespace

Entry kill_entry() { return entry({"kill", "cancel"}, add_kill, kill_command); }

}  // namespace trainyard::cli
