// The part of the scheduler that leads two-phase tasks through their stages, by what their
// processes say of themselves.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/time.h"
#include "model/command.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/plan.h"
#include "model/resources.h"
#include "model/status.h"
#include "schedule/ending.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard {

void Scheduler::State::reported(Instant at, const StageReported& event, Decision& out) {
  const auto found = running_.find(event.key.task);
  // What an older attempt says is dropped, and so is all that comes after the last word, or after
  // it was told to end.
  if (found == running_.end() || found->second.key != event.key) return;
  Running& running = found->second;
  if (!shape_of(event.key.task).two_phase || running.word || running.cause != StopCause::None) {
    return;
  }
  // The word that it has started may come later: it comes another way.
  if (!running.seen) started(at, {.key = event.key, .pid = 0}, out);
  if (running.deadline && *running.deadline <= at) {
    // Over its time limit: it is about to be ended for that.
    if (!wants_a_signal(running)) return;
    signal_early(running, at, out);
  }
  const Status status = tasks[event.key.task].status;
  const bool in_stage = status == Status::Loading || status == Status::Training;
  switch (event.said) {
    case Said::Loading:
      if (status == Status::Available) return begin_loading(event.key.task, out);
      break;
    case Said::Loaded:
      if (status == Status::Loading) return wait_for_device(running, at, out);
      break;
    case Said::Training:
      if (status != Status::Training) break;
      running.its_end_tells = true;
      return;
    case Said::Trained:
      if (status == Status::Training) return trained(running, at, out);
      break;
    case Said::OutOfMemory:
      running.lack = lack_of(running, event.of_gpu);
      if (in_stage) return ran_out_of_memory(running, event.message, at, out);
      break;
    case Said::Failed:
      return say_last(running, {.said = Said::Failed, .message = event.message}, at, out);
    case Said::Nonsense:
      return misspoke(running, event.message, at, out);
  }
  misspoke(running, fmt::format("it spoke out of turn, while it was {}", to_text(status)), at, out);
}

void Scheduler::State::begin_loading(TaskIndex task, Decision& out) {
  tasks.count_try(task, Stage::Load);
  enter(task, Status::Loading, out);
}

void Scheduler::State::wait_for_device(Running& running, Instant at, Decision& out) {
  const TaskIndex task = running.key.task;
  enter(task, Status::Waiting, out);
  if (running.deadline) running.time_left = *running.deadline - at;
  set_deadline(running, std::nullopt);
  running.waits = true;
  set_ahead(running, true);
  fresh_lanes_ = true;
  // One that tries again has its GPUs, and what its process left there.
  Request request = running.gpus.empty() ? gpu_request_of(task) : Request{};
  request.cpus = shape_of(task).request.cpus;
  loaded_.add(task, tasks[task].shape, group_of(task), request);
}

void Scheduler::State::train(std::uint32_t lane, const GpuSet& gpus, Instant at, Decision& out) {
  const Request request = within_gpus(loaded_.lane(lane).request, loaded_.lane(lane).shape);
  const Cpus cpus = request.cpus;
  const TaskIndex task = loaded_.take_head(lane);
  Running& running = running_.at(task);
  if (!gpus.empty()) {
    gpus_.promise(task, gpus, request.gpu_memory);
    running.gpus = gpus;
    running.promise.gpus = request.gpus;
    running.promise.gpu_memory = request.gpu_memory;
    running.promise.gpu = request.gpu;
  }
  running.waits = false;
  passed_.erase(task);
  set_ahead(running, false);
  ledger_.change(task, {.cpus = cpus});
  running.promise.cpus = cpus;
  running.stage = Stage::Train;
  running.training_since = at;
  if (running.time_left) set_deadline(running, at + *running.time_left);
  running.time_left.reset();
  tasks.count_try(task, Stage::Train);
  enter(task, Status::Training, out);
  out.commands.emplace_back(GrantDevice{.key = running.key,
                                        .promise = running.promise,
                                        .gpus = running.gpus,
                                        .memory_max = memory_max_of(task, running.promise.memory)});
  if (!waits_in_a_room(tasks[task].shape)) clear_reason(tasks[task].shape, out);
}

void Scheduler::State::trained(Running& running, Instant at, Decision& out) {
  enter(running.key.task, Status::Finished, out);
  say_last(running, {.said = Said::Trained, .message = {}}, at, out);
}

void Scheduler::State::ran_out_of_memory(Running& running, const std::string& message, Instant at,
                                         Decision& out) {
  const TaskIndex task = running.key.task;
  if (running.stage == Stage::Load || shape_of(task).ranks > 0) {
    return say_last(running, {.said = Said::OutOfMemory, .message = message}, at, out);
  }
  Request again = running.promise;
  if (running.lack == Lack::GpuMemory) {
    again.gpu_memory = grown_gpu_request(running, gpus_.peak_of(task));
  } else if (running.lack == Lack::HostMemory) {
    again.memory = grown_request(running, ledger_.memory_held_by(task));
  }
  const Bytes more = again.memory - running.promise.memory;
  // It keeps what it loaded, and its GPUs, when it can have more at once. It does not wait for more
  // with what it has: two that did could wait for each other.
  if (!may_try_again(task, Stage::Train) || more > ledger_.memory_free() ||
      !gpus_have_room_for_more(running, again.gpu_memory)) {
    return stop(running, StopCause::OutOfMemory, at, out);
  }
  send_back(running, message, tried_with(running.lack, again), out);
  ledger_.change(task, {.memory = more, .cpus = Cpus{} - running.promise.cpus});
  if (!running.gpus.empty()) gpus_.change(task, again.gpu_memory);
  if (running.lack == Lack::GpuMemory) grown_gpu_[task] = again.gpu_memory;
  running.promise = again;
  running.promise.cpus = {};
  running.lack = Lack::HostMemory;
  running.training_since.reset();
  running.its_end_tells = false;
  wait_for_device(running, at, out);
}

void Scheduler::State::say_last(Running& running, LastWord word, Instant at, Decision& out) {
  leave_room(running, out);
  running.word = std::move(word);
  set_deadline(running, at + limits_.stop_grace);
}

void Scheduler::State::misspoke(Running& running, std::string what, Instant at, Decision& out) {
  // Nothing leads from FINISHED to UNKNOWN, and nothing is heard after it.
  enter(running.key.task, Status::Unknown, out);
  running.word = LastWord{.said = Said::Nonsense, .message = std::move(what)};
  stop(running, StopCause::Leaving, at, out);
}

void Scheduler::State::leave_room(Running& running, Decision& out) {
  if (!std::exchange(running.waits, false)) return;
  const TaskIndex task = running.key.task;
  loaded_.remove(task);
  passed_.erase(task);
  if (!waits_in_a_room(tasks[task].shape)) clear_reason(tasks[task].shape, out);
}

void Scheduler::State::set_ahead(Running& running, bool ahead) {
  if (std::exchange(running.ahead, ahead) == ahead) return;
  const Request& request = shape_of(running.key.task).request;
  const int by = ahead ? 1 : -1;
  ahead_ += by;
  if (request.gpus > 0) {
    ahead_on_gpus_ += by;
  } else {
    ahead_cpus_ = ahead ? ahead_cpus_ + request.cpus : ahead_cpus_ - request.cpus;
  }
}

}  // namespace trainyard
