// Retries: the part of the scheduler's state that decides whether a task is retried, and with what
// request.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "model/terms.h"
#include "model/waiting.h"
#include "schedule/another_try.h"
#include "schedule/ending.h"
#include "schedule/gpu_ledger.h"
#include "schedule/retry_requests.h"
#include "schedule/running.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {
namespace {

/// The reserved memory of the kind that an attempt ran out of: "3.6 GB on its GPU".
std::string amount_text(Lack lack, const model::Request& promise) {
  return lack == Lack::GpuMemory ? model::gpu_promise_text(promise) : to_text(promise.memory);
}

}  // namespace

Setback Scheduler::State::setback_of(const Running& running, const Ending& ending) const {
  // A task that has trained is not trained again because its end went wrong.
  const bool trained = tasks[running.key.task].status == Status::Finished;
  const bool at_limit = running.cause == StopCause::MemoryLimit ||
                        running.cause == StopCause::GpuLimit ||
                        ending.exceeded != ExceededLimit::None;
  if (trained || at_limit || running.for_good || ending.verdict != model::Verdict::Failed) {
    return Setback::Final;
  }
  if (running.cause == StopCause::Cleared) return Setback::Cleared;
  const model::Terms& terms = shape_of(running.key.task).terms;
  if (running.cause == StopCause::TimeOver && model::goes_on_where_it_was(terms)) {
    return Setback::Cleared;
  }
  if (ending.of_machine && refusals_.contains(running.key.task)) return Setback::StartRefused;
  if (running.cause == StopCause::TimeLimit) return Setback::TimeLimit;
  if (ending.failure == model::Failure::OutOfMemory) {
    const bool interrupted =
        running.cause == StopCause::Preempted || running.cause == StopCause::Crowds;
    return interrupted ? Setback::Preempted : setback_of_memory(running);
  }
  return ending.failure == model::Failure::Lost ? Setback::Lost : Setback::Failed;
}

/// A task that others crowded did not fail, unless it had used all of its cap. Only a limited
/// number of such failures is believed.
Setback Scheduler::State::setback_of_memory(const Running& running) const {
  const bool crowded = running.lack == Lack::GpuMemory && running.crowding &&
                       !running.is_near_its_cap(running.needed.gpu_memory) &&
                       tasks[running.key.task].tries.crowded < kFaultlessTriesMax;
  if (crowded) return Setback::Crowded;
  // The task had all that it may have: a retry would fail, too.
  const bool at_limit = running.lack == Lack::GpuMemory && has_hard_gpu_limit(running.key.task);
  return at_limit ? Setback::Final : Setback::OutOfMemory;
}

/// ", as other tasks used 2 GB of GPU 0 more than was reserved for them"; nothing where it was not
/// crowded, or that is not believed any more.
std::string Scheduler::State::crowding_text(const Running& running) const {
  if (!running.crowding || setback_of_memory(running) != Setback::Crowded) return {};
  const GpuLedger::Crowding& by = *running.crowding;
  const std::string gpu = book_of(running).names_of({by.gpu});
  if (by.by_tasks >= by.by_strangers) {
    return fmt::format("; other tasks used {} of {} more than was reserved for them",
                       to_text(by.by_tasks), gpu);
  }
  return fmt::format("; processes outside this run used {} more of {} meanwhile",
                     to_text(by.by_strangers), gpu);
}

/// Reports that a task has its GPUs to itself for its last try, or because there is no more to have
/// next to others.
void Scheduler::State::tell_of_last_try(const Running& running, model::Decision& out) const {
  if (!running.promise.largest || running.site.gpus.empty()) return;
  const Tries& tries = tasks[running.key.task].tries;
  const model::Terms& terms = shape_of(running.key.task).terms;
  const int gone =
      running.stage == Stage::Load ? tries.load_out_of_memory : tries.train_out_of_memory;
  const std::string which = gone == 0
                                ? std::string()
                                : fmt::format("retry {} of {}, ", gone,
                                              memory_tries_max(running.stage, terms, policy_) - 1);
  std::get<model::TaskChanged>(out.changes.back()).message =
      fmt::format("{}alone on {}", which, book_of(running).names_of(running.site.gpus));
}

/// The try that comes after this setback, which is not counted yet.
std::optional<AnotherTry> Scheduler::State::next_try(const Running& running,
                                                     Setback setback) const {
  if (interrupts_ > 0) return std::nullopt;
  const model::TaskIndex task = running.key.task;
  // On a copy: this is asked before it is decided what becomes of the setback.
  Tries tries = tasks[task].tries;
  tries.count(setback, running.stage);
  return another_try(setback, running.stage, tries, shape_of(task).terms, policy_);
}

/// The memory or the GPUs that the attempt ran out of memory with: "out of memory while loading,
/// with 10 GB reserved".
std::string Scheduler::State::out_of_memory_text(const Running& running) const {
  const bool alone = running.promise.largest && running.lack == Lack::GpuMemory;
  const std::string had =
      running.lack == Lack::GpuNotGiven ? fmt::format("; {}", model::kReservesNoGpu)
      : alone ? ", alone on " + book_of(running).names_of(running.site.gpus)
              : fmt::format(", with {} reserved", amount_text(running.lack, running.promise));
  return fmt::format("out of memory{}{}", running.stage == Stage::Load ? " while loading" : "",
                     had);
}

/// The explanation for an attempt that failed at once, with the message of the attempt before it:
/// if it had started with a checkpoint, that may be the cause.
std::string Scheduler::State::same_failure_text(const Running& running, Setback setback,
                                                const std::string& message, bool has_checkpoint,
                                                Instant ended) {
  constexpr Duration kAtOnce{1'000};
  const model::TaskIndex task = running.key.task;
  if (setback != Setback::Failed) return {};
  const std::string before = std::exchange(failed_with_[task], message);
  if (!has_checkpoint || before != message || ended - running.started > kAtOnce) return {};
  return std::string(kSameFailure);
}

Scheduler::State::Lack Scheduler::State::lack_of(const Running& running, bool of_gpu) {
  if (!of_gpu) return Lack::HostMemory;
  return running.site.gpus.empty() ? Lack::GpuNotGiven : Lack::GpuMemory;
}

std::string Scheduler::State::retried_text(Lack lack, const model::Request& promise) {
  if (lack == Lack::GpuNotGiven) {
    return fmt::format("retrying the same way: {}", model::kReservesNoGpu);
  }
  return "retrying with " + amount_text(lack, promise);
}

Bytes Scheduler::State::grown_request(const Running& running, Bytes peak) const {
  return grown(running.promise.memory, peak, memory_most(running.promise.where));
}

/// Reports the retry and its cause. The caller arranges the next attempt.
void Scheduler::State::send_back(const Running& running, Ending ending, model::Decision& out) {
  tasks.enter(running.key.task, Status::Interrupt);
  out.changes.emplace_back(model::TaskChanged{.key = running.key,
                                              .status = Status::Interrupt,
                                              .failure = ending.failure,
                                              .stage = running.stage,
                                              .exit_code = ending.exit_code,
                                              .message = std::move(ending.message)});
}

std::pair<Bytes, std::string> Scheduler::State::grow(const Running& running, Setback setback,
                                                     const AnotherTry& next) {
  const Bytes memory = running.promise.memory;
  if (running.cause == StopCause::Preempted) {
    // The task did not fail, and requests more only if it took more.
    const Bytes most = memory_most(running.promise.where);
    const Bytes taken = std::max(memory, std::min(running.memory_peak, most));
    return {taken, "retrying with " + to_text(taken)};
  }
  switch (running.lack) {
    case Lack::GpuMemory: {
      model::Request again = running.promise;
      // Kept by itself, as what a lane asks of GPUs is made anew of shape, learning and this.
      const model::TaskIndex task = running.key.task;
      const GrownGpu grown = retry_requests_.gpu_after(
          running, setback, next, gpu_memory_most(running.promise), has_hard_gpu_limit(task));
      retry_requests_.grow(task, grown);
      again.gpu_memory = grown.each;
      if (!grown.largest) return {memory, retried_text(running.lack, again)};
      return {memory, fmt::format("{}, alone on the largest GPU{}", to_text(next),
                                  again.gpus > 1 ? "s" : "")};
    }
    case Lack::GpuNotGiven:
      return {memory, retried_text(running.lack, running.promise)};
    case Lack::HostMemory:
      break;
  }
  const Bytes more = grown_request(running, running.needed.memory);
  return {more, "retrying with " + to_text(more)};
}

/// Reports what a resumed run has to know about the task.
void Scheduler::State::tell_reached(model::TaskIndex task, Bytes memory,
                                    model::Decision& out) const {
  const GrownGpu grown = retry_requests_.gpu_of(task);
  out.changes.emplace_back(model::Reached{.task = task,
                                          .memory = memory,
                                          .gpu_memory = grown.most,
                                          .largest = grown.largest,
                                          .tries = tasks[task].tries.of_memory()});
}

Duration Scheduler::State::delay_of_retry(model::AttemptKey failed, Setback setback, Duration delay,
                                          Instant at) {
  if (setback == Setback::StartRefused) return refusals_.delay_of(failed.task);
  if (setback != Setback::Failed && setback != Setback::TimeLimit) return delay;
  return delay > Duration{0} ? drawn_delay(delay, failed) : delayed_.spread(failed, at);
}

void Scheduler::State::retry(const Running& running, Setback setback, Ending ending,
                             AnotherTry next, Instant at, model::Decision& out) {
  next.delay = delay_of_retry(running.key, setback, next.delay, at);
  const model::TaskIndex task = running.key.task;
  const bool out_of_memory = ending.failure == model::Failure::OutOfMemory;
  if (const std::optional<model::GpuIndex>& gpu = running.lost_gpu) {
    retry_requests_.avoid(task, {.machine = running.site.machine, .gpu = *gpu});
  }
  // A task that was interrupted for want of memory gets what it took, however it ended then.
  const bool grows =
      out_of_memory || running.cause == StopCause::Preempted || running.cause == StopCause::Crowds;
  const auto [memory, with] =
      grows ? grow(running, setback, next) : std::pair(running.promise.memory, std::string());
  if (out_of_memory) {
    ending.message = fmt::format("{}{}; {}", ending.message,
                                 setback == Setback::Crowded ? crowding_text(running) : "", with);
  } else if (setback == Setback::StartRefused) {
    const std::string when =
        next.delay > Duration{0} ? fmt::format("{}{}", kNextStart, delay_text(next.delay)) : "";
    ending.message = fmt::format("not started (no retry is used up{}): {}", when, ending.message);
  } else {
    ending.message = fmt::format("{}: {}", to_text(next), ending.message);
  }
  send_back(running, std::move(ending), out);
  if (next.delay > Duration{0}) {
    std::get<model::TaskChanged>(out.changes.back()).retry_at = at + next.delay;
  }
  if (grows) tell_reached(task, memory, out);
  if (next.delay > Duration{0}) return delayed_.add(task, at + next.delay, memory);
  wait_for_room(task, memory);
}

void Scheduler::State::wait_for_room(model::TaskIndex task, Bytes memory) {
  waiting_.add(task, tasks[task].shape, group_of(task), request_to_start(task, memory));
  fresh_lanes_ = true;
}

bool Scheduler::State::come_back(Instant at) {
  const std::vector<DelayedTries::Due> due = delayed_.take_due(at);
  for (const DelayedTries::Due& one : due) {
    leave_not_yet(one.task);
    wait_for_room(one.task, one.memory);
  }
  return !due.empty();
}

Instant Scheduler::State::start_of(model::ShapeIndex shape) const {
  const model::Shape& of = shapes_[shape.value];
  return since_[of.group.value] + of.terms.start_after;
}

void Scheduler::State::leave_not_yet(model::TaskIndex task) {
  if (tasks[task].status == Status::Interrupt) return;
  const auto found = not_yet_in_.find(tasks[task].shape);
  if (--found->second == 0) not_yet_in_.erase(found);
}

std::vector<model::TaskIndex> Scheduler::State::take_waiting(model::GroupIndex group) {
  std::vector<model::TaskIndex> taken = waiting_.clear(group);
  const auto [first, last] = groups_.members(group);
  for (const model::TaskIndex task : delayed_.take(first, last)) {
    leave_not_yet(task);
    taken.push_back(task);
  }
  if (trials_.contains(group)) std::ranges::copy(held_of(group), std::back_inserter(taken));
  trials_.erase(group);
  std::ranges::copy(take_aside(group), std::back_inserter(taken));
  return taken;
}

}  // namespace trainyard::schedule
