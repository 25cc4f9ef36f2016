#include "app/kill_tasks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/duration_text.h"
#include "link/control_client.h"
#include "model/status.h"

namespace trainyard::app {
namespace {

/// A task has ten seconds between TERM and KILL, and the answer comes when it is gone.
constexpr Duration kAfterTerm{30'000};

bool has_verdict(const journal::TaskRow& task) {
  return task.standing.verdict != model::Verdict::None;
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
  // The run may have ended with its last task, before it came to a task that needed that one.
  const bool has_no_run = reply.outcome == wire::Outcome::Error;
  // The task may have exited by itself before the signal reached it.
  const bool has_exited = reply.outcome == wire::Outcome::Done && started && !waited_for_retry &&
                          now.standing.failure != model::Failure::Killed;
  const bool is_late = has_verdict(now) && (has_no_run || has_exited);
  switch (is_late ? wire::Outcome::NotRunning : reply.outcome) {
    case wire::Outcome::Done:
      return {.text = name + (waited_for_retry ? " will not be retried\n"
                              : started        ? " was killed\n"
                                               : " will not start\n")};
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

}  // namespace trainyard::app
