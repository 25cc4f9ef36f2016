#include "app/task_requests.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "link/control_client.h"
#include "model/status.h"
#include "report/task_state.h"

namespace trainyard::app {
namespace {

using report::TaskState;

/// A task has ten seconds between TERM and KILL, and the answer comes when it is gone.
constexpr Duration kAfterTerm{30'000};

bool has_verdict(const journal::TaskRow& task) {
  return task.standing.verdict != model::Verdict::None;
}

struct ChangeWords {
  std::string_view command;
  std::string_view done;
  std::string_view only;  ///< The tasks that can be changed.
  std::string_view none;  ///< What no task is if none can be changed.
};

/// By TaskChange. The priority follows the first two of its words.
constexpr std::array<ChangeWords, 3> kWords{
    {{.command = "hold",
      .done = "on hold",
      .only = "only waiting tasks can be put on hold",
      .none = "is waiting"},
     {.command = "release",
      .done = "may start",
      .only = "only tasks on hold can be released",
      .none = "is on hold"},
     {.command = "update --priority",
      .done = "has priority",
      .only = "only waiting and running tasks have a priority",
      .none = "can be changed: all have ended"}}};

const ChangeWords& words_of(const ChangeRequest& request) {
  return kWords.at(std::to_underlying(request.change));
}

std::string with_priority(std::string_view words, const ChangeRequest& request) {
  return request.change == TaskChange::Priority ? fmt::format("{} {}", words, request.priority)
                                                : std::string(words);
}

/// Whether the request can be met for the task, as far as the journal knows.
bool can_change(const ChangeRequest& request, const journal::TaskRow& task) {
  const auto is = [&task](TaskState state) { return report::is_in(task.standing, state); };
  if (has_verdict(task)) return false;
  if (request.change == TaskChange::Hold) return is(TaskState::Waiting) || is(TaskState::Retrying);
  return request.change == TaskChange::Priority || is(TaskState::OnHold);
}

Error change_refusal(const ChangeRequest& request, const journal::TaskRow& task, bool is_held) {
  if (is_held) return Error{fmt::format("{} is on hold already", shown_name(task))};
  return Error{fmt::format("{} is {}: {}", shown_name(task), model::word_for(task.standing),
                           words_of(request).only)};
}

}  // namespace

bool means_whole_run(const TasksOfRun& selection, bool is_typed) {
  if (selection.is_all()) return is_typed;
  return selection.states.empty() && selection.patterns.size() == 1 &&
         selection.patterns.front().text() == "*";
}

TasksToKill tasks_to_kill(const TasksOfRun& selection, std::vector<journal::TaskRow> selected) {
  std::set<model::TaskIndex> named = named_tasks(selection, selected);
  if (std::ranges::all_of(selected, has_verdict)) {
    for (const journal::TaskRow& task : selected) named.insert(task.index);
  }
  std::erase_if(selected, [&named](const journal::TaskRow& task) {
    return has_verdict(task) && !named.contains(task.index);
  });
  return {.tasks = std::move(selected), .named = std::move(named)};
}

std::string kill_refusal(const journal::TaskRow& task) {
  return fmt::format("{} is {}: only waiting and running tasks can be killed", shown_name(task),
                     model::word_for(task.standing));
}

KillOutcome kill_outcome(const wire::ControlReply& reply, const journal::TaskRow& before,
                         const journal::TaskRow& now, bool named) {
  const std::string name = shown_name(before);
  const bool started = now.started.has_value();
  const bool waited_for_retry =
      before.standing.status == Status::Interrupt ||
      (before.standing.status == Status::Init && now.standing.verdict == model::Verdict::Failed);
  // Ctrl-C or TERM had ended the run before the request came.
  const bool is_stopped = now.standing.verdict == model::Verdict::Stopped;
  // The run may have ended with its last task, before it came to a task that needed that one.
  const bool has_no_run = reply.outcome == wire::Outcome::Error;
  // The task may have exited by itself before the signal reached it.
  const bool by_itself = now.standing.verdict == model::Verdict::Finished ||
                         now.standing.failure == model::Failure::Exit ||
                         now.standing.failure == model::Failure::Crashed;
  const bool has_exited =
      reply.outcome == wire::Outcome::Done && started && !waited_for_retry && by_itself;
  const bool is_late = has_verdict(now) && (has_no_run || has_exited);
  switch (is_late ? wire::Outcome::NotRunning : reply.outcome) {
    case wire::Outcome::Done:
      return {.text = name + (waited_for_retry ? " will not be retried\n"
                              : !started       ? " will not start\n"
                              : is_stopped     ? " was stopped with its run\n"
                                               : " was killed\n")};
    case wire::Outcome::NotRunning:
      if (named) return {.text = kill_refusal(now), .code = run::ExitCode::TaskFailed};
      return {.text = started ? "" : name + " will not start\n"};
    case wire::Outcome::NoSuchTask:
      return {.text = "the run has no task " + name, .code = run::ExitCode::Usage};
    case wire::Outcome::Error:
      break;
  }
  return {.text = reply.text, .code = run::ExitCode::TaskFailed};
}

Duration kill_wait_max(const std::vector<journal::TaskRow>& tasks) {
  Duration before_term{0};
  // A task that waits now may have started when the yard receives the request.
  for (const journal::TaskRow& task : tasks) {
    before_term = std::max(before_term, task.signal_before_term);
  }
  const std::size_t rounds = (tasks.size() + link::kAskedAtOnce - 1) / link::kAskedAtOnce;
  return (before_term + kAfterTerm) * static_cast<std::int64_t>(rounds);
}

std::string kill_wait_note(const std::vector<journal::TaskRow>& tasks) {
  std::size_t count = 0;
  std::string name;
  Duration longest{0};
  for (const journal::TaskRow& task : tasks) {
    if (task.pid == 0 || task.signal_before_term == Duration{0}) continue;
    ++count;
    name = shown_name(task);
    longest = std::max(longest, task.signal_before_term);
  }
  if (count == 0) return "";
  const bool is_one = count == 1;
  return fmt::format("{} up to {} to save {} state before SIGTERM; Ctrl-C stops only the waiting",
                     is_one ? name + " has" : fmt::format("{} tasks have", count),
                     exact_text(longest), is_one ? "its" : "their");
}

std::string ChangeRequest::command() const {
  return with_priority(words_of(*this).command, *this) + (dry_run ? " --dry-run" : "");
}

Result<TasksToChange> tasks_to_change(const ChangeRequest& request, TasksOfRun selection,
                                      RunTasks& tasks, const Result<std::string>& socket,
                                      const RunFacts& facts) {
  const bool names_none = selection.is_all();
  if (names_none && request.change == TaskChange::Release) selection.states = {TaskState::OnHold};
  Result<std::vector<journal::TaskRow>> selected =
      selected_tasks(tasks, selection, SameName::Refuse, facts);
  if (!selected) return std::unexpected(std::move(selected.error()));
  if (!socket) return std::unexpected(socket.error());
  if (names_no_task(selection, selected->size())) {
    return std::unexpected(Error{fmt::format("which tasks of '{}'? {}", selection.shown,
                                             how_to_name_all(request.command(), selection))});
  }
  if (selected->empty()) {
    return std::unexpected(Error{names_none
                                     ? fmt::format("no task of '{}' is on hold", selection.shown)
                                     : none_in_state(selection, facts)});
  }
  const bool all_held = request.change == TaskChange::Hold &&
                        std::ranges::all_of(*selected, [](const journal::TaskRow& task) {
                          return report::is_in(task.standing, TaskState::OnHold);
                        });
  if (selected->size() == 1 && !can_change(request, selected->front())) {
    return std::unexpected(change_refusal(request, selected->front(), all_held));
  }
  if (all_held) {
    return std::unexpected(
        Error{fmt::format("all of these tasks of '{}' are on hold already", selection.shown)});
  }
  const std::set<model::TaskIndex> named = named_tasks(selection, *selected);
  TasksToChange chosen;
  std::vector<journal::TaskRow> unchanged;
  for (journal::TaskRow& task : *selected) {
    const bool can = can_change(request, task);
    if (!can && named.contains(task.index)) chosen.names_unchanged = true;
    (can ? chosen.tasks : unchanged).push_back(std::move(task));
  }
  if (!unchanged.empty()) chosen.not_changed = "not changed: " + names_and_words(unchanged);
  if (!chosen.tasks.empty()) return chosen;
  return std::unexpected(Error{fmt::format("no selected task of '{}' {}; {}", selection.shown,
                                           words_of(request).none, chosen.not_changed)});
}

wire::ControlRequest request_for(const ChangeRequest& request, const journal::TaskRow& task) {
  if (request.change == TaskChange::Priority) {
    return wire::SetPriority{.group = task.group_name, .id = task.id, .priority = request.priority};
  }
  return wire::Hold{
      .group = task.group_name, .id = task.id, .hold = request.change == TaskChange::Hold};
}

ChangeOutcome change_outcome(const ChangeRequest& request, const TasksToChange& chosen,
                             const std::vector<wire::ControlReply>& replies) {
  ChangeOutcome outcome;
  std::vector<journal::TaskRow> done;
  std::vector<journal::TaskRow> done_for_retry;  // A priority counts when these are retried.
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const journal::TaskRow& task = chosen.tasks[i];
    if (replies[i].outcome == wire::Outcome::Done) {
      const bool runs = report::is_in(task.standing, TaskState::Running);
      (request.change == TaskChange::Priority && runs ? done_for_retry : done).push_back(task);
      continue;
    }
    std::string error = replies[i].outcome == wire::Outcome::Error
                            ? replies[i].text
                            : fmt::format("{} has started or ended meanwhile", shown_name(task));
    // An error of the whole run is the same for each task.
    if (!outcome.errors.empty() && outcome.errors.back() == error) continue;
    outcome.errors.push_back(std::move(error));
  }
  if (chosen.names_unchanged || !outcome.errors.empty()) outcome.code = run::ExitCode::TaskFailed;
  const std::string what = with_priority(words_of(request).done, request);
  if (!done_for_retry.empty()) {
    outcome.text = names_and_what(done_for_retry, what + ", which counts when it is retried");
  }
  if (outcome.text.empty() || !done.empty()) outcome.text += names_and_what(done, what);
  return outcome;
}

}  // namespace trainyard::app
