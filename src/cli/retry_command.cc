// `trainyard retry`: retries tasks that have ended without having finished. Runs that ended before
// they began are retried by cli/queue_return.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "cli/checked_job.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/job_tasks.h"
#include "cli/known_runs.h"
#include "cli/look_ahead.h"
#include "cli/new_run.h"
#include "cli/queue_return.h"
#include "cli/queued_runs.h"
#include "cli/retry_amounts.h"
#include "cli/retry_needs.h"
#include "cli/run_machines.h"
#include "cli/run_outcome.h"
#include "hardware/this_machine.h"
#include "job/job.h"
#include "journal/journal.h"
#include "journal/reader.h"
#include "link/control_client.h"
#include "model/ids.h"
#include "model/status.h"
#include "report/digest.h"
#include "report/task_state.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"
#include "sys/files.h"
#include "sys/terminal.h"
#include "text/mistake.h"
#include "text/shell_quote.h"
#include "text/task_pattern.h"
#include "wire/control.h"

namespace trainyard::cli {
namespace {

/// The time limit for an answer, which comes after the journal commit, for any number of tasks.
constexpr Duration kAnsweredSoon{60'000};
constexpr std::size_t kShownMax = 20;

/// The tasks to retry, and with what. Without tasks, `submissions` alone are put back.
struct Wanted {
  std::string run;
  bool lives = false;
  std::string socket;  ///< The socket of an active run.
  std::vector<journal::TaskRow> tasks;
  RequestedAmounts amounts;
  /// The reason why tasks that may have finished run again: ", and changed since". Empty: they have
  /// not finished, or tasks that they need run again.
  std::string_view reason = {};
  QueueReturn submissions = {};  ///< The submissions behind the run that go back.
  /// Selected tasks that are not retried, as far as a word names them by their id.
  std::vector<journal::TaskRow> not_retried = {};
};

std::string count_of(std::size_t tasks) {
  return report::counted(static_cast<std::int64_t>(tasks), "task");
}

/// "2 tasks failed: train/lr=1 (EXIT 3), train/lr=2 (TIMEOUT)", of all tasks of the run.
std::string what_failed(journal::JournalReader& reader, const TasksOfRun& selection) {
  constexpr std::size_t kNamedMax = 3;
  const TasksOfRun all_failed{{.run = selection.run}, {}, {report::TaskState::Failed}};
  const auto failed = selected_tasks(reader, all_failed, SameName::MeansAll);
  if (!failed) return failed.error().message;
  if (failed->empty()) return "no task failed";
  std::string text = count_of(failed->size()) + " failed: ";
  for (std::size_t i = 0; i < std::min(failed->size(), kNamedMax); ++i) {
    const journal::TaskRow& task = failed->at(i);
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", report::plain(shown_name(task)),
                        model::word_for(task.standing));
  }
  if (failed->size() > kNamedMax) text += fmt::format(" and {} more", failed->size() - kNamedMax);
  return text;
}

/// Says that no selected task is in the requested state, which tasks of the run failed, and how a
/// run that is out of date runs with the new results.
Error no_task_in_state(journal::JournalReader& reader, const TasksOfRun& selection) {
  const std::vector<std::uint32_t> again = needs_run_again(selection.run);
  std::string out_of_date;
  if (!again.empty()) {
    const std::string cure = how_runs_again(selection.run);
    out_of_date = "; " + report::needs_run_again_text("this run", again, cure);
  }
  const bool only_failed = selection.patterns.empty() && selection.states.size() == 1 &&
                           selection.states.front() == report::TaskState::Failed;
  if (only_failed) {
    return {fmt::format("nothing to retry: no task of {} failed{}", name_of_run(selection.run),
                        out_of_date)};
  }
  const std::optional<std::uint32_t> number = number_of_run(selection.run);
  return {fmt::format("nothing to retry{}: {}; {}{}",
                      number ? fmt::format(" in run {}", *number) : std::string(),
                      none_in_state(selection), what_failed(reader, selection), out_of_date)};
}

/// "; 'trainyard run sweep.yaml --new' runs all tasks ..., in another run": where no command line
/// starts the run again, nothing.
std::string in_another_run(const std::optional<NewRun>& again, std::string_view which) {
  if (!again) return {};
  if (again->is_of_command) {
    return fmt::format("; to run its command again, in another run, type\n  {}", again->command);
  }
  return fmt::format("; {} {}, in another run", text::quoted_command(again->command), which);
}

constexpr std::string_view kRunsAllTasks = "runs all tasks with the code as it is now";

/// Says why nothing is retried, and how the tasks that were stopped or skipped run: by a retry that
/// names their states where the run is active or an amount was typed, else by a resume, which a run
/// of the queue gets from 'up'. If a run that has ended has no such tasks, says how all run again.
Error no_failed_task(journal::JournalReader& reader, const TasksOfRun& selection,
                     const RetryOptions& options, const Wanted& wanted) {
  std::string text = no_task_in_state(reader, selection).message;
  const Result<std::vector<journal::GroupRow>> groups = reader.groups();
  if (!groups) return Error{std::move(text)};
  int stopped = 0;
  int skipped = 0;
  for (const journal::GroupRow& group : *groups) {
    stopped += group.stopped;
    skipped += group.skipped;
  }
  const int left = stopped + skipped;
  if (left == 0) {
    const bool is_done = !wanted.lives && needs_run_again(selection.run).empty();
    if (is_done) text += in_another_run(new_run_of(reader, selection.run), kRunsAllTasks);
    return Error{std::move(text)};
  }
  const std::string run = text::shell_word(seen_from_here(selection.run));
  const std::string amounts = typed_amounts(options);
  std::string command =
      how_queue_resumes(selection.run).empty() ? "trainyard run --resume " + run : "trainyard up";
  if (wanted.lives || !amounts.empty()) {
    command = fmt::format("trainyard retry {}{}{}{}", run, stopped > 0 ? " :stopped" : "",
                          skipped > 0 ? " :skipped" : "", amounts);
  }
  const std::string_view state = skipped == 0   ? "STOPPED"
                                 : stopped == 0 ? "SKIPPED"
                                                : "STOPPED or SKIPPED";
  return Error{fmt::format("{}; {} {} {}: {} runs {}", text, report::counted(left, "task"),
                           left == 1 ? "is" : "are", state, text::quoted_command(command),
                           left == 1 ? "it" : "them")};
}

app::RunRequest resume_of(const std::string& run) {
  return {.job = app::JobOfRun{}, .place = app::RunInDirectory{run}};
}

/// The options and the job with which a run that has ended would resume.
struct EndedRun {
  RunOptions options;
  job::Job job;
};

Result<EndedRun> read_ended(const std::string& run) {
  Result<RunOptions> options = fill_in({.request = resume_of(run), .dry_run = true});
  if (!options) return std::unexpected(std::move(options.error()));
  const Result<job::LoadOptions> load = load_options_of(*options);
  if (!load) return std::unexpected(load.error());
  std::expected<job::Job, text::Mistakes> job =
      job::Job::load(*load, hardware::find_this_machine().reading.capacity);
  if (!job) return std::unexpected(Error{text_of(job.error())});
  return EndedRun{.options = *std::move(options), .job = *std::move(job)};
}

/// The amounts as far as the tasks can have them. An active run knows its machines and answers by
/// itself, unless it is not asked, and nothing is known about other machines before the run resumes.
/// Other obstacles to resuming are reported when the run resumes.
Result<RequestedAmounts> fitted_amounts(const Wanted& wanted, bool asks_active_run) {
  const wire::Retry& with = wanted.amounts.with;
  const bool answers_itself = wanted.lives && asks_active_run;
  if (answers_itself || (with.memory_bytes == 0 && with.gpu_memory_bytes == 0)) {
    return wanted.amounts;
  }
  Result<EndedRun> ended = read_ended(wanted.run);
  if (!ended || !runs_only_here(ended->job.configuration())) return wanted.amounts;
  JobTasks tasks(std::move(ended->job));
  if (!add_submitted(tasks, wanted.run)) return wanted.amounts;
  return fitted(wanted.amounts, wanted.tasks, tasks.jobs());
}

/// Row numbers of the tasks of an ended run that have changed in its job file.
Result<std::set<std::uint32_t>> changed_since(const std::string& run) {
  Result<EndedRun> ended = read_ended(run);
  if (!ended) return std::unexpected(std::move(ended.error()));
  JobTasks tasks(std::move(ended->job));
  Result<std::optional<journal::Journal::Preview>> ahead = look_ahead(ended->options, tasks);
  if (!ahead) return std::unexpected(std::move(ahead.error()));
  std::optional<journal::Journal::Preview>& found = *ahead;
  return found ? std::move(found->edited) : std::set<std::uint32_t>();
}

bool is_finished(const journal::TaskRow& task) {
  return task.standing.verdict == model::Verdict::Finished;
}

/// Names the command that runs finished tasks again, which a plain retry does not: `--changed` if
/// one was edited in the job file, `--other-code` if one ran other code, else another run, of all
/// tasks or `only` those of these patterns. Empty if no task has finished, for selected tasks that
/// were added to the run, and for runs that no command line starts again.
std::string cure_for_finished(journal::JournalReader& reader, const Wanted& wanted,
                              const std::vector<std::string>& only = {}) {
  if (std::ranges::none_of(wanted.tasks, is_finished)) return {};
  const std::string run = text::shell_word(seen_from_here(wanted.run));
  const Result<std::set<std::uint32_t>> changed =
      wanted.lives ? std::set<std::uint32_t>() : changed_since(wanted.run);
  const auto has_changed = [&changed](const journal::TaskRow& task) {
    return changed->contains(task.index.value);
  };
  if (changed && std::ranges::any_of(wanted.tasks, has_changed)) {
    return fmt::format("; {} retries the tasks that were edited in the job file",
                       text::quoted_command(fmt::format("trainyard retry {} --changed", run)));
  }
  const auto ran_other_code = [](const journal::TaskRow& task) {
    return is_finished(task) && !task.newer_code.empty();
  };
  if (!wanted.lives && std::ranges::any_of(wanted.tasks, ran_other_code)) {
    return fmt::format(
        "; {} retries the tasks that ran other code than the tasks that started last",
        text::quoted_command(fmt::format("trainyard retry {} --other-code", run)));
  }
  // A submission or a later round has tasks that `run --only` does not find in the job file.
  const auto was_added = [](const journal::TaskRow& task) { return task.batch > 1; };
  if (!only.empty() && std::ranges::any_of(wanted.tasks, was_added)) return {};
  std::string_view which = "runs these tasks again";
  if (only.empty()) which = kRunsAllTasks;
  if (wanted.tasks.size() == 1 && !only.empty()) which = "runs it again";
  return in_another_run(new_run_of(reader, wanted.run, only), which);
}

/// Keeps only those that were changed since they ended.
Result<void> keep_changed(journal::JournalReader& reader, Wanted& wanted) {
  if (wanted.lives) {
    return std::unexpected(
        Error{fmt::format("the run in '{}' is active with its original job file: --changed works "
                          "only after a run has ended",
                          seen_from_here(wanted.run))});
  }
  const Result<std::set<std::uint32_t>> changed = changed_since(wanted.run);
  if (!changed) return std::unexpected(changed.error());
  const auto stays = [&changed](const journal::TaskRow& task) {
    return task.standing.verdict == model::Verdict::None || !changed->contains(task.index.value);
  };
  if (std::ranges::all_of(wanted.tasks, stays)) {
    return std::unexpected(
        Error{fmt::format("none of the selected tasks of '{}' has changed in the job file{}",
                          seen_from_here(wanted.run), cure_for_finished(reader, wanted))});
  }
  std::erase_if(wanted.tasks, stays);
  return {};
}

/// Keeps only those that have ended and ran other code than the tasks that started last.
Result<void> keep_other_code(journal::JournalReader& reader, Wanted& wanted) {
  if (wanted.lives) {
    return std::unexpected(Error{
        fmt::format("the run in '{}' is active: --other-code works only after a run has ended",
                    seen_from_here(wanted.run))});
  }
  const auto stays = [](const journal::TaskRow& task) {
    return task.standing.verdict == model::Verdict::None || task.newer_code.empty();
  };
  if (std::ranges::all_of(wanted.tasks, stays)) {
    const bool is_known = std::ranges::any_of(
        wanted.tasks, [](const journal::TaskRow& task) { return !task.code.empty(); });
    const std::string run = seen_from_here(wanted.run);
    std::string why = fmt::format(
        "the code of the selected tasks of '{}' is not known: tasks must run in a git work tree",
        run);
    if (is_known) {
      why = fmt::format(
          "none of the selected tasks of '{}' ran other code than the tasks that started last",
          run);
    }
    return std::unexpected(Error{why + cure_for_finished(reader, wanted)});
  }
  std::erase_if(wanted.tasks, stays);
  return {};
}

bool may_be_tried(const journal::TaskRow& task) {
  return task.standing.verdict != model::Verdict::None &&
         task.standing.verdict != model::Verdict::Finished;
}

/// The reason why the only selected task cannot be retried.
Error cannot_be_tried(journal::JournalReader& reader, const Wanted& wanted) {
  const journal::TaskRow& task = wanted.tasks.front();
  const std::string name = shown_name(task);
  if (!is_finished(task)) {
    return Error{fmt::format("{} is {}: only tasks that have ended are retried", name,
                             model::word_for(task.standing))};
  }
  return Error{fmt::format("{} has finished: only tasks that have not finished are retried{}", name,
                           cure_for_finished(reader, wanted, {name}))};
}

Result<void> keep_unfinished(journal::JournalReader& reader, Wanted& wanted,
                             const TasksOfRun& selection) {
  if (wanted.tasks.size() == 1 && !may_be_tried(wanted.tasks.front())) {
    return std::unexpected(cannot_be_tried(reader, wanted));
  }
  if (std::ranges::none_of(wanted.tasks, may_be_tried)) {
    std::vector<std::string> only;
    for (const text::TaskPattern& pattern : selection.patterns) only.push_back(pattern.text());
    return std::unexpected(Error{fmt::format(
        "no selected task of '{}' can be retried: each has finished, or is still running or "
        "waiting{}",
        seen_from_here(wanted.run), cure_for_finished(reader, wanted, only))});
  }
  std::erase_if(wanted.tasks, [](const journal::TaskRow& task) { return !may_be_tried(task); });
  return {};
}

/// A run whose yard died must resume as a whole before any of its tasks is retried.
Result<void> check_ended(journal::JournalReader& reader, const std::string& run) {
  const Result<std::vector<journal::ExecutionRow>> executions = reader.executions();
  if (!executions) return std::unexpected(executions.error());
  if (!executions->empty() && executions->back().ended) return {};
  const std::string seen = seen_from_here(run);
  return std::unexpected(Error{
      fmt::format("the run in '{}' died: {} resumes it and runs all tasks that have not finished",
                  seen, text::quoted_command("trainyard run --resume " + text::shell_word(seen)))});
}

/// The tasks of a run that a cascade retries because they are out of date. Of a run that is out of
/// date itself these are all that did not fail.
Result<std::vector<journal::TaskRow>> out_of_date_tasks(journal::JournalReader& reader,
                                                        const RetryNeeds& needs,
                                                        const std::string& run) {
  if (needs_run_again(run).empty()) return needs.out_of_date();
  std::vector<journal::TaskRow> rows;
  const Result<void> read = reader.tasks({}, [&rows](journal::TaskRow task) {
    const model::Verdict verdict = task.standing.verdict;
    task.out_of_date = verdict == model::Verdict::Finished;
    const bool runs_again = task.out_of_date || verdict == model::Verdict::Skipped ||
                            verdict == model::Verdict::Stopped;
    if (runs_again) rows.push_back(std::move(task));
    return true;
  });
  if (!read) return std::unexpected(read.error());
  return rows;
}

/// Whether submissions that need the run may begin: it has succeeded, or still may.
bool may_have_succeeded(const Wanted& wanted) {
  if (wanted.lives) return true;
  const Result<RunOutcome> outcome = outcome_of(wanted.run);
  return outcome && outcome->code == ExitCode::Success;
}

/// With `queued`, the queue retries the run and knows the submissions behind it.
Result<Wanted> look_up(const RetryOptions& options, bool queued, RequestedAmounts amounts,
                       TasksOfRun selection) {
  const bool all_failed = selection.is_all() && !options.changed && !options.other_code;
  if (all_failed) selection.states = {report::TaskState::Failed};
  Wanted wanted{.run = selection.run,
                .socket = {},
                .tasks = {},
                .amounts = std::move(amounts),
                .reason = options.changed      ? ", and changed since"
                          : options.other_code ? ", and ran other code"
                                               : ""};
  Result<journal::JournalReader> reader = open_run(wanted.run);
  if (!reader) return std::unexpected(std::move(reader.error()));
  wanted.lives = sys::RunLock::holder(wanted.run).has_value();
  if (wanted.lives) {
    Result<std::string> socket = socket_of_run(*reader, wanted.run);
    if (!socket) return std::unexpected(std::move(socket.error()));
    wanted.socket = std::move(*socket);
  } else if (Result<void> ended = check_ended(*reader, wanted.run); !ended) {
    return std::unexpected(std::move(ended.error()));
  }
  Result<std::vector<journal::TaskRow>> tasks =
      selected_tasks(*reader, selection, SameName::Refuse);
  if (!tasks) return std::unexpected(std::move(tasks.error()));
  Result<RetryNeeds> needs = RetryNeeds::read(*reader);
  if (!needs) return std::unexpected(std::move(needs.error()));
  // An active run only retries tasks that have not finished.
  const bool takes_finished = options.cascade && !wanted.lives;
  Result<std::vector<journal::TaskRow>> out_of_date;
  if (takes_finished && all_failed) {
    out_of_date = out_of_date_tasks(*reader, *needs, wanted.run);
    if (!out_of_date) return std::unexpected(std::move(out_of_date.error()));
  }
  const bool runs_none = tasks->empty() && out_of_date->empty();
  if (options.cascade && !queued) {
    Result<QueueReturn> behind = QueueReturn::behind(
        wanted.run, runs_none ? QueueReturn::Takes::OutOfDate : QueueReturn::Takes::Begun);
    if (!behind) return std::unexpected(std::move(behind.error()));
    wanted.submissions = std::move(*behind);
  }
  if (runs_none) {
    const bool puts_back = all_failed && !wanted.submissions.is_empty();
    if (puts_back && may_have_succeeded(wanted)) return wanted;
    return std::unexpected(all_failed ? no_failed_task(*reader, selection, options, wanted)
                                      : no_task_in_state(*reader, selection));
  }
  wanted.tasks = std::move(*tasks);
  // --changed and --other-code are there to leave tasks out.
  if (!options.changed && !options.other_code) {
    const std::set<model::TaskIndex> named = named_tasks(selection, wanted.tasks);
    std::ranges::copy_if(
        wanted.tasks, std::back_inserter(wanted.not_retried),
        [&named](const journal::TaskRow& task) { return named.contains(task.index); });
  }
  if (!wanted.tasks.empty()) {
    const Result<void> kept = options.changed      ? keep_changed(*reader, wanted)
                              : options.other_code ? keep_other_code(*reader, wanted)
                                                   : keep_unfinished(*reader, wanted, selection);
    if (!kept) return std::unexpected(kept.error());
  }
  wanted.tasks.insert(wanted.tasks.end(), out_of_date->begin(), out_of_date->end());
  Result<RequestedAmounts> amounts_used =
      note_unused_gpu_memory(std::move(wanted.amounts), wanted.tasks);
  if (!amounts_used) return std::unexpected(std::move(amounts_used.error()));
  wanted.amounts = std::move(*amounts_used);
  if (options.cascade) needs->add_cascade(wanted.tasks);
  needs->put_needed_first(wanted.tasks);
  if (wanted.lives) std::erase_if(wanted.tasks, is_finished);
  std::erase_if(wanted.not_retried, [&wanted](const journal::TaskRow& task) {
    return std::ranges::find(wanted.tasks, task.index, &journal::TaskRow::index) !=
           wanted.tasks.end();
  });
  if (Result<void> all = needs->check(wanted.tasks, text::shell_word(seen_from_here(wanted.run)));
      !all) {
    return std::unexpected(std::move(all.error()));
  }
  Result<RequestedAmounts> amounts_left = fitted_amounts(wanted, !options.dry_run);
  if (!amounts_left) return std::unexpected(std::move(amounts_left.error()));
  wanted.amounts = std::move(*amounts_left);
  return wanted;
}

/// The reason why a task runs again, if that is not its failure.
std::string_view why_again(const journal::TaskRow& task, const Wanted& wanted) {
  if (!wanted.reason.empty()) return wanted.reason;
  if (!is_finished(task)) return "";
  return task.out_of_date ? ", and out of date" : ", and needs one of these";
}

/// Lists the tasks that will be retried; printed before anything is done.
std::string shown(const Wanted& wanted) {
  if (wanted.tasks.empty()) return {};
  std::string text = fmt::format("{} of '{}'{}:\n", count_of(wanted.tasks.size()),
                                 seen_from_here(wanted.run), with_text(wanted.amounts.with));
  for (std::size_t i = 0; i < std::min(wanted.tasks.size(), kShownMax); ++i) {
    const journal::TaskRow& task = wanted.tasks[i];
    text += fmt::format("  {}: {} after {}{}\n", report::plain(shown_name(task)),
                        model::word_for(task.standing), report::counted(task.attempt, "attempt"),
                        why_again(task, wanted));
  }
  if (wanted.tasks.size() > kShownMax) {
    text += fmt::format("  and {} more\n", wanted.tasks.size() - kShownMax);
  }
  return text;
}

/// None where all have finished, and run again for a reason: the run begins with them by itself.
std::vector<wire::Retry> requests_for(const Wanted& wanted) {
  std::vector<wire::Retry> retries;
  if (!wanted.reason.empty() && std::ranges::all_of(wanted.tasks, is_finished)) return retries;
  retries.reserve(wanted.tasks.size());
  for (const journal::TaskRow& task : wanted.tasks) {
    wire::Retry retry = wanted.amounts.with;
    retry.group = task.group_name;
    retry.id = task.id;
    retries.push_back(std::move(retry));
  }
  return retries;
}

std::set<std::uint32_t> retried_rows_of(const Wanted& wanted) {
  std::set<std::uint32_t> rows;
  for (const journal::TaskRow& task : wanted.tasks) {
    if (!is_finished(task)) rows.insert(task.index.value);
  }
  return rows;
}

std::vector<RunOptions::Rerun> reruns_for(const Wanted& wanted) {
  std::vector<RunOptions::Rerun> reruns;
  for (const journal::TaskRow& task : wanted.tasks) {
    if (!is_finished(task)) continue;
    reruns.push_back({.task = task.index, .group = task.group_name, .id = task.id});
  }
  return reruns;
}

ExitCode tell_refused(const std::string& run, const journal::TaskRow& task,
                      const wire::ControlReply& reply) {
  const std::string name = shown_name(task);
  switch (reply.outcome) {
    case wire::Outcome::Done:
      return ExitCode::Success;
    case wire::Outcome::NotRunning:
      return fail(
          fmt::format("{} is not retried: it has started over already, its group or the run "
                      "is ending, or a task that it needs has failed; to retry that, too, "
                      "type: trainyard retry {} --cascade",
                      name, text::shell_word(seen_from_here(run))),
          ExitCode::TaskFailed);
    case wire::Outcome::NoSuchTask:
      return fail(fmt::format("the run has no task {}", name));
    case wire::Outcome::Error:
      break;
  }
  return fail(reply.text, ExitCode::TaskFailed);
}

/// A checkpoint directory that a task is to begin without.
struct SetAside {
  std::size_t task = 0;  ///< In Wanted::tasks.
  std::string directory;
  std::string renamed;
};

/// Gives a task its checkpoints back. If that fails they keep their new name, which was printed.
void put_back(const SetAside& aside) {
  std::error_code ignored;
  std::filesystem::rename(aside.renamed, aside.directory, ignored);
}

/// Renames the checkpoint directories of these tasks, each to the first name that is free, as
/// "checkpoints.2". Nothing is renamed where one of them cannot be.
Result<std::vector<SetAside>> set_checkpoints_aside(const Wanted& wanted) {
  std::vector<SetAside> aside;
  std::error_code failed;
  for (std::size_t i = 0; i < wanted.tasks.size(); ++i) {
    const std::string directory =
        fmt::format("{}/{}/{}", wanted.run, wanted.tasks[i].directory, run::kCheckpoints);
    if (!std::filesystem::is_directory(directory, failed)) continue;
    if (std::filesystem::is_empty(directory, failed)) continue;
    int number = 1;
    while (std::filesystem::exists(fmt::format("{}.{}", directory, number), failed)) ++number;
    SetAside it{
        .task = i, .directory = directory, .renamed = fmt::format("{}.{}", directory, number)};
    std::filesystem::rename(it.directory, it.renamed, failed);
    if (failed) {
      for (const SetAside& each : aside) put_back(each);
      return std::unexpected(Error{failed.message()}.in(
          fmt::format("--fresh: '{}' cannot be renamed", seen_from_here(directory))));
    }
    aside.push_back(std::move(it));
  }
  return aside;
}

/// "'runs/sweep/train/lr=1/checkpoints' is now 'runs/sweep/train/lr=1/checkpoints.1'", line by
/// line.
std::string text_of(const std::vector<SetAside>& aside) {
  std::string text;
  for (std::size_t i = 0; i < std::min(aside.size(), kShownMax); ++i) {
    text += fmt::format("'{}' is now '{}'\n", seen_from_here(aside[i].directory),
                        seen_from_here(aside[i].renamed));
  }
  if (aside.size() > kShownMax) text += fmt::format("and {} more\n", aside.size() - kShownMax);
  return text;
}

/// The run at work takes them in. A task that it refuses keeps its checkpoints.
ExitCode ask_the_yard(const Wanted& wanted, const std::vector<SetAside>& aside) {
  std::vector<wire::ControlRequest> requests;
  for (wire::Retry& retry : requests_for(wanted)) requests.emplace_back(std::move(retry));
  const auto replies =
      link::ask_all(wanted.socket, requests,
                    {.run = wanted.run, .program = "trainyard retry", .within = kAnsweredSoon});
  if (!replies) return fail(replies.error(), ExitCode::TaskFailed);
  ExitCode code = wanted.not_retried.empty() ? ExitCode::Success : ExitCode::TaskFailed;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < wanted.tasks.size(); ++i) {
    const ExitCode outcome = tell_refused(wanted.run, wanted.tasks[i], (*replies)[i]);
    if (outcome == ExitCode::Success) {
      ++taken;
    } else if (const auto its = std::ranges::find(aside, i, &SetAside::task); its != aside.end()) {
      put_back(*its);
    }
    if (code == ExitCode::Success) code = outcome;
  }
  if (taken == 0) return code;
  const ExitCode printed =
      answer(fmt::format("{} {} over with all {} retries in the active run\n", count_of(taken),
                         taken == 1 ? "starts" : "start", taken == 1 ? "its" : "their"));
  return code == ExitCode::Success ? printed : code;
}

}  // namespace

ExitCode retry_command(const RetryOptions& options) {
  Result<RequestedAmounts> amounts = read_amounts(options);
  if (!amounts) return fail(amounts.error());
  Result<TasksOfRun> selection = read_selection({.words = options.words,
                                                 .run_directory = options.run_directory,
                                                 .when_several = WhenSeveral::RefuseLive});
  if (!selection) return fail(selection.error());
  const std::string latest =
      selection->candidates > 1 ? app::name_of_latest(selection->name, selection->candidates) : "";
  if (time_of_no_start(selection->run) || (options.cascade && waits_in_queue(selection->run))) {
    return retry_submission(options, *selection);
  }
  RunOptions resumed{.request = resume_of(selection->run), .command_line = options.command_line};
  const Result<void> taken = take_from_queue(resumed);
  // The queue retries later where the machine is short of something.
  const auto refuse = [&resumed](const Error& error) {
    return fail(error, resumed.queued && error.of_machine ? ExitCode::NotDone : ExitCode::Usage);
  };
  if (!taken) return refuse(taken.error());
  // The journal is closed before the run resumes: its keeper must not inherit it.
  const Result<Wanted> wanted =
      look_up(options, resumed.queued, *std::move(amounts), *std::move(selection));
  if (!wanted) return refuse(wanted.error());
  if (!latest.empty()) note("retrying in " + latest);
  if (!wanted->not_retried.empty()) {
    note("not retried: " + names_and_words(wanted->not_retried));
  }
  for (const std::string& line : wanted->amounts.notes) note(line);
  if (!options.cascade) note_skipped(wanted->run);
  const QueueReturn& submissions = wanted->submissions;
  if (!wanted->tasks.empty() && !resumed.queued) note_out_of_date(wanted->run, submissions);
  if (options.dry_run) return answer(shown(*wanted) + submissions.shown());
  // The queue takes the first line of a run that it cannot start for the reason.
  if (!resumed.queued) sys::write_standard_error(shown(*wanted));
  if (const Result<void> served = submissions.serve_queue(); !served) return refuse(served.error());
  if (wanted->tasks.empty()) return submissions.put_back();
  std::vector<SetAside> aside;
  if (options.fresh) {
    Result<std::vector<SetAside>> renamed = set_checkpoints_aside(*wanted);
    if (!renamed) return refuse(renamed.error());
    aside = std::move(*renamed);
    sys::write_standard_error(text_of(aside));
  }
  if (wanted->lives) {
    const ExitCode code = ask_the_yard(*wanted, aside);
    const ExitCode back = submissions.put_back();
    return code == ExitCode::Success ? back : code;
  }
  ExitCode back = ExitCode::Success;
  resumed.retries = requests_for(*wanted);
  resumed.retried_rows = retried_rows_of(*wanted);
  resumed.reruns = reruns_for(*wanted);
  resumed.fresh = options.fresh;
  // The queue waits for active runs, and would skip the submissions again before this one is active.
  resumed.on_resumed = [&] { back = submissions.put_back(); };
  const ExitCode code = run_command(resumed);
  return code == ExitCode::Success ? back : code;
}

}  // namespace trainyard::cli
