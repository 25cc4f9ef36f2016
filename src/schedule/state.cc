#include "schedule/state.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "model/terms.h"
#include "schedule/printed_need.h"

namespace trainyard::schedule {
namespace {

/// The memory that a task was seen to take; of a GPU, what its message says that it needs.
Peak needed_by(const model::Usage& usage, Bytes of_gpu, std::string_view message) {
  const Bytes peak = std::max(usage.gpu_memory_peak, of_gpu);
  return {.memory = usage.memory_peak, .gpu_memory = std::max(peak, printed_need(message, peak))};
}

/// True if the task succeeded between its signal and TERM, and wrote its result: it was done before
/// its machine was taken away.
bool was_done_in_time(const Running& running, const model::AttemptEnded& event) {
  return running.cause == StopCause::TimeOver && !running.terminated &&
         event.end == model::End(model::ExitedWith{0}) && !event.result.empty();
}

/// An attempt that ended before it was stopped has not ended for that cause: its report or its
/// files were still in flight.
void forget_cause_if_late(Running& running, const model::AttemptEnded& event) {
  if (was_done_in_time(running, event)) running.cause = StopCause::None;
  // A task that never was has done nothing before the interrupt: judge_attempt() knows the rest.
  const bool never_was = std::holds_alternative<model::NotStarted>(event.end);
  if (never_was && running.cause == StopCause::Interrupt) return;
  const bool from_outside =
      running.cause == StopCause::TimeLimit || running.cause == StopCause::MemoryLimit ||
      running.cause == StopCause::KillAsked || running.cause == StopCause::Interrupt ||
      running.cause == StopCause::FailFast || is_interruption(running.cause);
  if (!from_outside || !running.told_to_end) return;
  // Of TERM the keeper knows whether it came too late. A signal before it may be why the task
  // exited, whether TERM reached the task or not.
  const bool is_term_late =
      !never_was && !event.told_to_end && running.terminated && !running.signalled;
  const bool is_earlier = event.ended && *event.ended < *running.told_to_end;
  if (is_term_late || is_earlier) running.cause = StopCause::None;
}

/// True if the task exited by itself, as a program does whose GPU is gone. Out of memory counts,
/// too.
bool failed_by_itself(const Ending& ending, StopCause cause, const std::optional<LastWord>& word) {
  const bool left_alone = cause == StopCause::None || cause == StopCause::Leaving;
  const bool trained = word && word->said == model::Said::Trained;
  return left_alone && !trained && may_be_its_own(ending.failure);
}

/// " (retry 2 of 2)", behind the message of the last of `tries`; empty for the first.
std::string retries_text(int tries, int tries_max) {
  if (tries <= 1) return {};
  return fmt::format("{}{} of {})", kRetriesOf, tries - 1, tries_max - 1);
}

void set_cause(Running& running, StopCause cause, Instant at) {
  running.cause = cause;
  running.told_to_end = at;
}

}  // namespace

Bytes grown(Bytes had, Bytes peak, Bytes most) {
  return std::max(had, std::min(most, std::max(model::more_memory(had), peak)));
}

Scheduler::State::State(const model::Policy& policy) : policy_(policy) {}

void Scheduler::State::sampled(Instant at, const model::Sampled& reading, model::Decision& out) {
  // First of all: the use of each task is read from the ledger from here on. A sample of an older
  // attempt says nothing about the one that runs.
  const auto is_old = [this](const model::TaskSample& sample) {
    const auto found = running_.find(sample.key.task);
    return found != running_.end() && found->second.key != sample.key;
  };
  MachineBook& book = machines_.at(reading.machine.value);
  if (!book.was_read) are_others_ = true;
  if (std::ranges::any_of(reading.tasks, is_old)) {
    model::Sampled fresh = reading;
    std::erase_if(fresh.tasks, is_old);
    book.see(fresh);
  } else {
    book.see(reading);
  }
  learn_from_running(book);
  end_those_over_their_limit(book, at, out);
  if (policy_.watches_memory) watch_memory(book, at, out);
  give_up_on_disk(at, out);
}

bool Scheduler::State::started(Instant at, const model::AttemptStarted& event,
                               model::Decision& out) {
  const auto found = running_.find(event.key.task);
  // Events of an older attempt are dropped.
  if (found == running_.end() || found->second.key != event.key || found->second.seen) return false;
  Running& running = found->second;
  running.seen = true;
  MachineBook& book = book_of(running);
  const bool held_back = book.start_pause.is_on();
  book.start_pause.start(at);
  waiting_.forget_refusals();
  refusals_.forget(event.key.task);
  running.started = std::max(running.started, std::min(event.began.value_or(at), at));
  running.is_capped = running.is_capped || !event.capped_by.empty();
  if (running.stage == Stage::Train) {
    running.training_since = running.started;
    enter(event.key.task, Status::Training, out);
  }
  const model::Shape& shape = shape_of(event.key.task);
  // The deadline is that of the signal, where there is one: TERM comes at the limit itself. One
  // that was asked to end before it was seen has the deadline of its grace.
  const Duration limit = time_limit_of(event.key.task);
  if (limit > Duration{0} && running.cause == StopCause::None) {
    const Duration left = running.time_left.value_or(limit) - shape.terms.early_signal.before;
    // A limit that was made shorter than the time of the signal causes the signal at once.
    set_deadline(running, at + std::max(Duration{0}, left));
  }
  running.time_left.reset();
  return held_back;
}

void Scheduler::State::ended(Instant at, const model::AttemptEnded& event, model::Decision& out) {
  const auto found = running_.find(event.key.task);
  if (found == running_.end() || found->second.key != event.key) return;
  const model::TaskIndex task = event.key.task;
  if (!found->second.seen && !std::holds_alternative<model::NotStarted>(event.end)) {
    // Nobody saw its start: it counts from the command to start it.
    static_cast<void>(
        started(found->second.started, {.key = event.key, .pid = 0, .capped_by = {}}, out));
  }
  forget_cause_if_late(found->second, event);
  // The cause of crowding is known only while the task is in the books. If the task reported its
  // end itself, it was looked up then.
  if (!found->second.word && found->second.cause == StopCause::None) {
    found->second.crowding = book_of(found->second).gpus.crowding_of(task);
  }
  set_deadline(found->second, std::nullopt);
  leave_room(found->second, out);
  set_ahead(found->second, false);
  // The task leaves all books before it is judged, so that its retry waits like any other task and
  // can get the room that this attempt released.
  Running running = std::move(found->second);
  running_.erase(found);
  // Nor is what it took without ending well a need of others that begin in this very turn.
  tell_taken(running, {});
  MachineBook& book = book_of(running);
  const auto* const not_started = std::get_if<model::NotStarted>(&event.end);
  const bool is_refused = not_started != nullptr && not_started->of_machine &&
                          refusals_.excuse(task, book.start_pause, policy_.machine_patience, at);
  if (is_refused) {
    // A task that alone is refused holds up no others.
    if (book.start_pause.is_on() || refusals_.delay_of(task) == Duration{0}) {
      book.start_pause.refuse(running.key, not_started->why, at);
      waiting_.refuse(task, tasks[task].shape);
    }
  } else if (book.start_pause.awaits(running.key)) {
    book.start_pause.end();
    waiting_.forget_refusals();
  }
  book.ledger.release(task);
  // An attempt that ended unseen, because its keeper died, was measured all the same.
  running.needed.gpu_memory = std::max(running.needed.gpu_memory, book.gpus.peak_of(task));
  running.lost_gpu = book.gpus.lost_gpu_of(task, at);
  book.gpus.release(task, at);
  if (!book.gpus.lingering().empty()) lingering_.insert(book.index);
  paces_.ended(task, event.end == model::End(model::ExitedWith{0}), at);
  groups_.task_stopped(group_of(task));
  conclude_attempt(running, event, at, out);
  // The answer says that it has ended, so it comes after that has been decided.
  for (const std::uint64_t request : running.kill_requests) {
    out.commands.emplace_back(model::Answer{.request = request, .done = true});
  }
  close_group_if_over(group_of(task), out);
  if (is_refused) give_up_on_machine(book, at, out);
}

/// Ends the run where nothing runs and the machine has refused to start anything for too long.
/// While tasks run, there is nothing to be gained by that, and their ends may give back what it is
/// short of.
void Scheduler::State::give_up_on_machine(const MachineBook& book, Instant at,
                                          model::Decision& out) {
  if (interrupts_ > 0 || !running_.empty()) return;
  if (!book.start_pause.has_lasted(policy_.machine_patience, at)) return;
  refused_by_machine_ = "cannot start tasks: " + book.start_pause.why();
  interrupted(at, {.why = refused_by_machine_}, out);
}

/// Judges by the report of the operating system, its own report, and the state of its GPUs.
Ending Scheduler::State::ending_of(Running& running, const model::AttemptEnded& event) const {
  const model::Terms& terms = shape_of(running.key.task).terms;
  JudgedAttempt judged =
      judge_attempt(event, {.two_phase = terms.two_phase,
                            .cause = running.cause,
                            .time_limit = {.limit = time_limit_of(running.key.task),
                                           .killed_after = running.killed_after},
                            .word = running.word,
                            .its_end_tells = running.its_end_tells,
                            .memory_peak = running.memory_peak,
                            .memory_limit = running.promise.memory,
                            .gpu_memory_limit = running.promise.gpu_memory});
  Ending& ending = judged.ending;
  if (judged.ran_out_by_its_errors) running.lack = lack_of(running, event.of_gpu);
  if (!failed_by_itself(ending, running.cause, running.word)) running.lost_gpu.reset();
  if (!running.lost_gpu) return std::move(ending);
  return {.verdict = model::Verdict::Failed,
          .failure = model::Failure::Lost,
          .message = fmt::format("{} did not answer while it ran: {}",
                                 book_of(running).names_of({*running.lost_gpu}), ending.message)};
}

/// Learns from a task that has finished and exited.
void Scheduler::State::learn_from(const Running& running, const model::Usage& usage,
                                  Instant ended) {
  const model::TaskIndex task = running.key.task;
  const model::GroupIndex group = group_of(task);
  // The memory of a task that was capped is not what it needs.
  const Bytes of_gpu = usage.gpu_capped ? Bytes{} : usage.gpu_memory_peak;
  estimates_.finished(
      tasks[task].shape,
      {.memory = std::max(usage.memory_peak, running.memory_peak), .gpu_memory = of_gpu});
  estimates_.took_of_gpu(group, shape_of(task).terms.request.gpu_memory, of_gpu);
  if (!running.training_since) return;
  const Duration took = std::max(ended - *running.training_since, Duration{0});
  for (Durations* const durations : {&durations_[group.value], &all_durations_}) {
    durations->add(took);
  }
}

void Scheduler::State::conclude_attempt(Running& running, const model::AttemptEnded& event,
                                        Instant at, model::Decision& out) {
  const model::TaskIndex task = event.key.task;
  const model::GroupIndex group = group_of(task);
  const model::Shape& shape = shape_of(task);
  if (died_of_warning(running, event.end)) running.cause = StopCause::TimeLimit;
  Ending ending = ending_of(running, event);
  running.needed = needed_by(event.usage, running.needed.gpu_memory, ending.message);
  const Setback setback = setback_of(running, ending);
  if (ending.of_machine && setback == Setback::Failed) {
    ending.message += "; other tasks were started meanwhile";
  }
  const bool out_of_memory = setback == Setback::OutOfMemory || setback == Setback::Preempted ||
                             setback == Setback::Crowded;
  // The task died before it could report that it loads.
  if (ending.failure == model::Failure::OutOfMemory && tasks[task].status == Status::Available) {
    begin_loading(task, out);
  }
  // The ranks of a two-phase task have reported themselves which of them failed.
  model::RanksAtEnd ranks = event.ranks;
  // The largest rank is known only for the machine's memory.
  if (running.lack != Lack::HostMemory) ranks.largest.reset();
  RankWords words = rank_words(ranks, ending, shape.terms.ranks);
  if (running.word) words.before.clear();
  ending.message = words.before + ending.message + words.after;
  const Instant ended = std::min(event.ended.value_or(at), at);
  const std::string again =
      same_failure_text(running, setback, ending.message, event.has_checkpoint, ended);
  const std::optional<AnotherTry> next = next_try(running, setback);
  tasks.count(task, setback, running.stage);
  if (next) {
    ending.message += again;
    return retry(running, setback, std::move(ending), *next, at, out);
  }
  if (out_of_memory) {
    ending.message = out_of_memory_text(running);
    if (!event.out_of_memory.empty()) {
      ending.message += ": " + words.before + event.out_of_memory;
    }
    const Tries& tries = tasks[task].tries;
    ending.message += words.after;
    // fedflow LoadNumbersExceed, TrainNumbersExceed.
    ending.message += retries_text(
        running.stage == Stage::Load ? tries.load_out_of_memory : tries.train_out_of_memory,
        memory_tries_max(running.stage, shape.terms, policy_));
  } else if (const int tries = tasks[task].tries.failed;
             tries > 1 && (setback == Setback::Failed || setback == Setback::TimeLimit)) {
    ending.message += retries_text(tries, shape.terms.retries.failures + 1);
  } else if (setback == Setback::TimeLimit && shape.terms.retries.failures > 0 &&
             !shape.terms.retries.after_time_limit) {
    ending.message += "; not retried: 'retry-on' does not include 'time-limit'";
  } else if (setback == Setback::Final && ending.failure == model::Failure::OutOfMemory &&
             running.cause == StopCause::None && running.lack == Lack::GpuMemory &&
             has_hard_gpu_limit(task)) {
    ending.message += fmt::format("; its limit is {} of its GPU (gpu-memory-limit: hard)",
                                  to_text(running.promise.gpu_memory));
  }
  ending.message += again;
  if (ending.verdict == model::Verdict::Finished) {
    learn_from(running, event.usage, ended);
    if (tasks[task].status != Status::Finished) enter(task, Status::Finished, out);
    if (is_tried_first(task)) end_trial(group, out);
    return conclude(task, Status::Exited, std::move(ending), out);
  }
  ending.stage = running.stage;
  if (ending.verdict == model::Verdict::Stopped) {
    const bool nothing_done = tasks[task].status == Status::Available;
    return conclude(task, nothing_done ? Status::Available : Status::Interrupt, std::move(ending),
                    out);
  }
  conclude(task, Status::Exception, ending, out);
  fail_trial(running, ending, out);
  if (groups_.planned(group).fail_fast) fail_fast(group, at, out);
}

bool Scheduler::State::somebody_waits(model::ShapeIndex shape) const {
  const model::GroupIndex group = shapes_[shape.value].group;
  if (groups_.phase(group) == model::GroupPhase::Running) {
    return waits_in_a_room(shape) || holds_any(shape) || not_yet_in_.contains(shape) ||
           aside_.contains(shape);
  }
  // The tasks of a group that is blocked wait in no room.
  const auto [first, last] = groups_.members(group);
  for (model::TaskIndex task = first; task < last; ++task.value) {
    if (tasks[task].shape == shape && tasks[task].verdict == model::Verdict::None) return true;
  }
  return false;
}

void Scheduler::State::interrupted(Instant at, const model::InterruptAsked& event,
                                   model::Decision& out) {
  if (++interrupts_ == 1 && !event.why.empty()) why_stopped_ = event.why;
  for (auto& [task, running] : running_) {
    if (interrupts_ == 1) end_for(running, StopCause::Interrupt, at, out);
    if (interrupts_ == 2 && !running.killed) {
      running.killed = true;
      set_deadline(running, std::nullopt);
      out.commands.emplace_back(model::StopAttempt{.key = running.key, .kill = true});
    }
  }
  // The first interrupt has ended all waiting, and nothing waits after it.
  if (interrupts_ > 1) return;
  for (std::uint32_t index = 0; index < groups_.size(); ++index) {
    const model::GroupIndex group{index};
    const model::GroupPhase phase = groups_.phase(group);
    if (phase == model::GroupPhase::Running) {
      for (const model::TaskIndex task : take_waiting(group)) {
        conclude_waiting(task, {.verdict = model::Verdict::Stopped, .message = why_stopped_}, out);
      }
      close_group_if_over(group, out);
    } else if (phase == model::GroupPhase::Blocked) {
      stop_blocked_group(group, out);
    }
  }
  for (std::uint32_t index = 0; index < shapes_.size(); ++index) set_reason({index}, {}, out);
}

void Scheduler::State::kill_asked(Instant at, const model::KillAsked& event, model::Decision& out) {
  if (const auto found = running_.find(event.task); found != running_.end()) {
    found->second.kill_requests.push_back(event.request);
    end_for(found->second, StopCause::KillAsked, at, out);
    return;
  }
  // One without a process has its end at once, and so has the request its answer.
  const bool waits = tasks.knows(event.task) && tasks[event.task].verdict == model::Verdict::None;
  out.commands.emplace_back(model::Answer{.request = event.request, .done = waits});
  if (!waits) return;
  const model::GroupIndex group = group_of(event.task);
  const model::ShapeIndex shape = tasks[event.task].shape;
  const bool delayed = delayed_.remove(event.task).has_value();
  if (delayed) leave_not_yet(event.task);
  const bool elsewhere = leave_aside(event.task) || delayed;
  const bool in_room = !elsewhere && groups_.phase(group) == model::GroupPhase::Running;
  if (in_room && !is_held(event.task)) waiting_.remove(event.task);
  const bool has_run = tasks[event.task].has_run();
  const bool is_retried = tasks[event.task].status == Status::Interrupt;
  conclude_waiting(event.task,
                   {.verdict = has_run ? model::Verdict::Failed : model::Verdict::Skipped,
                    .message = is_retried ? "killed on request while it waited for a retry"
                               : has_run  ? "killed on request before its next attempt"
                                          : "killed on request before it started"},
                   out);
  leave_trial(event.task, out);
  settle_reason(shape, out);
  // A task of a resumed run, or one that starts over, has not failed since: its kill stops no other
  // task, like that of a task without an attempt.
  const bool runs = groups_.phase(group) == model::GroupPhase::Running;
  if (is_retried && runs && groups_.planned(group).fail_fast) fail_fast(group, at, out);
  close_group_if_over(group, out);
}

void Scheduler::State::end_overdue(Instant at, model::Decision& out) {
  // Each round takes one attempt a step further (signal, TERM, KILL) and its deadline with it; KILL
  // leaves none. So this ends, whatever the graces are.
  while (!deadlines_.empty() && deadlines_.begin()->first <= at) {
    Running& running = running_.at(deadlines_.begin()->second);
    const bool on_its_own = running.cause == StopCause::None;
    if (on_its_own && running.word) {
      stop(running, StopCause::Leaving, at, out);
    } else if (on_its_own && wants_a_signal(running)) {
      signal_early(running, at, out);
    } else if (!running.terminated) {
      if (on_its_own) set_cause(running, StopCause::TimeLimit, at);
      terminate(running, at, out);
    } else {
      running.killed = true;
      running.killed_after = policy_.stop_grace;
      set_deadline(running, std::nullopt);
      out.commands.emplace_back(model::StopAttempt{.key = running.key, .kill = true});
    }
  }
}

std::optional<Instant> Scheduler::State::wakeup() const {
  std::optional<Instant> first = first_end_;
  const auto sooner = [&first](std::optional<Instant> at) {
    if (at) first = std::min(first.value_or(*at), *at);
  };
  if (!deadlines_.empty()) sooner(deadlines_.begin()->first);
  sooner(delayed_.first());
  sooner(gate_opens_at_);
  sooner(starts_again_at_);
  for (const model::MachineIndex machine : lingering_) {
    sooner(machines_[machine.value].gpus.first_linger_end());
  }
  for (const auto& [group, trial] : trials_) {
    if (const auto since = lives_since(trial)) sooner(*since + policy_.try_first_time);
  }
  return first;
}

/// Ends an attempt for good. An attempt that was stopped before for a cause of its own keeps that
/// cause, but is not retried any more.
void Scheduler::State::end_for(Running& running, StopCause cause, Instant at,
                               model::Decision& out) {
  running.for_good = true;
  const bool lacked_memory = running.word && running.word->said == model::Said::OutOfMemory;
  if (running.cause == StopCause::None) {
    stop(running, cause, at, out);
  } else if (running.cause == StopCause::OutOfMemory || is_interruption(running.cause) ||
             (running.cause == StopCause::Leaving && lacked_memory)) {
    running.cause = cause;
  }
}

void Scheduler::State::stop(Running& running, StopCause cause, Instant at, model::Decision& out) {
  set_cause(running, cause, at);
  leave_room(running, out);
  // An attempt that has sent its last message has nothing left to save.
  const bool last_word = cause == StopCause::Leaving || cause == StopCause::OutOfMemory;
  if (!last_word && wants_a_signal(running)) return signal_early(running, at, out);
  // If the signal has been sent before, TERM keeps the time that was given then.
  const bool has_time_left = running.signalled && running.deadline;
  if (last_word || !has_time_left) terminate(running, at, out);
}

bool Scheduler::State::wants_a_signal(const Running& running) const {
  return shape_of(running.key.task).terms.early_signal.number != 0 && !running.signalled;
}

/// The signal that announces its time limit ends what does not know it.
bool Scheduler::State::died_of_warning(const Running& running, const model::End& end) const {
  const auto* const killed = std::get_if<model::KilledBy>(&end);
  const int warning = shape_of(running.key.task).terms.early_signal.number;
  return running.cause == StopCause::None && !running.word && running.signalled &&
         killed != nullptr && killed->signal == warning;
}

/// Its TERM comes when the time is over that it wants between the two.
void Scheduler::State::signal_early(Running& running, Instant at, model::Decision& out) {
  const model::EarlySignal& early = shape_of(running.key.task).terms.early_signal;
  running.signalled = true;
  set_deadline(running, at + early.before);
  out.commands.emplace_back(model::SignalAttempt{.key = running.key, .signal = early.number});
}

void Scheduler::State::terminate(Running& running, Instant at, model::Decision& out) {
  running.terminated = true;
  set_deadline(running, at + policy_.stop_grace);
  out.commands.emplace_back(model::StopAttempt{.key = running.key, .kill = false});
}

void Scheduler::State::set_deadline(Running& running, std::optional<Instant> at) {
  if (running.deadline) deadlines_.erase({*running.deadline, running.key.task});
  running.deadline = at;
  if (at) deadlines_.insert({*at, running.key.task});
}

void Scheduler::State::enter(model::TaskIndex task, Status status, model::Decision& out) {
  tasks.enter(task, status);
  out.changes.emplace_back(
      model::TaskChanged{.key = {.task = task, .attempt = tasks[task].attempt},
                         .status = status,
                         .stage = status == Status::Loading ? Stage::Load : Stage::Train});
}

void Scheduler::State::conclude(model::TaskIndex task, Status status, Ending ending,
                                model::Decision& out) {
  if (tasks[task].status != status) tasks.enter(task, status);
  tasks.conclude(task, ending.verdict);
  groups_.task_concluded(group_of(task), ending.verdict);
  out.changes.emplace_back(model::TaskChanged{.key = {.task = task, .attempt = tasks[task].attempt},
                                              .status = status,
                                              .verdict = ending.verdict,
                                              .failure = ending.failure,
                                              .stage = ending.stage,
                                              .exit_code = ending.exit_code,
                                              .message = std::move(ending.message),
                                              .with_group = ending.with_group});
  retry_requests_.forget(task);
  refusals_.forget(task);
  retry_at_.erase(task);
  needs_.concluded(task, ending.verdict);
  // A user who holds a stopped task wants it held in a resumed run, too.
  const bool over = ending.verdict != model::Verdict::Stopped;
  if (over && on_hold_.erase(task) > 0) tell_what_is_said(task, out);
}

/// The failure is for a task that has been tried. None: it was killed.
void Scheduler::State::conclude_waiting(model::TaskIndex task, Ending ending,
                                        model::Decision& out) {
  passed_.erase(task);
  // A task that waits for another try has started, and cannot be skipped any more.
  const bool tried =
      ending.verdict == model::Verdict::Skipped && tasks[task].status == Status::Interrupt;
  if (tried) ending.verdict = model::Verdict::Failed;
  const bool failed = ending.verdict == model::Verdict::Failed;
  if (!failed) {
    ending.failure = model::Failure::None;
  } else if (ending.failure == model::Failure::None) {
    ending.failure = model::Failure::Killed;
  }
  conclude(task, failed ? Status::Exception : tasks[task].status, std::move(ending), out);
}

}  // namespace trainyard::schedule
