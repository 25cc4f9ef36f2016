// The part of the checkers that looks at what was decided: changes and commands, one by one.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/terms.h"
#include "model/waiting.h"
#include "sim/checkers.h"
#include "sim/faults.h"
#include "sim/outside.h"

namespace trainyard::sim {

void Checkers::changed(const model::TaskChanged& change) {
  const model::TaskIndex index = change.key.task;
  expect(index.value < outside_.tasks.size(), "only tasks of the plan change");
  if (complaint_) return;
  if (change.status == Status::Init && change.verdict == model::Verdict::None) {
    return began_anew(change);
  }
  SeenTask& task = outside_.task(index);
  expect_of(index, task.verdict == model::Verdict::None,
            "nothing is said of a task after its verdict");
  const bool stays = change.status == task.status && change.verdict != model::Verdict::None;
  expect_of(index, stays || model::may_follow(task.status, change.status),
            "its status follows an arrow of the picture");
  const bool is_grant = change.status == Status::Training && outside_.two_phase(index);
  if (is_grant) {
    expect_of(index, change.key.attempt == task.attempt, "what is said is about its last attempt");
    expect_of(index, granted_.insert(index).second, "is granted its device once");
  } else if (change.status == Status::Available && change.verdict == model::Verdict::None) {
    expect_of(index, change.key.attempt == task.next_attempt, "attempts are numbered one by one");
    expect_of(index, granted_.insert(index).second, "is granted its request once");
    expect_of(index, !task.begins_at, "starts no earlier than it is to");
    task.attempt = change.key.attempt;
    task.next_attempt = change.key.attempt + 1;
  } else {
    expect_of(index, change.key.attempt == task.attempt, "what is said is about its last attempt");
    if (about_ == index) entered_.push_back(change.status);
  }
  if (change.verdict != model::Verdict::None) check_verdict(change, task);
  const bool retried = change.status == Status::Interrupt && change.verdict == model::Verdict::None;
  expect_of(index, !retried || about_ == index, "is tried again when its attempt has ended");
  expect_of(index, !retried || change.failure != model::Failure::None,
            "what is tried again has failed");
  const bool has_begun = task.status != Status::Init;
  task.status = change.status;
  task.verdict = change.verdict;
  task.failure = change.failure;
  if (change.verdict == model::Verdict::None) return;
  if (!task.back_at) --outside_.waiting_in[task.shape.value];
  task.back_at.reset();
  task.begins_at.reset();
  outside_.waiting.erase(index);
  outside_.aside.erase(index);
  SeenGroup& group = outside_.groups[task.group.value];
  --group.open;
  if (about_ != index) outside_.leave_trial(index);
  // A task that is killed before its next attempt, in a resumed run or after it began anew, stops
  // no other.
  if (change.verdict == model::Verdict::Failed && has_begun &&
      group.phase == model::GroupPhase::Running &&
      outside_.plan.groups[task.group.value].fail_fast) {
    group.tripped = true;
    for (auto& [other, attempt] : outside_.running) {
      if (outside_.task(other).group == task.group) not_again(attempt, StopReason::FailFast);
    }
  }
  outside_.let_in();
}

void Checkers::check_verdict(const model::TaskChanged& change, const SeenTask& before) {
  const model::TaskIndex index = change.key.task;
  expect_of(index, change.message.empty() == (change.verdict == model::Verdict::Finished),
            "a bad end is explained, a good one is not");
  expect_of(index,
            (change.verdict == model::Verdict::Failed) == (change.failure != model::Failure::None),
            "a failure has a kind, and nothing else has");
  expect_of(index, !outside_.running.contains(index), "a running task has no verdict");
  if (about_ == index) {
    expect_of(index, change.verdict == expected_.verdict, "its verdict is that of its end");
    expect_of(index, change.failure == expected_.failure, "its failure is that of its end");
    expect_of(index, change.exit_code == expected_.exit_code, "its exit code is that of its end");
    return;
  }
  const SeenGroup& group = outside_.groups[before.group.value];
  // One that starts over has run before, and to kill it is no skip.
  const bool tried = before.attempt != 0 || (kill_of_ == index && before.next_attempt > 1);
  if (outside_.interrupts > 0) {
    const bool killed = kill_of_ == index;
    expect_of(index, killed || change.verdict == model::Verdict::Stopped,
              "waits when the run is interrupted, and is stopped");
    return;
  }
  if (follows_from_needs(index, change.verdict)) {
    if (change.verdict == model::Verdict::Skipped) lost_needs_.insert(before.group);
    counts_.count(change.verdict == model::Verdict::NotNeeded ? Fault::NotNeeded
                                                              : Fault::SkippedForNeeds);
    return;
  }
  const bool no_gpu = !outside_.gpus.may_ever_fit(outside_.whole(index), now_);
  const bool has_cause = kill_of_ == index || group.tripped || group.first_failed || no_gpu;
  expect_of(index, has_cause, "one that waits ends only for a cause");
  const model::Verdict right = tried ? model::Verdict::Failed : model::Verdict::Skipped;
  expect_of(index, change.verdict == right,
            "one that waits is skipped when it never started, and fails when it did");
}

void Checkers::changed(const model::GroupChanged& change) {
  expect(change.group.value < outside_.groups.size(), "only groups of the plan change");
  if (complaint_) return;
  SeenGroup& group = outside_.groups[change.group.value];
  const auto& needs = outside_.plan.groups[change.group.value].needs;
  const auto phase_of = [&](model::GroupIndex other) { return outside_.groups[other.value].phase; };
  const auto is_over = [&](model::GroupIndex other) {
    return phase_of(other) != model::GroupPhase::Blocked &&
           phase_of(other) != model::GroupPhase::Running;
  };
  // An interrupt ends a blocked group by the verdicts of its tasks.
  const bool ends_blocked = group.phase == model::GroupPhase::Blocked && outside_.interrupts > 0;
  bool order = false;
  switch (change.phase) {
    case model::GroupPhase::Blocked:
      order = may_be_blocked_again(group);
      group = {.since = group.since,
               .open = group.open,
               .ended_well = group.ended_well,
               .durations = group.durations,
               .longest = group.longest};
      break;
    case model::GroupPhase::Running:
      order = group.phase == model::GroupPhase::Blocked && outside_.interrupts == 0 &&
              std::ranges::all_of(needs, [&](model::GroupIndex it) {
                return phase_of(it) == model::GroupPhase::Finished ||
                       (outside_.is_patient(change.group) && is_over(it));
              });
      break;
    case model::GroupPhase::Skipped: {
      const bool for_its_needs = group.phase == model::GroupPhase::Blocked && !ends_blocked &&
                                 !outside_.is_patient(change.group) &&
                                 std::ranges::any_of(needs, [&](model::GroupIndex it) {
                                   return phase_of(it) == model::GroupPhase::Failed ||
                                          phase_of(it) == model::GroupPhase::Skipped;
                                 });
      // A group whose tasks had all been killed before has no other cause.
      const bool has_cause = for_its_needs && lost_needs_.contains(change.group);
      order = group.open == 0 && has_cause != change.message.empty() &&
              (for_its_needs || ends_blocked || group.phase == model::GroupPhase::Running);
      break;
    }
    case model::GroupPhase::Finished:
      order = group.phase == model::GroupPhase::Running && group.open == 0;
      break;
    case model::GroupPhase::Failed:
    case model::GroupPhase::Stopped:
      order = (group.phase == model::GroupPhase::Running || ends_blocked) && group.open == 0;
      break;
  }
  expect(order, "groups run in the order of their needs, and end when their tasks have");
  group.after_failure = outside_.needs_a_bad_group(change.group);
  const bool ends_by_verdicts = ends_blocked || group.phase == model::GroupPhase::Running;
  group.phase = change.phase;
  if (change.phase == model::GroupPhase::Running) outside_.open(change.group);
  bool finished = false;
  bool failed = false;
  bool skipped = false;
  bool stopped = false;
  for (const SeenTask& task : outside_.tasks) {
    if (task.group != change.group) continue;
    finished = finished || task.verdict == model::Verdict::Finished;
    failed = failed || task.verdict == model::Verdict::Failed;
    skipped = skipped || task.verdict == model::Verdict::Skipped;
    stopped = stopped || task.verdict == model::Verdict::Stopped;
  }
  if (change.phase == model::GroupPhase::Finished) {
    expect(!failed && !skipped && !stopped, "a group has finished when all of its tasks have");
  } else if (change.phase == model::GroupPhase::Failed) {
    expect((failed || (skipped && finished)) && !stopped,
           "a group has failed when a task of it has, or only some of them ran");
  } else if (change.phase == model::GroupPhase::Skipped && ends_by_verdicts) {
    expect(skipped && !finished && !failed && !stopped,
           "a group is skipped when none of its tasks ran");
  }
}

void Checkers::changed(const model::ReasonChanged& change) {
  expect(change.shape.value < outside_.reasons.size(), "only shapes of the plan have reasons");
  if (complaint_) return;
  model::Reason& told = outside_.reasons[change.shape.value];
  expect(told != change.reason, "a reason is told when it changes");
  if (change.reason.cause == model::Cause::NotYet) {
    const model::Shape& shape = outside_.plan.shapes[change.shape.value];
    const Instant since = outside_.groups[shape.group.value].since;
    expect(change.reason.not_before == since + shape.terms.start_after,
           "when those may start that wait for their time is said");
  }
  told = change.reason;
}

void Checkers::changed(const model::HeadroomSeen& change) {
  outside_.room_known = true;
  said_free_ = change.headroom;
}

/// The speed of tasks cannot be seen from outside: the checkers trust the report.
void Checkers::changed(const model::SharingMeasured& change) {
  constexpr int kMeasuredLeast = 3;
  expect(change.shape.value < outside_.told_per_gpu_max.size(),
         "only shapes of the plan are priced");
  if (complaint_) return;
  expect(change.to_a_gpu >= 0 && change.to_a_gpu_max >= 0, "nothing is shared by less than nobody");
  expect(change.to_a_gpu == 0 || change.tasks >= kMeasuredLeast,
         "what sharing gains is told of several tasks");
  expect(change.to_a_gpu != 1 || (change.to_a_gpu_max > 0 && change.factor == 1),
         "one to a GPU is best where more of them are known to gain nothing");
  expect(change.to_a_gpu_max == 0 || change.to_a_gpu <= change.to_a_gpu_max,
         "what gains most is not forbidden");
  outside_.told_per_gpu_max[change.shape.value] = change.to_a_gpu_max;
}

void Checkers::changed(const model::Reached& change) {
  expect_of(change.task, reached_due_ == change,
            "what is written down of it for a resumed run is what it asks for, and its tries");
  reached_due_.reset();
}

void Checkers::changed(const model::Learned& change) {
  expect(change.shape.value < outside_.reasons.size(), "only shapes of the plan are learned");
  learned_[change.shape] = change;
}

void Checkers::check_learned(model::TaskIndex index, Bytes asked, Bytes given, Bytes written,
                             Bytes model::Learned::* told) {
  if (asked != written || given == written) return;
  const auto found = learned_.find(outside_.task(index).shape);
  const Bytes said = found == learned_.end() ? Bytes{} : found->second.*told;
  expect_of(index, std::abs(given.count - said.count) * 10 < std::max<std::int64_t>(said.count, 1),
            "what it is given as others took it is told, to a tenth");
}

void Checkers::decided(const model::StartAttempt& command) {
  const model::TaskIndex index = command.key.task;
  expect_of(index, granted_.erase(index) == 1, "is started when it was granted its request");
  if (complaint_) return;
  pass_those_before({}, index);
  pass_those_without_disk(index);
  check_start(command, outside_.task(index));
  if (complaint_) return;
  count_pass(index, command.site.gpus);
  outside_.grant(command, now_);
  outside_.running.at(index).cap = command.gpu_memory_max;
  caps_.emplace_back(index, command.gpu_memory_max);
}

void Checkers::check_start(const model::StartAttempt& command, const SeenTask& task) {
  const model::TaskIndex index = command.key.task;
  expect_of(index, command.key.attempt == task.attempt, "is started under its attempt's number");
  expect_of(index, !outside_.is_held(index), "starts after the one that is tried first is done");
  expect_of(index, outside_.waiting.contains(index), "only a task that waits is started");
  expect_of(index, outside_.interrupts == 0, "nothing starts after an interrupt");
  const SeenGroup& group = outside_.groups[task.group.value];
  expect_of(index, group.phase == model::GroupPhase::Running, "starts while its group runs");
  expect_of(index, !group.tripped, "nothing of a group starts after it failed fast");
  // A task that failed may have begun anew since; a task that runs whatever becomes of it does not
  // mind.
  const bool wants_success = outside_.shape_of(index).terms.run_if == model::RunIf::Success;
  expect_of(index, !wants_success || outside_.fate_of(index) == Outside::Fate::Runs,
            "starts after all that it and its group need has finished");
  expect_of(index, !task.on_hold, "does not start while it is on hold");
  const bool first = task.attempt == outside_.plan.tasks[index.value].first_attempt;
  if (first && task.goes_on) counts_.count(Fault::GoesOn);
  const model::Request& written = outside_.shape_of(index).terms.request;
  check_learned(index, task.request.memory, command.promise.memory, written.memory,
                &model::Learned::memory);
  if (command.promise.gpus > 0 && !task.gpu_request.largest) {
    check_learned(index, task.gpu_request.gpu_memory, command.promise.gpu_memory,
                  written.gpu_memory, &model::Learned::gpu_memory);
  }
  expect_of(index, first || task.again, "is not tried more often than it may be");
  expect_of(index, !outside_.two_phase(index) || outside_.may_load_ahead(index),
            "no more are loaded ahead than may be");
  expect_of(index, outside_.group_has_room(task.group), "starts within max-parallel");
  expect_of(index, std::cmp_less(outside_.running.size(), outside_.processes_max()),
            "starts within max-process");
  expect_of(index, !outside_.keeper_silent, "starts while the keeper answers");
  expect_of(index, !outside_.is_paused(), "starts when its machine does not refuse to start tasks");
  const bool is_first = std::ranges::none_of(outside_.waiting, [&](model::TaskIndex other) {
    const SeenTask& it = outside_.task(other);
    return it.shape == task.shape && it.request == task.request &&
           it.gpu_request == task.gpu_request && it.refusals < task.refusals;
  });
  expect_of(index, is_first, "starts after those like it that were refused less often");
  expect_of(index, outside_.may_use_cpus(index), "starts while others leave it the CPUs");
  expect_of(index, command.promise == outside_.due(index), "is promised what it asks for");
  expect_of(index, command.promise.cpus <= outside_.cpus_free(), "no CPU is promised twice");
  expect_of(index, command.promise.memory <= outside_.memory_free_by_ledger(),
            "no byte is promised twice");
  expect_of(index, command.promise.memory <= outside_.memory_free_by_reading(),
            "what is promised is there");
  expect_of(index, command.promise.disk == Bytes{} || command.promise.disk <= outside_.disk_free(),
            "no part of the disk is promised twice");
  check_gpus(index, command.promise, command.site.gpus);
  check_limit(index, command.promise, command.memory_max);
}

void Checkers::check_limit(model::TaskIndex index, const model::Request& promise,
                           Bytes memory_max) {
  const bool limited =
      workload_.policy.kernel_keeps_limits && outside_.shape_of(index).terms.memory_hard;
  expect_of(index, memory_max == (limited ? promise.memory : Bytes{}),
            "the kernel is told of its hard limit, and of no other");
}

void Checkers::check_gpus(model::TaskIndex index, const model::Request& promise,
                          const std::vector<model::GpuIndex>& gpus) {
  expect_of(index, outside_.gpus.has_room_for(promise), "no part of a GPU is promised twice");
  const auto right = outside_.gpus.right_ones(open_gpus(promise), promise, outside_.idle_gpus());
  expect_of(index, right.has_value(), "begins on no tight GPU where another begins, or is to");
  expect_of(index, !right || *right == gpus, "gets the GPUs that the strategy says");
}

void Checkers::count_pass(model::TaskIndex started, const std::vector<model::GpuIndex>& on) {
  // It stays the same until all have been looked at, though its group may have no room any more.
  if (!oldest_) oldest_ = outside_.oldest_without_room();
  if (oldest_ && outside_.starts_before(started, *oldest_)) oldest_.reset();
  if (!oldest_) return;
  if (outside_.is_owed_its_room(*oldest_, now_)) {
    if (!kept_) kept_ = outside_.opening_for(*oldest_, now_);
    std::optional<Opening>& kept = *kept_;
    expect_of(started, !kept || !outside_.would_delay(*kept, started, on, now_),
              "nothing starts that delays an older task that was passed often enough");
    if (kept) outside_.take_beside(*kept, started, on);
  }
  SeenTask& passed = outside_.task(*oldest_);
  if (passed.passed++ == 0) passed.passed_since = now_;
}

StopReason Checkers::reason_for(const SeenAttempt& attempt) const {
  const model::TaskIndex index = attempt.key.task;
  const auto* const kill = std::get_if<model::KillAsked>(&event_->what);
  if (kill != nullptr && kill->task == index) return StopReason::KillAsked;
  if (std::holds_alternative<model::InterruptAsked>(event_->what)) return StopReason::Interrupt;
  if (outside_.groups[outside_.task(index).group.value].tripped) return StopReason::FailFast;
  if (about_ == index && stop_due_ != StopReason::None) return stop_due_;
  if (const auto found = too_much_.find(index); found != too_much_.end()) return found->second;
  if (!outside_.gpus.may_ever_fit(outside_.due(index), now_) && outside_.loaded.contains(index)) {
    return StopReason::NoGpu;
  }
  if (!attempt.end_by || now_ < *attempt.end_by) return StopReason::None;
  return attempt.word ? StopReason::Leaving : StopReason::TimeLimit;
}

/// The attempt that a command is about; nothing after a complaint. `rule` is the text of one.
SeenAttempt* Checkers::running_attempt(model::AttemptKey key, std::string_view rule) {
  const auto found = outside_.running.find(key.task);
  expect_of(key.task, found != outside_.running.end() && found->second.key == key, rule);
  return complaint_ ? nullptr : &found->second;
}

bool Checkers::wants_a_signal(const SeenAttempt& attempt) const {
  return outside_.shape_of(attempt.key.task).terms.early_signal.number != 0 && !attempt.signalled;
}

bool Checkers::died_of_warning(const SeenAttempt& attempt, const model::End& end) const {
  const int warning = outside_.shape_of(attempt.key.task).terms.early_signal.number;
  const auto* const killed = std::get_if<model::KilledBy>(&end);
  return attempt.signalled && attempt.stop == StopReason::None && !attempt.word &&
         killed != nullptr && killed->signal == warning;
}

bool Checkers::ended_before_it_was_found(const SeenAttempt& attempt, Instant ended) {
  const bool from_outside =
      attempt.stop == StopReason::TimeLimit || attempt.stop == StopReason::MemoryLimit ||
      attempt.stop == StopReason::KillAsked || attempt.stop == StopReason::Interrupt ||
      attempt.stop == StopReason::FailFast || attempt.stop == StopReason::Preempted ||
      attempt.stop == StopReason::Crowds;
  return from_outside && ended < attempt.found.value_or(ended);
}

void Checkers::decided(const model::SignalAttempt& command) {
  const model::TaskIndex index = command.key.task;
  SeenAttempt* const running = running_attempt(command.key, "only a running attempt is signalled");
  if (running == nullptr) return;
  counts_.count(Fault::EarlySignal);
  SeenAttempt& attempt = *running;
  const model::EarlySignal& wanted = outside_.shape_of(index).terms.early_signal;
  if (signal_due_ == index) {
    expect_of(index, command.signal == wanted.number, "is sent the signal that it asked for");
    return signal_due_.reset();
  }
  expect_of(index, wants_a_signal(attempt) && command.signal == wanted.number,
            "is sent the signal that it asked for, once");
  expect_of(index, attempt.stop == StopReason::None, "is signalled before it is told to end");
  const StopReason reason = reason_for(attempt);
  expect_of(index,
            reason != StopReason::None && reason != StopReason::Leaving &&
                reason != StopReason::OutOfMemory,
            "is signalled when there is a cause, and something to be saved");
  attempt.signalled = true;
  attempt.end_by = now_ + wanted.before;
  if (reason == StopReason::TimeLimit) return;
  attempt.stop = reason;
  attempt.found = now_;
  outside_.stop_waiting_for_device(index);
}

/// An attempt that got its signal has its time, whatever comes meanwhile.
void Checkers::take_causes_to_heart() {
  for (auto& [index, attempt] : outside_.running) {
    if (!attempt.signalled || attempt.stop != StopReason::None || !attempt.end_by) continue;
    const StopReason reason = reason_for(attempt);
    if (reason == StopReason::None || reason == StopReason::TimeLimit ||
        reason == StopReason::Leaving || reason == StopReason::OutOfMemory) {
      continue;
    }
    attempt.stop = reason;
    attempt.found = now_;
    outside_.stop_waiting_for_device(index);
  }
}

void Checkers::decided(const model::StopAttempt& command) {
  const model::TaskIndex index = command.key.task;
  SeenAttempt* const running = running_attempt(command.key, "only a running attempt is stopped");
  if (running == nullptr) return;
  SeenAttempt& attempt = *running;
  if (!command.kill) {
    expect_of(index, !attempt.stopped, "is sent TERM once");
    const bool its_time = attempt.end_by && now_ >= *attempt.end_by;
    if (attempt.stop == StopReason::None) {
      attempt.stop = reason_for(attempt);
      attempt.found = now_;
      const bool no_word =
          attempt.stop != StopReason::Leaving && attempt.stop != StopReason::OutOfMemory;
      expect_of(index, !no_word || !wants_a_signal(attempt), "is signalled before TERM");
      expect_of(index, !no_word || !attempt.signalled || its_time || !attempt.end_by,
                "has the time that it wants between its signal and TERM");
    } else {
      expect_of(index, attempt.signalled && its_time, "is sent TERM when its time is over");
    }
    outside_.stop_waiting_for_device(index);
    attempt.stopped = now_;
    attempt.end_by.reset();
    expect_of(index, attempt.stop != StopReason::None, "is sent TERM for a cause");
    return;
  }
  expect_of(index, !attempt.killed, "is sent KILL once");
  attempt.killed = true;
  const bool patient = attempt.stopped && now_ - *attempt.stopped >= workload_.policy.stop_grace;
  expect_of(index, patient || outside_.interrupts > 1, "is sent KILL when the grace is over");
}

void Checkers::decided(const model::Answer& command) {
  const auto found = answers_due_.find(command.request);
  expect(found != answers_due_.end(), "a kill request is answered when it is known");
  if (complaint_) return;
  expect(found->second == command.done, "a kill request is answered with the truth");
  answers_due_.erase(found);
}

}  // namespace trainyard::sim
