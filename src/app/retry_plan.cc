#include "app/retry_plan.h"

#include <algorithm>
#include <expected>
#include <iterator>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "app/retry_needs.h"
#include "base/list_text.h"
#include "model/ids.h"
#include "model/status.h"
#include "model/terms.h"
#include "report/digest.h"
#include "report/task_state.h"
#include "report/terminal_text.h"
#include "run/run_directory.h"
#include "text/shell_quote.h"
#include "text/task_pattern.h"

namespace trainyard::app {
namespace {

constexpr std::string_view kRunsAllTasks = "runs all tasks with the code as it is now";

std::unexpected<Error> refuse(std::string why) { return std::unexpected(Error{std::move(why)}); }

std::string tasks_text(std::size_t tasks) { return report::counted(tasks, "task"); }

/// "2 tasks failed: train/lr=1 (EXIT 3), train/lr=2 (TIMEOUT)", of all tasks of the run.
std::string what_failed(const TasksOfRun& selection, const RetryFacts& facts) {
  constexpr std::size_t kNamedMax = 3;
  const TasksOfRun all_failed{{.run = selection.run}, {}, {report::TaskState::Failed}};
  const auto failed = selected_tasks(facts.tasks, all_failed, SameName::MeansAll, facts.runs);
  if (!failed) return failed.error().message;
  if (failed->empty()) return "no task failed";
  const auto name = [](const journal::TaskRow& task) {
    return fmt::format("{} ({})", report::plain(shown_name(task)), model::word_for(task.standing));
  };
  return fmt::format("{} failed: {}", tasks_text(failed->size()),
                     short_list_text(*failed | std::views::transform(name), kNamedMax));
}

/// Says that no selected task is in the requested state, which tasks of the run failed, and how a
/// run that is out of date runs with the new results.
std::string no_task_in_state(const TasksOfRun& selection, const RetryFacts& facts) {
  const std::string why = facts.why_out_of_date().value_or("");
  const std::string out_of_date = why.empty() ? "" : "; " + why;
  const bool only_failed = selection.patterns.empty() && selection.states.size() == 1 &&
                           selection.states.front() == report::TaskState::Failed;
  if (only_failed) {
    return fmt::format("nothing to retry: no task of {} failed{}", selection.name, out_of_date);
  }
  return fmt::format(
      "nothing to retry{}: {}; {}{}",
      selection.number != 0 ? fmt::format(" in run {}", selection.number) : std::string(),
      none_in_state(selection, facts.runs), what_failed(selection, facts), out_of_date);
}

/// "; 'trainyard run sweep.yaml --new' runs all tasks ..., in another run": where no command line
/// starts the run again, nothing.
std::string in_another_run(const std::optional<NewRunCommand>& again, std::string_view which) {
  if (!again) return {};
  if (again->is_of_command) {
    return fmt::format("; to run its command again, in another run, type\n  {}", again->command);
  }
  return fmt::format("; {} {}, in another run", text::quoted_command(again->command), which);
}

/// Names the command that runs finished tasks again, which a plain retry does not: `--changed` if
/// one was edited in the job file, `--other-code` if one ran other code, else another run, of all
/// tasks or `only` those of these patterns. Empty if no task has finished, for selected tasks that
/// were added to the run, and for runs that no command line starts again.
std::string cure_for_finished(const RetryPlan& plan, const TasksOfRun& selection,
                              const RetryFacts& facts, const std::vector<std::string>& only) {
  if (std::ranges::none_of(plan.tasks, is_finished)) return {};
  const std::string run = text::shell_word(selection.shown);
  const Result<std::set<std::uint32_t>> edited =
      facts.is_active ? std::set<std::uint32_t>() : facts.edited_tasks();
  const auto was_edited = [&edited](const journal::TaskRow& task) {
    return edited && edited->contains(task.index.value);
  };
  if (std::ranges::any_of(plan.tasks, was_edited)) {
    return fmt::format("; {} retries the tasks that were edited in the job file",
                       text::quoted_command(fmt::format("trainyard retry {} --changed", run)));
  }
  const auto ran_other_code = [](const journal::TaskRow& task) {
    return is_finished(task) && !task.newer_code.empty();
  };
  if (!facts.is_active && std::ranges::any_of(plan.tasks, ran_other_code)) {
    return fmt::format(
        "; {} retries the tasks that ran other code than the tasks that started last",
        text::quoted_command(fmt::format("trainyard retry {} --other-code", run)));
  }
  // A submission or a later round has tasks that `run --only` does not find in the job file.
  const auto was_added = [](const journal::TaskRow& task) { return task.batch > 1; };
  if (!only.empty() && std::ranges::any_of(plan.tasks, was_added)) return {};
  std::string_view which = "runs these tasks again";
  if (only.empty()) which = kRunsAllTasks;
  if (plan.tasks.size() == 1 && !only.empty()) which = "runs it again";
  return in_another_run(facts.new_run(only), which);
}

/// Keeps only the tasks that the request takes. An error if it takes none of them.
Result<void> keep_requested(RetryPlan& plan, const RetryRequest& request,
                            const TasksOfRun& selection, const RetryFacts& facts) {
  const std::string& run = selection.shown;
  if (facts.is_active && (request.changed || request.other_code)) {
    return refuse(fmt::format("the run in '{}' is active{}: {} works only after a run has ended",
                              run, request.changed ? " with its original job file" : "",
                              request.changed ? "--changed" : "--other-code"));
  }
  Result<std::set<std::uint32_t>> edited;
  if (request.changed) edited = facts.edited_tasks();
  if (!edited) return std::unexpected(std::move(edited.error()));
  const auto stays = [&](const journal::TaskRow& task) {
    if (task.standing.verdict == model::Verdict::None) return true;
    if (request.changed) return !edited->contains(task.index.value);
    return request.other_code ? task.newer_code.empty() : is_finished(task);
  };
  if (!std::ranges::all_of(plan.tasks, stays)) {
    std::erase_if(plan.tasks, stays);
    return {};
  }
  const journal::TaskRow& first = plan.tasks.front();
  const auto has_code = [](const journal::TaskRow& task) { return !task.code.empty(); };
  std::vector<std::string> only;
  std::string why;
  if (request.changed) {
    why = fmt::format("none of the selected tasks of '{}' has changed in the job file", run);
  } else if (request.other_code && std::ranges::any_of(plan.tasks, has_code)) {
    why = fmt::format(
        "none of the selected tasks of '{}' ran other code than the tasks that started last", run);
  } else if (request.other_code) {
    why = fmt::format(
        "the code of the selected tasks of '{}' is not known: tasks must run in a git work tree",
        run);
  } else if (plan.tasks.size() > 1) {
    why = fmt::format(
        "no selected task of '{}' can be retried: each has finished{}", run,
        std::ranges::all_of(plan.tasks, is_finished) ? "" : ", or is still running or waiting");
    for (const text::TaskPattern& pattern : selection.patterns) only.push_back(pattern.text());
  } else if (is_finished(first)) {
    only.push_back(shown_name(first));
    why =
        fmt::format("{} has finished: only tasks that have not finished are retried", only.front());
  } else {
    why = fmt::format("{} is {}: only tasks that have ended are retried", shown_name(first),
                      model::word_for(first.standing));
  }
  return refuse(why + cure_for_finished(plan, selection, facts, only));
}

/// The tasks that run again because the whole run is out of date: all that did not fail.
std::vector<journal::TaskRow> tasks_out_of_date(std::vector<journal::TaskRow> tasks) {
  for (journal::TaskRow& task : tasks) task.out_of_date = is_finished(task);
  std::erase_if(tasks, [](const journal::TaskRow& task) {
    return !task.out_of_date && task.standing.verdict != model::Verdict::Skipped &&
           task.standing.verdict != model::Verdict::Stopped;
  });
  return tasks;
}

/// The amounts as far as the tasks can have them. An active run knows its machines and answers by
/// itself, unless it is not asked, and nothing is known about other machines before the run resumes.
Result<RequestedAmounts> fitted_amounts(RetryPlan& plan, const RetryRequest& request,
                                        const RetryFacts& facts) {
  const wire::Retry& with = plan.amounts.with;
  const bool is_asked = facts.is_active && !request.dry_run;
  const bool has_memory = with.memory_bytes != 0 || with.gpu_memory_bytes != 0;
  const job::Jobs* const jobs = has_memory && !is_asked ? facts.jobs() : nullptr;
  return jobs != nullptr ? fitted(std::move(plan.amounts), plan.tasks, *jobs)
                         : std::move(plan.amounts);
}

/// The reason why a task runs again, if that is not its failure.
std::string_view why_again(const journal::TaskRow& task, const RetryPlan& plan) {
  if (plan.selected.contains(task.index)) return plan.reason;
  if (!is_finished(task)) return "";
  return task.out_of_date ? ", and out of date" : ", and needs one of these";
}

}  // namespace

Result<void> check_no_tasks(const RetryRequest& request, const TasksOfRun& selection,
                            bool is_queued, const RunFacts& runs) {
  const bool is_alone = selection.is_all() && !request.changed && !request.other_code &&
                        !request.fresh && request.memory.empty() && request.gpu_memory.empty() &&
                        request.time_limit.empty();
  if (is_alone) return {};
  // A word that is not a run is a task of the latest run.
  for (const text::TaskPattern& pattern : selection.patterns) {
    std::optional<Error> unknown = unknown_number(pattern.text(), runs);
    if (unknown) return std::unexpected(*std::move(unknown));
  }
  const std::string run = text::shell_word(selection.shown);
  return refuse(selection.name +
                (is_queued
                     ? " is in your queue, so no options about tasks apply to it: type " +
                           text::quoted_command(fmt::format("trainyard retry {} --cascade", run))
                     : fmt::format(" has not started and has no tasks yet: {} puts it back into "
                                   "your queue",
                                   text::quoted_command("trainyard retry " + run))));
}

Result<RetryPlan> plan_retry(const RetryRequest& request, TasksOfRun selection,
                             RequestedAmounts amounts, const RetryFacts& facts) {
  const std::string run = text::shell_word(selection.shown);
  // A run that died must resume as a whole before any of its tasks is retried.
  if (!facts.is_active && !facts.has_ended) {
    return refuse(
        fmt::format("the run in '{}' died: {} resumes it and runs all tasks that have not finished",
                    selection.shown, text::quoted_command("trainyard run --resume " + run)));
  }
  const bool all_failed = selection.is_all() && !request.changed && !request.other_code;
  if (all_failed) selection.states = {report::TaskState::Failed};
  Result<std::vector<journal::TaskRow>> tasks =
      selected_tasks(facts.tasks, selection, SameName::Refuse, facts.runs);
  if (!tasks) return std::unexpected(std::move(tasks.error()));
  Result<std::vector<journal::TaskRow>> all = facts.tasks.all();
  if (!all) return std::unexpected(std::move(all.error()));
  RetryPlan plan{.tasks = *std::move(tasks),
                 .amounts = std::move(amounts),
                 .reason = request.changed      ? ", and changed since"
                           : request.other_code ? ", and ran other code"
                                                : ""};
  // An active run only retries tasks that have not finished.
  const bool takes_finished = request.cascade && !facts.is_active && all_failed;
  const Result<std::string> why_out_of_date =
      takes_finished ? facts.why_out_of_date() : Result<std::string>();
  if (!why_out_of_date) return std::unexpected(why_out_of_date.error());
  const bool is_out_of_date = !why_out_of_date->empty();
  std::vector<journal::TaskRow> out_of_date;
  if (is_out_of_date) out_of_date = tasks_out_of_date(*all);
  const RetryNeeds needs(facts.groups, facts.needs, *std::move(all));
  if (takes_finished && !is_out_of_date) out_of_date = needs.out_of_date();
  if (plan.tasks.empty() && out_of_date.empty()) {
    if (all_failed) return plan;
    return refuse(no_task_in_state(selection, facts));
  }
  // --changed and --other-code are there to leave tasks out.
  if (!request.changed && !request.other_code) {
    const std::set<model::TaskIndex> named = named_tasks(selection, plan.tasks);
    std::ranges::copy_if(
        plan.tasks, std::back_inserter(plan.not_retried),
        [&named](const journal::TaskRow& task) { return named.contains(task.index); });
  }
  if (!plan.tasks.empty()) {
    Result<void> kept = keep_requested(plan, request, selection, facts);
    if (!kept) return std::unexpected(std::move(kept.error()));
  }
  for (const journal::TaskRow& task : plan.tasks) plan.selected.insert(task.index);
  std::ranges::move(out_of_date, std::back_inserter(plan.tasks));
  Result<RequestedAmounts> used = note_unused_gpu_memory(std::move(plan.amounts), plan.tasks);
  if (!used) return std::unexpected(std::move(used.error()));
  plan.amounts = *std::move(used);
  if (request.cascade) needs.add_cascade(plan.tasks);
  needs.put_needed_first(plan.tasks);
  if (facts.is_active) std::erase_if(plan.tasks, is_finished);
  std::erase_if(plan.not_retried, [&plan](const journal::TaskRow& task) {
    return std::ranges::find(plan.tasks, task.index, &journal::TaskRow::index) != plan.tasks.end();
  });
  // An active run answers by itself.
  std::optional<const job::Jobs*> jobs;
  if (facts.is_active) jobs = nullptr;
  const auto needs_success = [&](const journal::TaskRow& task) {
    if (!jobs) jobs = facts.jobs();
    const auto index = *jobs == nullptr ? std::nullopt : (*jobs)->find(task.group_name, task.id);
    return index && (*jobs)->terms_of(*index).run_if == model::RunIf::Success;
  };
  if (Result<void> checked = needs.check(plan.tasks, run, needs_success); !checked) {
    return std::unexpected(std::move(checked.error()));
  }
  Result<RequestedAmounts> fitting = fitted_amounts(plan, request, facts);
  if (!fitting) return std::unexpected(std::move(fitting.error()));
  plan.amounts = *std::move(fitting);
  return plan;
}

Result<void> check_empty_plan(const RetryRequest& request, TasksOfRun selection,
                              const RetryFacts& facts, bool has_submissions) {
  if (has_submissions && (facts.is_active || facts.has_succeeded())) return {};
  selection.states = {report::TaskState::Failed};
  std::string text = no_task_in_state(selection, facts);
  int stopped = 0;
  int skipped = 0;
  for (const journal::GroupRow& group : facts.groups) {
    stopped += group.stopped;
    skipped += group.skipped;
  }
  const int left = stopped + skipped;
  if (left == 0) {
    const bool is_done = !facts.is_active && facts.why_out_of_date().value_or("").empty();
    if (is_done) text += in_another_run(facts.new_run({}), kRunsAllTasks);
    return refuse(std::move(text));
  }
  // An active run cannot resume, and a resume takes no amounts. 'up' resumes a run of the queue.
  const std::string run = text::shell_word(selection.shown);
  const std::string amounts = typed_amounts(request);
  std::string command = facts.is_resumed_by_queue() ? "up" : "run --resume " + run;
  if (facts.is_active || !amounts.empty()) {
    command = fmt::format("retry {}{}{}{}", run, stopped > 0 ? " :stopped" : "",
                          skipped > 0 ? " :skipped" : "", amounts);
  }
  const std::string_view state = skipped == 0   ? "STOPPED"
                                 : stopped == 0 ? "SKIPPED"
                                                : "STOPPED or SKIPPED";
  return refuse(fmt::format(
      "{}; {} {} {}: {} runs {}", text, report::counted(left, "task"), left == 1 ? "is" : "are",
      state, text::quoted_command("trainyard " + command), left == 1 ? "it" : "them"));
}

std::string plan_text(const RetryPlan& plan, std::string_view run) {
  constexpr std::size_t kShownMax = 20;
  if (plan.tasks.empty()) return {};
  std::string text = fmt::format("{} of '{}'{}:\n", tasks_text(plan.tasks.size()), run,
                                 with_text(plan.amounts.with));
  for (const journal::TaskRow& task : plan.tasks | std::views::take(kShownMax)) {
    text += fmt::format("  {}: {} after {}{}\n", report::plain(shown_name(task)),
                        model::word_for(task.standing), report::counted(task.attempt, "attempt"),
                        why_again(task, plan));
  }
  if (plan.tasks.size() > kShownMax) {
    text += fmt::format("  and {} more\n", plan.tasks.size() - kShownMax);
  }
  return text;
}

std::vector<wire::Retry> requests_of(const RetryPlan& plan) {
  std::vector<wire::Retry> retries;
  if (!plan.reason.empty() && std::ranges::all_of(plan.tasks, is_finished)) return retries;
  retries.reserve(plan.tasks.size());
  for (const journal::TaskRow& task : plan.tasks) {
    wire::Retry retry = plan.amounts.with;
    retry.group = task.group_name;
    retry.id = task.id;
    retries.push_back(std::move(retry));
  }
  return retries;
}

std::vector<CheckpointRename> checkpoint_renames(const RetryPlan& plan, const std::string& run,
                                                 const DirectoryFacts& facts) {
  std::vector<CheckpointRename> renames;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const std::string from =
        fmt::format("{}/{}/{}", run, plan.tasks[i].directory, run::kCheckpoints);
    if (!facts.has_files(from)) continue;
    int number = 1;
    while (facts.exists(fmt::format("{}.{}", from, number))) ++number;
    renames.push_back({.task = i, .from = from, .to = fmt::format("{}.{}", from, number)});
  }
  return renames;
}

RetryAnswers read_answers(const RetryPlan& plan, const std::vector<wire::ControlReply>& replies,
                          std::string_view run) {
  RetryAnswers answers;
  NeverRunningTasks never;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const wire::ControlReply& reply = replies[i];
    if (reply.outcome == wire::Outcome::Done) continue;
    const std::string name = shown_name(plan.tasks[i]);
    // The run answers each request alone, with the name of the task.
    const std::string never_runs = name + " can never run here: ";
    const bool is_unknown = reply.outcome == wire::Outcome::NoSuchTask;
    if (answers.refused.empty()) answers.is_unknown = is_unknown;
    answers.refused.push_back(i);
    if (is_unknown) {
      answers.reasons.add(fmt::format("the run has no task {}", name));
    } else if (reply.outcome == wire::Outcome::NotRunning) {
      answers.reasons.add(fmt::format(
          "{} is not retried: it has started over already, its group or the run is ending, or a "
          "task that it needs has failed; to retry that, too, type: trainyard retry {} --cascade",
          name, text::shell_word(run)));
    } else if (reply.text.starts_with(never_runs)) {
      never.add(plan.tasks[i], reply.text.substr(never_runs.size()));
    } else if (reply.text != answers.reasons.message) {
      // An error of the whole run is the same for each task.
      answers.reasons.add(reply.text);
    }
  }
  never.add_to(answers.reasons);
  return answers;
}

}  // namespace trainyard::app
