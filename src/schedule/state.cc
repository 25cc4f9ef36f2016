#include "schedule/state.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/waiting.h"
#include "schedule/ending.h"
#include "schedule/ledger.h"
#include "schedule/scheduler.h"
#include "schedule/task_table.h"

namespace trainyard {
namespace {

std::vector<std::uint32_t> open_by_group(const Plan& plan) {
  std::vector<std::uint32_t> open(plan.groups.size(), 0);
  for (const PlannedTask& task : plan.tasks) {
    if (!task.finished_before) ++open[plan.shapes[task.shape.value].group.value];
  }
  return open;
}

/// The tasks of a group stand together, in the order of the groups.
std::vector<std::pair<TaskIndex, TaskIndex>> members_by_group(const Plan& plan) {
  std::vector<std::pair<TaskIndex, TaskIndex>> members(plan.groups.size());
  std::uint32_t next = 0;
  for (std::uint32_t group = 0; group < plan.groups.size(); ++group) {
    members[group].first = {next};
    while (next < plan.tasks.size() && plan.shape_of(TaskIndex{next}).group.value == group) {
      ++next;
    }
    members[group].second = {next};
  }
  check(next == plan.tasks.size(), "the tasks of a plan come group by group");
  return members;
}

}  // namespace

Bytes grown(Bytes had, Bytes peak, Bytes most) {
  return std::max(had, std::min(most, std::max(had + Bytes{had.count / 5}, peak)));
}

Scheduler::State::State(const Plan& plan, const Limits& limits, const Capacity& capacity)
    : tasks(plan.tasks),
      shapes_(plan.shapes),
      members_(members_by_group(plan)),
      limits_(limits),
      capacity_(capacity),
      groups_(plan.groups, open_by_group(plan)),
      ledger_(limits, capacity),
      gpus_(limits, capacity),
      chooser_(limits, capacity),
      durations_(plan.groups.size()),
      reasons_(plan.shapes.size()),
      noted_in_(plan.shapes.size(), 0) {}

void Scheduler::State::begin(Instant /*at*/, const Sampled& machine, Decision& out) {
  begun = true;
  ledger_.see(machine);
  // Groups that ended in an earlier execution end again first, so that the others see it.
  look_at_blocked_groups(out);
  std::vector<bool> open(shapes_.size(), false);
  for (TaskIndex task{0}; tasks.knows(task); ++task.value) {
    if (tasks[task].verdict == Verdict::None) open[tasks[task].shape.value] = true;
  }
  for (std::uint32_t index = 0; index < shapes_.size(); ++index) {
    const GroupIndex group = shapes_[index].group;
    if (groups_.phase(group) != GroupPhase::Blocked || !open[index]) continue;
    std::string names;
    for (const GroupIndex needed : groups_.planned(group).needs) {
      const GroupPhase phase = groups_.phase(needed);
      if (phase != GroupPhase::Blocked && phase != GroupPhase::Running) continue;
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", groups_.planned(needed).name);
    }
    set_reason({index}, {.cause = Cause::Group, .needs = {}, .groups = std::move(names)}, out);
  }
}

void Scheduler::State::sampled(Instant at, const Sampled& reading, Decision& out) {
  ledger_.see(reading);
  learn_from_running();
  end_those_over_their_limit(at, out);
  if (limits_.watches_memory) watch_memory(at, out);
}

void Scheduler::State::started(Instant at, const AttemptStarted& event, Decision& out) {
  const auto found = running_.find(event.key.task);
  // What an older attempt says is dropped.
  if (found == running_.end() || found->second.key != event.key || found->second.seen) return;
  Running& running = found->second;
  running.seen = true;
  running.started = at;
  if (running.stage == Stage::Train) {
    running.training_since = at;
    tasks.count_try(event.key.task, Stage::Train);
    enter(event.key.task, Status::Training, out);
  }
  const Shape& shape = shape_of(event.key.task);
  if (shape.time_limit > Duration{0} && running.cause == StopCause::None) {
    set_deadline(running, at + (shape.time_limit - shape.early_signal.before));
  }
}

void Scheduler::State::ended(Instant at, const AttemptEnded& event, Decision& out) {
  const auto found = running_.find(event.key.task);
  if (found == running_.end() || found->second.key != event.key) return;
  const TaskIndex task = event.key.task;
  if (!found->second.seen && !std::holds_alternative<NotStarted>(event.end)) {
    // Nobody saw when it began: it counts from when it was asked for.
    started(found->second.started, {.key = event.key, .pid = 0}, out);
  }
  set_deadline(found->second, std::nullopt);
  leave_room(found->second, out);
  set_ahead(found->second, false);
  Running running = std::move(found->second);
  running_.erase(found);
  ledger_.release(task);
  gpus_.release(task, at);
  groups_.task_stopped(group_of(task));
  conclude_attempt(running, event, at, out);
  for (const std::uint64_t request : running.kill_requests) {
    out.commands.emplace_back(AnswerKill{.request = request, .done = true});
  }
  close_group_if_over(group_of(task), out);
}

void Scheduler::State::conclude_attempt(Running& running, const AttemptEnded& event, Instant at,
                                        Decision& out) {
  const TaskIndex task = event.key.task;
  const GroupIndex group = group_of(task);
  const Shape& shape = shape_of(task);
  Ending ending = shape.two_phase ? judge_two_phase(event.end, running.cause, shape.time_limit,
                                                    running.word, running.its_end_tells)
                                  : judge(event.end, running.cause, shape.time_limit);
  // A plain command says so on its standard error alone.
  const bool by_itself = ending.failure == Failure::Exit || ending.failure == Failure::Killed;
  if (by_itself && running.cause == StopCause::None && !running.word &&
      !event.out_of_memory.empty()) {
    running.lack = lack_of(running, event.of_gpu);
    ending = {.verdict = Verdict::Failed,
              .failure = Failure::OutOfMemory,
              .message = event.out_of_memory};
  }
  // One that has trained is not trained again because its end went wrong.
  const bool out_of_memory =
      ending.failure == Failure::OutOfMemory && tasks[task].status != Status::Finished;
  if (out_of_memory) {
    // It died before it could say that it loads.
    if (tasks[task].status == Status::Available) begin_loading(task, out);
    const bool preempted = running.cause == StopCause::Preempted;
    if (running.stage == Stage::Load && !preempted) ++load_failures_[task];
    const bool again = preempted ? interrupts_ == 0 : may_try_again(task, running.stage);
    const bool over_limit = was_over_limit(event.end, running.cause);
    if (again && !over_limit) return retry(running, event.usage, ending, out);
    if (!over_limit) ending.message = tries_text(running);
    if (!over_limit && !event.out_of_memory.empty()) ending.message += ": " + event.out_of_memory;
  }
  if (running.cause == StopCause::None) add_last_words(ending, event.last_words);
  if (ending.verdict == Verdict::Finished) {
    estimates_.finished(tasks[task].shape,
                        {.memory = std::max(event.usage.memory_peak, running.memory_peak),
                         .gpu_memory = event.usage.gpu_memory_peak});
    if (running.training_since) {
      const Duration took = at - *running.training_since;
      for (Durations* const durations : {&durations_[group.value], &all_durations_}) {
        ++durations->count;
        durations->sum += took;
        durations->longest = std::max(durations->longest, took);
      }
    }
    if (tasks[task].status != Status::Finished) enter(task, Status::Finished, out);
    return conclude(task, Status::Exited, std::move(ending), out);
  }
  ending.stage = running.stage;
  if (ending.verdict == Verdict::Stopped) {
    const bool nothing_done = tasks[task].status == Status::Available;
    return conclude(task, nothing_done ? Status::Available : Status::Interrupt, std::move(ending),
                    out);
  }
  conclude(task, Status::Exception, std::move(ending), out);
  if (groups_.planned(group).fail_fast) fail_fast(group, at, out);
}

bool Scheduler::State::somebody_waits(ShapeIndex shape) const {
  const GroupIndex group = shapes_[shape.value].group;
  if (groups_.phase(group) == GroupPhase::Running) return waits_in_a_room(shape);
  const auto [first, last] = members_[group.value];
  for (TaskIndex task = first; task < last; ++task.value) {
    if (tasks[task].shape == shape && tasks[task].verdict == Verdict::None) return true;
  }
  return false;
}

bool Scheduler::State::may_try_again(TaskIndex task, Stage stage) const {
  if (interrupts_ > 0) return false;
  if (stage == Stage::Train) {
    return tasks[task].train_tries < std::min(limits_.train_retries, TaskTable::kTriesMax);
  }
  const auto failures = load_failures_.find(task);
  return failures == load_failures_.end() || failures->second < limits_.load_retries;
}

/// Why it is not tried again: fedflow's LoadNumbersExceed and TrainNumbersExceed (F-046, F-047),
/// which a task with stages is told by these names.
std::string Scheduler::State::tries_text(const Running& running) const {
  const TaskIndex task = running.key.task;
  const bool load = running.stage == Stage::Load;
  const bool stages = shape_of(task).two_phase;
  const std::string_view name = load ? "LoadNumbersExceed: " : "TrainNumbersExceed: ";
  return fmt::format("{}out of memory {} {} of {} tries (scheduler.{}-nretry), last with {}",
                     stages ? name : "", load ? "while it loaded, in" : "in",
                     load ? load_failures_.at(task) : tasks[task].train_tries,
                     load ? limits_.load_retries : limits_.train_retries, load ? "load" : "train",
                     tried_with(running.lack, running.promise));
}

Scheduler::State::Lack Scheduler::State::lack_of(const Running& running, bool of_gpu) {
  if (!of_gpu) return Lack::HostMemory;
  return running.gpus.empty() ? Lack::GpuNotGiven : Lack::GpuMemory;
}

std::string Scheduler::State::tried_with(Lack lack, const Request& promise) {
  switch (lack) {
    case Lack::HostMemory:
      return to_text(promise.memory);
    case Lack::GpuMemory:
      return gpu_promise_text(promise);
    case Lack::GpuNotGiven:
      break;
  }
  return "no GPU of its own ('gpu-memory' asks for one)";
}

Bytes Scheduler::State::grown_request(const Running& running, Bytes peak) const {
  return grown(running.promise.memory, peak,
               capacity_.memory - memory_kept_free(limits_, capacity_));
}

/// It ran out of memory, and is tried again with so much.
void Scheduler::State::send_back(const Running& running, const std::string& why,
                                 const std::string& with, Decision& out) {
  tasks.enter(running.key.task, Status::Interrupt);
  out.changes.emplace_back(
      TaskChanged{.key = running.key,
                  .status = Status::Interrupt,
                  .failure = Failure::OutOfMemory,
                  .stage = running.stage,
                  .message = fmt::format("{}; tried again with {}", why, with)});
}

void Scheduler::State::retry(const Running& running, const Usage& usage, const Ending& ending,
                             Decision& out) {
  const TaskIndex task = running.key.task;
  Bytes memory = running.promise.memory;
  if (running.cause == StopCause::Preempted) {
    // It did not fail: the try does not count, and it asks for more only where it took more.
    if (running.stage == Stage::Train) tasks.take_back_try(task);
    memory = std::max(memory, std::min(running.memory_peak,
                                       capacity_.memory - memory_kept_free(limits_, capacity_)));
    send_back(running, ending.message, to_text(memory), out);
  } else if (running.lack == Lack::GpuMemory) {
    Request again = running.promise;
    again.gpu_memory = grown_gpu_request(running, usage.gpu_memory_peak);
    grown_gpu_[task] = again.gpu_memory;
    send_back(running, ending.message, tried_with(running.lack, again), out);
  } else if (running.lack == Lack::GpuNotGiven) {
    send_back(running, ending.message, tried_with(running.lack, running.promise), out);
  } else {
    memory = grown_request(running, usage.memory_peak);
    send_back(running, ending.message, to_text(memory), out);
  }
  waiting_.add(task, tasks[task].shape, group_of(task), request_to_start(task, memory));
  fresh_lanes_ = true;
}

void Scheduler::State::interrupted(Instant at, Decision& out) {
  ++interrupts_;
  for (auto& [task, running] : running_) {
    if (interrupts_ == 1) end_for(running, StopCause::Interrupt, at, out);
    if (interrupts_ == 2 && !running.killed) {
      running.killed = true;
      set_deadline(running, std::nullopt);
      out.commands.emplace_back(StopAttempt{.key = running.key, .kill = true});
    }
  }
  if (interrupts_ > 1) return;
  for (std::uint32_t index = 0; index < groups_.size(); ++index) {
    const GroupIndex group{index};
    const GroupPhase phase = groups_.phase(group);
    if (phase == GroupPhase::Running) {
      for (const TaskIndex task : waiting_.clear(group)) {
        conclude_waiting(task, Verdict::Stopped, "the run was interrupted", out);
      }
      close_group_if_over(group, out);
    } else if (phase == GroupPhase::Blocked) {
      for (TaskIndex task = members_[index].first; task < members_[index].second; ++task.value) {
        if (tasks[task].verdict != Verdict::None) continue;
        conclude_waiting(task, Verdict::Stopped, "the run was interrupted", out);
      }
      groups_.enter(group, GroupPhase::Stopped);
      out.changes.emplace_back(GroupChanged{.group = group, .phase = GroupPhase::Stopped});
    }
  }
  for (std::uint32_t index = 0; index < shapes_.size(); ++index) clear_reason({index}, out);
}

void Scheduler::State::kill_asked(Instant at, const KillAsked& event, Decision& out) {
  if (const auto found = running_.find(event.task); found != running_.end()) {
    found->second.kill_requests.push_back(event.request);
    end_for(found->second, StopCause::KillAsked, at, out);
    return;
  }
  const bool waits = tasks.knows(event.task) && tasks[event.task].verdict == Verdict::None;
  out.commands.emplace_back(AnswerKill{.request = event.request, .done = waits});
  if (!waits) return;
  const GroupIndex group = group_of(event.task);
  const ShapeIndex shape = tasks[event.task].shape;
  if (groups_.phase(group) == GroupPhase::Running) waiting_.remove(event.task);
  const bool tried = tasks[event.task].status == Status::Interrupt;
  conclude_waiting(event.task, Verdict::Skipped,
                   tried ? "killed on request while it waited for another try"
                         : "killed on request before it started",
                   out);
  if (!somebody_waits(shape)) clear_reason(shape, out);
  const bool failed = tasks[event.task].verdict == Verdict::Failed;
  if (failed && groups_.planned(group).fail_fast) fail_fast(group, at, out);
  close_group_if_over(group, out);
}

void Scheduler::State::end_overdue(Instant at, Decision& out) {
  while (!deadlines.empty() && deadlines.begin()->first <= at) {
    Running& running = running_.at(deadlines.begin()->second);
    const bool on_its_own = running.cause == StopCause::None;
    if (on_its_own && running.word) {
      stop(running, StopCause::Leaving, at, out);
    } else if (on_its_own && wants_a_signal(running)) {
      signal_early(running, at, out);
    } else if (!running.terminated) {
      if (on_its_own) running.cause = StopCause::TimeLimit;
      terminate(running, at, out);
    } else {
      running.killed = true;
      set_deadline(running, std::nullopt);
      out.commands.emplace_back(StopAttempt{.key = running.key, .kill = true});
    }
  }
}

/// Ends one for good. What was told to end before for a cause of its own keeps that, but one that
/// was to be tried again will not be.
void Scheduler::State::end_for(Running& running, StopCause cause, Instant at, Decision& out) {
  const bool lacked_memory = running.word && running.word->said == Said::OutOfMemory;
  if (running.cause == StopCause::None) {
    stop(running, cause, at, out);
  } else if (running.cause == StopCause::OutOfMemory || running.cause == StopCause::Preempted ||
             (running.cause == StopCause::Leaving && lacked_memory)) {
    running.cause = cause;
  }
}

void Scheduler::State::stop(Running& running, StopCause cause, Instant at, Decision& out) {
  running.cause = cause;
  leave_room(running, out);
  // One that has said its last word has nothing left to save.
  const bool last_word = cause == StopCause::Leaving || cause == StopCause::OutOfMemory;
  if (!last_word && wants_a_signal(running)) return signal_early(running, at, out);
  const bool has_time_left = running.signalled && running.deadline;
  if (last_word || !has_time_left) terminate(running, at, out);
}

bool Scheduler::State::wants_a_signal(const Running& running) const {
  return shape_of(running.key.task).early_signal.number != 0 && !running.signalled;
}

/// Its TERM comes when the time is over that it wants between the two.
void Scheduler::State::signal_early(Running& running, Instant at, Decision& out) {
  const EarlySignal& early = shape_of(running.key.task).early_signal;
  running.signalled = true;
  set_deadline(running, at + early.before);
  out.commands.emplace_back(SignalAttempt{.key = running.key, .signal = early.number});
}

void Scheduler::State::terminate(Running& running, Instant at, Decision& out) {
  running.terminated = true;
  set_deadline(running, at + limits_.stop_grace);
  out.commands.emplace_back(StopAttempt{.key = running.key, .kill = false});
}

void Scheduler::State::set_deadline(Running& running, std::optional<Instant> at) {
  if (running.deadline) deadlines.erase({*running.deadline, running.key.task});
  running.deadline = at;
  if (at) deadlines.insert({*at, running.key.task});
}

void Scheduler::State::enter(TaskIndex task, Status status, Decision& out) {
  tasks.enter(task, status);
  out.changes.emplace_back(
      TaskChanged{.key = {.task = task, .attempt = tasks[task].attempt},
                  .status = status,
                  .stage = status == Status::Loading ? Stage::Load : Stage::Train});
}

void Scheduler::State::conclude(TaskIndex task, Status status, Ending ending, Decision& out) {
  if (tasks[task].status != status) tasks.enter(task, status);
  tasks.conclude(task, ending.verdict);
  groups_.task_concluded(group_of(task), ending.verdict);
  out.changes.emplace_back(TaskChanged{.key = {.task = task, .attempt = tasks[task].attempt},
                                       .status = status,
                                       .verdict = ending.verdict,
                                       .failure = ending.failure,
                                       .stage = ending.stage,
                                       .exit_code = ending.exit_code,
                                       .message = std::move(ending.message)});
  load_failures_.erase(task);
  grown_gpu_.erase(task);
}

/// `failure` is for one that has been tried.
void Scheduler::State::conclude_waiting(TaskIndex task, Verdict verdict, const std::string& message,
                                        Decision& out, Failure failure) {
  passed_.erase(task);
  // One that waits for another try has started, and cannot be skipped any more.
  if (verdict == Verdict::Skipped && tasks[task].status == Status::Interrupt) {
    conclude(task, Status::Exception,
             {.verdict = Verdict::Failed, .failure = failure, .message = message}, out);
    return;
  }
  conclude(task, tasks[task].status, {.verdict = verdict, .message = message}, out);
}

}  // namespace trainyard
