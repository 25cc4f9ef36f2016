// The part of the checkers that follows two-phase tasks through their stages, and knows what must
// come of every end.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
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
#include "sim/checkers.h"
#include "sim/faults.h"
#include "sim/outside.h"
#include "sim/outside_gpus.h"
#include "sim/random.h"
#include "sim/workload.h"

namespace trainyard::sim {

/// A task that takes more than its limit is ended; if all together take too much, one of them.
void Checkers::look_at_memory(const model::Sampled& reading) {
  outside_.read(reading);
  for (const auto& [index, attempt] : outside_.running) {
    const bool hard =
        outside_.shape_of(index).terms.memory_hard && !workload_.policy.kernel_keeps_limits;
    if (!hard || attempt.stop != StopReason::None) continue;
    if (attempt.measured > attempt.promise.memory) too_much_[index] = StopReason::MemoryLimit;
  }
  if (!too_much_.empty()) return;
  const std::optional<model::TaskIndex> victim = outside_.to_be_interrupted();
  if (!victim) return;
  outside_.low_readings = 0;
  ++outside_.task(*victim).preempted;
  counts_.count(Fault::Preempted);
  too_much_[*victim] = StopReason::Preempted;
}

void Checkers::look_at_gpus(Instant at, const model::GpusSampled& reading) {
  outside_.read(at, reading);
  outside_.learn_from_running();
  for (auto& [index, attempt] : outside_.running) {
    const auto limit = outside_.shape_of(index).terms.gpu_memory_limit;
    if (limit != model::GpuMemoryLimit::Hard || attempt.stop != StopReason::None) continue;
    for (const SeenShare& share : outside_.gpus.shares_of(index)) {
      if (outside_.gpus.beyond(index, share.gpu) <= mib(64)) continue;
      if (!too_much_.contains(index)) counts_.count(Fault::OverGpuLimit);
      too_much_[index] = StopReason::GpuLimit;
      attempt.taken_off = true;
    }
  }
  for (std::uint32_t index = 0; index < reading.gpus.size(); ++index) {
    const std::optional<model::TaskIndex> victim = outside_.to_be_taken_off({index});
    if (!victim) continue;
    outside_.gpus.overfull_readings[index] = 0;
    ++outside_.task(*victim).preempted;
    outside_.running.at(*victim).taken_off = true;
    counts_.count(Fault::TakenOffGpu);
    too_much_[*victim] = StopReason::Crowds;
  }
}

void Checkers::stage_reported(const model::StageReported& news) {
  const model::TaskIndex index = news.key.task;
  const auto found = outside_.running.find(index);
  if (found == outside_.running.end() || found->second.key != news.key) return;
  SeenAttempt& attempt = found->second;
  const bool heard = !attempt.word && attempt.stop == StopReason::None;
  if (!outside_.two_phase(index) || !heard) return;
  if (!attempt.started) heard_of(attempt, std::nullopt);
  if (attempt.end_by && *attempt.end_by <= now_) {
    if (!wants_a_signal(attempt)) return;
    // It has its time from now on.
    attempt.signalled = true;
    attempt.end_by = now_ + outside_.shape_of(index).terms.early_signal.before;
    signal_due_ = index;
  }
  about_ = index;
  const Status status = outside_.task(index).status;
  const auto is = [&](model::Said said, Status then) {
    return news.said == said && status == then;
  };
  if (is(model::Said::Loading, Status::Available)) {
    expected_.statuses = {Status::Loading};
  } else if (is(model::Said::Loaded, Status::Loading)) {
    expected_.statuses = {Status::Waiting};
    attempt.keeps_to_cap = !news.capped_by.empty();
    outside_.wait_for_device(index, now_);
  } else if (is(model::Said::Training, Status::Training)) {
    attempt.end_tells = true;
  } else if (is(model::Said::OutOfMemory, Status::Training) &&
             outside_.shape_of(index).terms.ranks == 0) {
    set_lack(attempt, news.of_gpu);
    ran_out_of_memory(attempt);
  } else if (is(model::Said::Trained, Status::Training) ||
             is(model::Said::OutOfMemory, Status::Loading) ||
             is(model::Said::OutOfMemory, Status::Training) || news.said == model::Said::Failed) {
    set_lack(attempt, news.of_gpu);
    if (news.said == model::Said::Trained) expected_.statuses = {Status::Finished};
    outside_.stop_waiting_for_device(index);
    attempt.word = news.said;
    attempt.end_by = now_ + workload_.policy.stop_grace;
  } else {
    expected_.statuses = {Status::Unknown};
    attempt.word = model::Said::Nonsense;
    stop_due_ = StopReason::Leaving;
  }
}

void Checkers::set_lack(SeenAttempt& attempt, bool of_gpu) const {
  const bool given = !outside_.gpus.shares_of(attempt.key.task).empty();
  attempt.out_of_gpu = of_gpu && given;
  attempt.out_of_other_gpu = of_gpu && !given;
  attempt.crowded = attempt.out_of_gpu && outside_.gpus.is_crowded(attempt.key.task);
  blame_its_cap(attempt, outside_.gpus.peak_of(attempt.key.task));
}

/// A task that used all of its cap lacked no memory that others have.
void Checkers::blame_its_cap(SeenAttempt& attempt, Bytes peak) const {
  if (!attempt.out_of_gpu) return;
  attempt.crowded = attempt.crowded && !Outside::was_at_its_cap(attempt, peak);
  attempt.at_limit = outside_.has_hard_gpu_limit(attempt.key.task);
}

/// In training: it goes on with what it has loaded when it can have more at once.
void Checkers::ran_out_of_memory(SeenAttempt& attempt) {
  const model::TaskIndex index = attempt.key.task;
  Bytes memory = attempt.promise.memory;
  model::Request next = attempt.promise;
  const bool excused = is_excused(attempt, outside_.task(index));
  const int tries_left = outside_.tries_for_memory(outside_.task(index), Stage::Train) -
                         outside_.task(index).train_failures - 2;
  if (!attempt.out_of_gpu && !attempt.out_of_other_gpu) {
    memory =
        after_out_of_memory(memory, attempt.holds(), outside_.capacity.memory - outside_.kept_free);
  } else if (attempt.out_of_gpu) {
    ask_for_more_gpu(attempt, next, outside_.gpus.peak_of(index), tries_left);
  }
  const Bytes had = attempt.promise.gpu_memory;
  const Bytes each = next.gpu_memory;
  const Bytes more = memory - attempt.promise.memory;
  const Bytes more_each = each - had;
  bool free = more <= outside_.memory_free_by_ledger() && more <= outside_.memory_free_by_reading();
  const std::vector<SeenGpu> gpus = outside_.gpus.now();
  for (const SeenShare& share : outside_.gpus.shares_of(index)) {
    const SeenGpu& gpu = gpus[share.gpu.value];
    const bool taken = attempt.out_of_gpu && outside_.gpus.is_overfull(share.gpu);
    free = free && gpu.there && !taken && (more_each == Bytes{} || more_each <= gpu.free);
  }
  const bool may = outside_.interrupts == 0 && (excused || (!attempt.at_limit && tries_left >= 0));
  if (!free || !may || next.largest != attempt.promise.largest) {
    stop_due_ = StopReason::OutOfMemory;
    return;
  }
  expected_.statuses = {Status::Interrupt, Status::Waiting};
  if (excused) counts_.count(Fault::Crowded);
  ++(excused ? outside_.task(index).crowded : outside_.task(index).train_failures);
  attempt.end_tells = false;
  attempt.promise.memory = memory;
  attempt.promise.gpu_memory = each;
  if (attempt.out_of_gpu) {
    outside_.task(index).gpu_request.gpu_memory = each;
    outside_.task(index).asked_of_gpus(had, each);
  }
  attempt.out_of_gpu = attempt.out_of_other_gpu = attempt.crowded = false;
  if (!outside_.gpus.shares_of(index).empty()) outside_.gpus.change(index, each);
  reached_due_ = what_is_reached(index, memory);
  outside_.wait_for_device(index, now_);
}

/// The memory that it requests by now, on the host and on GPUs, and the tries that this took.
model::Reached Checkers::what_is_reached(model::TaskIndex index, Bytes memory) const {
  const SeenTask& task = outside_.task(index);
  return {.task = index,
          .memory = memory,
          .gpu_memory = task.gpu_memory_most,
          .largest = task.gpu_request.largest,
          .tries = {.load = static_cast<std::uint8_t>(task.load_failures),
                    .train = static_cast<std::uint8_t>(task.train_failures),
                    .preempted = static_cast<std::uint8_t>(task.preempted),
                    .crowded = static_cast<std::uint8_t>(task.crowded)}};
}

/// An attempt that is ended because it ran out of memory would be retried, but for this.
void Checkers::not_again(SeenAttempt& attempt, StopReason reason) {
  const bool again =
      attempt.stop == StopReason::OutOfMemory || attempt.stop == StopReason::Preempted ||
      attempt.stop == StopReason::Crowds ||
      (attempt.stop == StopReason::Leaving && attempt.word == model::Said::OutOfMemory);
  if (again) attempt.stop = reason;
  attempt.for_good = true;
}

void Checkers::decided(const model::GrantDevice& command) {
  const model::TaskIndex index = command.key.task;
  expect_of(index, granted_.erase(index) == 1, "is told to train when it was granted its device");
  const SeenAttempt* const running = running_attempt(command.key, "only a running attempt trains");
  expect_of(index, outside_.loaded.contains(index), "only one that has loaded trains");
  if (complaint_) return;
  expect_of(index, outside_.interrupts == 0, "nothing begins to train after an interrupt");
  pass_those_before(index, {});
  const model::Request due = outside_.due(index);
  model::Request whole = running->promise;
  whole.cpus = due.cpus;
  if (outside_.gpus.shares_of(index).empty()) {
    whole.gpus = due.gpus;
    whole.gpu_memory = due.gpu_memory;
    whole.gpu = due.gpu;
    whole.largest = due.largest;
    whole.listed_only = due.listed_only;
    whole.sharing = due.sharing;
    check_gpus(index, due, command.site.gpus);
  }
  expect_of(index, command.promise == whole, "trains with the memory that it has, and its device");
  check_limit(index, command.promise, command.memory_max);
  expect_of(index, whole.cpus <= outside_.cpus_free(), "no CPU is promised twice");
  if (!oldest_loaded_) oldest_loaded_ = outside_.oldest_loaded_without_device();
  if (oldest_loaded_ && outside_.trains_before(index, *oldest_loaded_)) oldest_loaded_.reset();
  if (oldest_loaded_) {
    if (outside_.is_owed_its_room(*oldest_loaded_, now_)) {
      if (!kept_loaded_) kept_loaded_ = outside_.opening_for(*oldest_loaded_, now_);
      std::optional<Opening>& kept = *kept_loaded_;
      const bool again = !outside_.gpus.shares_of(index).empty();
      expect_of(index,
                again || !kept || !outside_.would_delay(*kept, index, command.site.gpus, now_),
                "nothing trains that delays an older one that was passed often enough");
      if (kept) outside_.take_beside(*kept, index, command.site.gpus);
    }
    SeenTask& passed = outside_.task(*oldest_loaded_);
    if (passed.passed++ == 0) passed.passed_since = now_;
  }
  outside_.train(command, now_);
  outside_.running.at(index).cap = command.gpu_memory_max;
  caps_.emplace_back(index, command.gpu_memory_max);
}

void Checkers::check_no_device_is_kept_in_vain() {
  if (outside_.interrupts > 0) return;
  std::optional<model::TaskIndex> older;
  for (const model::TaskIndex index : outside_.loaded_in_order()) {
    const model::Request due = outside_.due(index);
    if (due.cpus > outside_.cpus_free() || !outside_.gpus.has_room_for(due)) {
      if (!older) older = index;
      continue;
    }
    if (due.gpus > 0 && !outside_.gpus.right_ones(open_gpus(due), due)) continue;
    const bool again = !outside_.gpus.shares_of(index).empty();
    expect_of(index, !again && older && outside_.is_owed_its_room(*older, now_),
              "nobody who has loaded waits for what is free");
  }
}

Checkers::Expected Checkers::failed(model::Failure failure, int code) {
  return {.statuses = {Status::Exception},
          .verdict = model::Verdict::Failed,
          .failure = failure,
          .exit_code = code};
}

/// By a signal that was not sent from here.
Checkers::Expected Checkers::killed(const model::End& end) {
  constexpr std::array<int, 5> kOfCrashes{4, 6, 7, 8, 11};
  const int signal = std::get<model::KilledBy>(end).signal;
  const bool crashed = std::ranges::find(kOfCrashes, signal) != kOfCrashes.end();
  return crashed ? failed(model::Failure::Crashed, 128 + signal) : failed(model::Failure::Killed);
}

Checkers::Expected Checkers::judge(const SeenAttempt& attempt, const SeenTask& task,
                                   const model::End& end) const {
  if (const auto* const not_started = std::get_if<model::NotStarted>(&end)) {
    // A resumed run starts it.
    if (not_started->of_machine && attempt.stop == StopReason::Interrupt) {
      return {.statuses = {Status::Available}, .verdict = model::Verdict::Stopped};
    }
    return failed(model::Failure::CannotStart);
  }
  const bool told = attempt.stop != StopReason::None && attempt.stop != StopReason::Leaving;
  // An error that it reported before is known, although its end was not seen.
  const bool knows_why = attempt.word && attempt.word != model::Said::Trained && !told;
  if (std::holds_alternative<model::Vanished>(end) && !knows_why) {
    const bool is_left_over =
        attempt.stop == StopReason::Interrupt && attempt.word != model::Said::Trained;
    return is_left_over ? judge_stop(attempt, task) : failed(model::Failure::Lost);
  }
  if (attempt.word == model::Said::Trained) {
    // It has done what it was for, and its memory is no reason to do it again.
    Expected done{.statuses = {Status::Exited}, .verdict = model::Verdict::Finished};
    if (attempt.stop != StopReason::None) return done;
    if (const auto* const exit = std::get_if<model::ExitedWith>(&end)) {
      return exit->code == 0 ? done : failed(model::Failure::Exit, exit->code);
    }
    return std::get<model::KilledBy>(end).out_of_memory ? failed(model::Failure::OutOfMemory)
                                                        : killed(end);
  }
  if (told) return judge_stop(attempt, task);
  return attempt.word ? judge_word(attempt, task, end) : judge_own(attempt, task, end);
}

Checkers::Expected Checkers::judge_stop(const SeenAttempt& attempt, const SeenTask& task) const {
  switch (attempt.stop) {
    case StopReason::TimeLimit:
      return failed(model::Failure::Timeout);
    case StopReason::KillAsked:
    case StopReason::FailFast:
      return failed(model::Failure::Killed);
    case StopReason::OutOfMemory:
      return judge_out_of_memory(attempt, task);
    case StopReason::MemoryLimit:
    case StopReason::GpuLimit:
      return failed(model::Failure::OutOfMemory);
    case StopReason::Preempted:
    case StopReason::Crowds:
      if (outside_.interrupts > 0) return failed(model::Failure::OutOfMemory);
      return {.statuses = {Status::Interrupt}, .failure = model::Failure::OutOfMemory};
    case StopReason::NoGpu:
      return failed(model::Failure::CannotStart);
    case StopReason::Interrupt:
    case StopReason::Leaving:
    case StopReason::None:
      break;
  }
  // A two-phase task without news stays where it is.
  const bool still = task.status == Status::Available && outside_.two_phase(attempt.key.task);
  return {.statuses = {still ? Status::Available : Status::Interrupt},
          .verdict = model::Verdict::Stopped};
}

Checkers::Expected Checkers::judge_word(const SeenAttempt& attempt, const SeenTask& task,
                                        const model::End& end) const {
  if (attempt.word == model::Said::OutOfMemory) {
    const auto* const killed = std::get_if<model::KilledBy>(&end);
    const bool over_limit =
        attempt.stop == StopReason::None && killed != nullptr && killed->over_limit;
    return over_limit ? failed(model::Failure::OutOfMemory) : judge_out_of_memory(attempt, task);
  }
  const auto* const exit = std::get_if<model::ExitedWith>(&end);
  return failed(model::Failure::Error, exit == nullptr ? 0 : exit->code);
}

Checkers::Expected Checkers::judge_own(const SeenAttempt& attempt, const SeenTask& task,
                                       const model::End& end) const {
  if (const auto* const exit = std::get_if<model::ExitedWith>(&end)) {
    const bool done =
        exit->code == 0 && (attempt.end_tells || !outside_.two_phase(attempt.key.task));
    if (!done) return failed(model::Failure::Exit, exit->code);
    return {.statuses = {Status::Finished, Status::Exited}, .verdict = model::Verdict::Finished};
  }
  if (!std::get<model::KilledBy>(end).out_of_memory) return killed(end);
  if (std::get<model::KilledBy>(end).over_limit) return failed(model::Failure::OutOfMemory);
  return judge_out_of_memory(attempt, task);
}

Checkers::Expected Checkers::judge_out_of_memory(const SeenAttempt& attempt,
                                                 const SeenTask& task) const {
  const int failures = attempt.stage == Stage::Train ? task.train_failures : task.load_failures;
  const bool again =
      is_excused(attempt, task) ||
      (!attempt.at_limit && failures + 1 < outside_.tries_for_memory(task, attempt.stage));
  if (outside_.interrupts > 0 || attempt.for_good || !again) {
    return failed(model::Failure::OutOfMemory);
  }
  return {.statuses = {Status::Interrupt}, .failure = model::Failure::OutOfMemory};
}

/// Others had too much of its GPU. The excuse counts this often.
bool Checkers::is_excused(const SeenAttempt& attempt, const SeenTask& task) {
  return attempt.crowded && task.crowded < 5;
}

/// By what is known of its end without its GPUs.
bool Checkers::may_have_died_with_gpu(const SeenAttempt& attempt) const {
  if (attempt.stop != StopReason::None && attempt.stop != StopReason::Leaving) return false;
  if (attempt.word == model::Said::Trained) return false;
  return expected_.may_be_its_own();
}

/// Its next request on GPUs; `tries_left` counts those after the next one.
void Checkers::ask_for_more_gpu(const SeenAttempt& attempt, model::Request& request, Bytes peak,
                                int tries_left) {
  const Bytes had = attempt.promise.gpu_memory;
  const Bytes most = outside_.gpus.most_on(attempt.promise);
  const bool own_fault =
      attempt.stop != StopReason::Crowds && !is_excused(attempt, outside_.task(attempt.key.task));
  request.largest = attempt.promise.largest;
  if (outside_.has_hard_gpu_limit(attempt.key.task)) {
    // It has what it may have at most, and will have no more.
  } else if (!own_fault) {
    request.gpu_memory = had == Bytes{} ? had : std::max(had, std::min(peak, most));
  } else if (tries_left <= 0 || had == Bytes{} || had >= most) {
    request.gpu_memory = {};
    request.largest = true;
  } else {
    const Bytes more = std::max(had + Bytes{had.count / 2}, peak);
    request.gpu_memory = std::max(had, std::min(most, more));
  }
}

/// A task that failed for another reason than memory may be retried, too. Returns its delay.
Duration Checkers::try_again(const SeenAttempt& attempt, SeenTask& task, Instant at) {
  const bool for_memory = expected_.failure == model::Failure::OutOfMemory;
  if (expected_.verdict != model::Verdict::Failed || for_memory) return Duration{0};
  const bool somebodys_will =
      attempt.for_good || attempt.stop == StopReason::KillAsked ||
      attempt.stop == StopReason::Interrupt || attempt.stop == StopReason::FailFast ||
      attempt.stop == StopReason::MemoryLimit || attempt.stop == StopReason::GpuLimit ||
      attempt.stop == StopReason::NoGpu;
  if (somebodys_will || attempt.word == model::Said::Trained || outside_.interrupts > 0) {
    return Duration{0};
  }
  const bool interrupted =
      attempt.stop == StopReason::Preempted || attempt.stop == StopReason::Crowds;
  if (refused_) {
    // No retry is used up.
    if (interrupted) --task.preempted;
    expected_.verdict = model::Verdict::None;
    expected_.statuses = {Status::Interrupt};
    return task.refusal_delay;
  }
  const model::Retries& retries = outside_.plan.shapes[task.shape.value].terms.retries;
  const bool late = attempt.stop == StopReason::TimeLimit;
  const bool lost = !late && expected_.failure == model::Failure::Lost;
  int& gone = lost ? task.lost : task.failures;
  const int most = lost ? 5 : retries.failures;
  ++gone;
  // It is not known that the interrupt ended it: it counts as lost.
  if (lost && interrupted) --task.preempted;
  if (late && !retries.after_time_limit) return Duration{0};
  if (gone > most) return Duration{0};
  expected_.verdict = model::Verdict::None;
  expected_.exit_code = 0;
  expected_.statuses = {Status::Interrupt};
  if (lost) return Duration{0};
  Duration delay = retries.delay;
  for (int i = 1; i < gone; ++i) delay = std::min(2 * delay, Duration{3'600'000});
  Random random(std::uint64_t{attempt.key.task.value} << 32U | attempt.key.attempt);
  if (delay > Duration{0}) return delay + random.between(Duration{0}, delay / 2);
  const auto before = std::exchange(last_without_delay_, std::pair(attempt.key.task, at));
  const bool together =
      before && before->first != attempt.key.task && at - before->second < Duration{1'000};
  return together ? random.between(Duration{0}, Duration{1'000}) : Duration{0};
}

/// Tasks whose time has come wait for room like others.
void Checkers::look_at_delays() {
  for (std::uint32_t index = 0; index < outside_.tasks.size(); ++index) {
    SeenTask& task = outside_.tasks[index];
    if (task.begins_at && *task.begins_at <= now_) {
      task.begins_at.reset();
      counts_.count(Fault::StartsLater);
      outside_.waiting.insert({index});
    }
    if (!task.back_at || *task.back_at > now_) continue;
    task.back_at.reset();
    ++outside_.waiting_in[task.shape.value];
    outside_.waiting.insert({index});
  }
}

}  // namespace trainyard::sim
