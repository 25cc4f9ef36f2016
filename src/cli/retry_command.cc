// `trainyard retry`: reads the facts about a run and its tasks, prints the plan of app/retry_plan.h
// and carries it out. Runs that ended before they began are retried by cli/queue_return.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/retry_plan.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/checked_job.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/job_tasks.h"
#include "cli/known_runs.h"
#include "cli/queue_return.h"
#include "cli/queued_runs.h"
#include "cli/resumed_run.h"
#include "cli/run_machines.h"
#include "hardware/this_machine.h"
#include "job/job.h"
#include "journal/journal.h"
#include "journal/reader.h"
#include "link/control_client.h"
#include "report/digest.h"
#include "report/terminal_text.h"
#include "run/active_run.h"
#include "sys/files.h"
#include "sys/terminal.h"
#include "text/mistake.h"
#include "wire/control.h"

namespace trainyard::cli {
namespace {

/// The time limit for an answer, which comes after the journal commit, for any number of tasks.
constexpr Duration kAnsweredSoon{60'000};

using Renames = std::vector<app::CheckpointRename>;

/// The plan for a run, and what is done besides.
struct PlannedRetry {
  app::RetryPlan plan;
  std::optional<std::string> socket;  ///< The socket of an active run.
  QueueReturn submissions;            ///< The submissions behind the run that go back.
};

app::RunRequest resume_of(const std::string& run) {
  return {.job = app::JobOfRun{}, .place = app::RunInDirectory{run}};
}

/// The options and the tasks with which a run that has ended would resume.
struct EndedRun {
  RunOptions options;
  std::unique_ptr<JobTasks> tasks;
};

Result<EndedRun> read_ended(const std::string& run) {
  Result<RunOptions> options = fill_in({.request = resume_of(run), .dry_run = true});
  if (!options) return std::unexpected(std::move(options.error()));
  const Result<job::LoadOptions> load = load_options_of(*options);
  if (!load) return std::unexpected(load.error());
  std::expected<job::Job, text::Mistakes> job =
      job::Job::load(*load, hardware::find_this_machine().reading.capacity);
  if (!job) return std::unexpected(Error{text_of(job.error())});
  return EndedRun{*std::move(options), std::make_unique<JobTasks>(*std::move(job))};
}

/// The tasks of a run that uses only this machine; null where they cannot be read. Other obstacles
/// to resuming are reported when the run resumes.
std::unique_ptr<JobTasks> tasks_only_here(const std::string& run) {
  Result<EndedRun> ended = read_ended(run);
  if (!ended || !runs_only_here(ended->tasks->jobs().first().configuration())) return nullptr;
  return add_submitted(*ended->tasks, run) ? std::move(ended->tasks) : nullptr;
}

/// Row numbers of the tasks of an ended run that have changed in its job file.
Result<std::set<std::uint32_t>> changed_since(const std::string& run) {
  Result<EndedRun> ended = read_ended(run);
  if (!ended) return std::unexpected(std::move(ended.error()));
  Result<std::optional<journal::Journal::Preview>> ahead =
      look_ahead(ended->options, *ended->tasks);
  if (!ahead) return std::unexpected(std::move(ahead.error()));
  std::optional<journal::Journal::Preview>& found = *ahead;
  return found ? std::move(found->edited) : std::set<std::uint32_t>();
}

/// With `queued`, the queue retries the run and knows the submissions behind it.
Result<PlannedRetry> look_up(const app::RetryRequest& request, bool queued,
                             app::RequestedAmounts amounts, const TasksOfRun& selection) {
  const std::string& run = selection.run;
  Result<journal::JournalReader> reader = open_run(run);
  if (!reader) return std::unexpected(std::move(reader.error()));
  std::optional<std::string> active;
  if (run::active_process(run)) {
    Result<std::string> socket = socket_of_run(*reader, run);
    if (!socket) return std::unexpected(std::move(socket.error()));
    active = std::move(*socket);
  }
  const Result<std::vector<journal::ExecutionRow>> executions = reader->executions();
  if (!executions) return std::unexpected(executions.error());
  Result<std::vector<journal::GroupRow>> groups = reader->groups();
  if (!groups) return std::unexpected(std::move(groups.error()));
  Result<std::vector<journal::TaskNeedRow>> needs = reader->task_needs();
  if (!needs) return std::unexpected(std::move(needs.error()));
  const std::unique_ptr<app::RunTasks> tasks = tasks_in(*reader, run);
  std::unique_ptr<JobTasks> job_tasks;
  const app::RetryFacts facts{
      .runs = run_facts(),
      .tasks = *tasks,
      .groups = *std::move(groups),
      .needs = *std::move(needs),
      .is_active = active.has_value(),
      .has_ended = !executions->empty() && executions->back().ended,
      .has_succeeded =
          [&run] {
            const Result<RunOutcome> outcome = outcome_of(run);
            return outcome && outcome->code == ExitCode::Success;
          },
      .is_resumed_by_queue = [&run] { return !how_queue_resumes(run).empty(); },
      .why_out_of_date = [&run]() -> Result<std::string> {
        const Result<std::vector<std::uint32_t>> again = needs_run_again(run);
        if (!again) return std::unexpected(again.error());
        if (again->empty()) return std::string();
        return report::needs_run_again_text("this run", *again, how_runs_again(run));
      },
      .edited_tasks = [&run] { return changed_since(run); },
      .new_run = [&](const auto& only) { return new_run_of(*reader, run, only); },
      .jobs = [&]() -> const job::Jobs* {
        job_tasks = tasks_only_here(run);
        return job_tasks ? &job_tasks->jobs() : nullptr;
      }};
  Result<app::RetryPlan> plan = app::plan_retry(request, selection, std::move(amounts), facts);
  if (!plan) return std::unexpected(std::move(plan.error()));
  PlannedRetry planned{.plan = *std::move(plan), .socket = std::move(active), .submissions = {}};
  const bool runs_none = planned.plan.tasks.empty();
  if (request.cascade && !queued) {
    Result<QueueReturn> behind = QueueReturn::behind(
        run, runs_none ? QueueReturn::Takes::OutOfDate : QueueReturn::Takes::Begun);
    if (!behind) return std::unexpected(std::move(behind.error()));
    planned.submissions = std::move(*behind);
  }
  if (!runs_none) return planned;
  const Result<void> alone =
      app::check_empty_plan(request, selection, facts, !planned.submissions.is_empty());
  return alone ? Result<PlannedRetry>(std::move(planned)) : std::unexpected(alone.error());
}

/// Gives a task its checkpoints back. If that fails they keep their new name, which was printed.
void put_back(const app::CheckpointRename& rename) {
  std::error_code ignored;
  std::filesystem::rename(rename.to, rename.from, ignored);
}

/// Renames the checkpoint directories of the tasks. Nothing is renamed where one of them cannot be.
Result<Renames> set_checkpoints_aside(const app::RetryPlan& plan, const std::string& run) {
  std::error_code failed;
  Renames renames =
      app::checkpoint_renames(plan, run,
                              {.has_files =
                                   [&](const std::string& path) {
                                     return std::filesystem::is_directory(path, failed) &&
                                            !std::filesystem::is_empty(path, failed);
                                   },
                               .exists = sys::exists});
  for (auto each = renames.begin(); each != renames.end(); ++each) {
    std::filesystem::rename(each->from, each->to, failed);
    if (!failed) continue;
    std::for_each(renames.begin(), each, put_back);
    return std::unexpected(Error{failed.message()}.in(
        fmt::format("--fresh: '{}' cannot be renamed", seen_from_here(each->from))));
  }
  return renames;
}

/// "'runs/sweep/train/lr=1/checkpoints' is now 'runs/sweep/train/lr=1/checkpoints.1'", line by
/// line.
std::string text_of(const Renames& renames) {
  constexpr std::size_t kShownMax = 20;
  std::string text;
  for (const auto& [task, from, to] : renames | std::views::take(kShownMax)) {
    text += fmt::format("'{}' is now '{}'\n", seen_from_here(from), seen_from_here(to));
  }
  if (renames.size() > kShownMax) text += fmt::format("and {} more\n", renames.size() - kShownMax);
  return text;
}

/// The active run takes the tasks in. A task that it refuses keeps its checkpoints.
ExitCode ask_active_run(const std::string& socket, const TasksOfRun& selection,
                        const app::RetryPlan& plan, const Renames& renames) {
  std::vector<wire::ControlRequest> requests;
  for (wire::Retry& retry : app::requests_of(plan)) requests.emplace_back(std::move(retry));
  const auto replies =
      link::ask_all(socket, requests,
                    {.run = selection.run, .program = "trainyard retry", .within = kAnsweredSoon});
  if (!replies) return fail(replies.error(), ExitCode::TaskFailed);
  const app::RetryAnswers answers = app::read_answers(plan, *replies, selection.shown);
  ExitCode code = ExitCode::Success;
  if (!answers.refused.empty()) {
    code = fail(answers.reasons, answers.is_unknown ? ExitCode::Usage : ExitCode::TaskFailed);
  }
  if (!plan.not_retried.empty()) code = ExitCode::TaskFailed;
  for (const std::size_t task : answers.refused) {
    const auto its = std::ranges::find(renames, task, &app::CheckpointRename::task);
    if (its != renames.end()) put_back(*its);
  }
  const std::size_t taken = plan.tasks.size() - answers.refused.size();
  if (taken == 0) return code;
  const ExitCode printed = answer(fmt::format(
      "{} {} over with all {} retries in the active run\n", report::counted(taken, "task"),
      taken == 1 ? "starts" : "start", taken == 1 ? "its" : "their"));
  return code == ExitCode::Success ? printed : code;
}

}  // namespace

ExitCode retry_command(const app::RetryRequest& request) {
  Result<app::RequestedAmounts> amounts = app::read_amounts(request);
  if (!amounts) return fail(amounts.error());
  const Result<TasksOfRun> selection = read_selection({.words = request.words,
                                                       .run_directory = request.run_directory,
                                                       .when_several = WhenSeveral::RefuseLive});
  if (!selection) return fail(selection.error());
  const std::string& run = selection->run;
  if (time_of_no_start(run) || (request.cascade && waits_in_queue(run))) {
    return retry_submission(request, *selection);
  }
  RunOptions resumed{.request = resume_of(run), .command_line = request.command_line};
  const Result<void> taken = take_from_queue(resumed);
  // The queue retries later where the machine is short of something.
  const auto refuse = [&resumed](const Error& error) {
    return fail(error, resumed.queued && error.of_machine ? ExitCode::NotDone : ExitCode::Usage);
  };
  if (!taken) return refuse(taken.error());
  // The journal is closed before the run resumes: its keeper must not inherit it.
  const Result<PlannedRetry> planned =
      look_up(request, resumed.queued, *std::move(amounts), *selection);
  if (!planned) return refuse(planned.error());
  const app::RetryPlan& plan = planned->plan;
  const QueueReturn& submissions = planned->submissions;
  if (selection->candidates > 1) {
    note("retrying in " + app::name_of_latest(selection->name, selection->candidates));
  }
  if (!plan.not_retried.empty()) note("not retried: " + names_and_words(plan.not_retried));
  for (const std::string& line : plan.amounts.notes) note(line);
  if (!request.cascade) note_skipped(run);
  if (!plan.tasks.empty() && !resumed.queued) note_out_of_date(run, submissions);
  const std::string shown = app::plan_text(plan, selection->shown);
  if (request.dry_run) return answer(shown + submissions.shown());
  // The queue takes the first line of a run that it cannot start for the reason.
  if (!resumed.queued) sys::write_standard_error(shown);
  if (const Result<void> served = submissions.serve_queue(); !served) return refuse(served.error());
  if (plan.tasks.empty()) return submissions.put_back();
  Renames renames;
  if (request.fresh) {
    Result<Renames> renamed = set_checkpoints_aside(plan, run);
    if (!renamed) return refuse(renamed.error());
    renames = *std::move(renamed);
    sys::write_standard_error(text_of(renames));
  }
  if (const auto& socket = planned->socket) {
    const ExitCode code = ask_active_run(*socket, *selection, plan, renames);
    const ExitCode back = submissions.put_back();
    return code == ExitCode::Success ? back : code;
  }
  ExitCode back = ExitCode::Success;
  resumed.retries = app::requests_of(plan);
  for (const journal::TaskRow& task : plan.tasks) {
    if (app::is_finished(task)) {
      resumed.reruns.push_back({.task = task.index, .group = task.group_name, .id = task.id});
    } else {
      resumed.retried_rows.insert(task.index.value);
    }
  }
  resumed.fresh = request.fresh;
  // The queue waits for active runs, and would skip the submissions again before this one is active.
  resumed.on_resumed = [&] { back = submissions.put_back(); };
  const ExitCode code = run_command(resumed);
  return code == ExitCode::Success ? back : code;
}

}  // namespace trainyard::cli
