// The part of the scheduler that leads two-phase tasks through their stages, by what their
// processes say of themselves.
#include <algorithm>
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
#include "schedule/another_try.h"
#include "schedule/ending.h"
#include "schedule/machine_book.h"
#include "schedule/printed_need.h"
#include "schedule/retry_requests.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

void Scheduler::State::reported(Instant at, const model::StageReported& event,
                                model::Decision& out) {
  const auto found = running_.find(event.key.task);
  // Reports of an older attempt are dropped, and so are all reports after the last one, or after
  // the task was stopped.
  if (found == running_.end() || found->second.key != event.key) return;
  Running& running = found->second;
  if (!shape_of(event.key.task).terms.two_phase || running.word ||
      running.cause != StopCause::None) {
    return;
  }
  // The word that it has started may come later: it comes another way.
  if (!running.seen) started(at, {.key = event.key, .pid = 0, .capped_by = {}}, out);
  if (running.deadline && *running.deadline <= at) {
    // Over its time limit: it is about to be ended for that.
    if (!wants_a_signal(running)) return;
    signal_early(running, at, out);
  }
  const Status status = tasks[event.key.task].status;
  const bool in_stage = status == Status::Loading || status == Status::Training;
  switch (event.said) {
    case model::Said::Loading:
      if (status == Status::Available) return begin_loading(event.key.task, out);
      break;
    case model::Said::Loaded:
      if (status != Status::Loading) break;
      running.is_capped = !event.capped_by.empty();
      return wait_for_device(running, at, out);
    case model::Said::Training:
      if (status != Status::Training) break;
      running.its_end_tells = true;
      return;
    case model::Said::Trained:
      if (status == Status::Training) return trained(running, at, out);
      break;
    case model::Said::OutOfMemory:
      running.lack = lack_of(running, event.of_gpu);
      if (in_stage) return ran_out_of_memory(running, event.message, at, out);
      break;
    case model::Said::Failed:
      return say_last(running, {.said = model::Said::Failed, .message = event.message}, at, out);
    case model::Said::Nonsense:
      return misspoke(running, event.message, at, out);
  }
  misspoke(running,
           fmt::format("it reported a step out of order, while it was {}", to_text(status)), at,
           out);
}

void Scheduler::State::begin_loading(model::TaskIndex task, model::Decision& out) {
  enter(task, Status::Loading, out);
}

void Scheduler::State::wait_for_device(Running& running, Instant at, model::Decision& out) {
  const model::TaskIndex task = running.key.task;
  enter(task, Status::Waiting, out);
  enter_room(running, at);
}

void Scheduler::State::enter_room(Running& running, Instant at) {
  const model::TaskIndex task = running.key.task;
  // The task is not to blame when no device is free: its time limit stops until it trains.
  if (running.deadline) running.time_left = *running.deadline - at;
  set_deadline(running, std::nullopt);
  running.waits = true;
  set_ahead(running, true);
  fresh_lanes_ = true;
  // A retry in the same process has its GPUs, and the memory that its process left there.
  model::Request request = running.site.gpus.empty() ? gpu_request_of(task) : model::Request{};
  request.cpus = shape_of(task).terms.request.cpus;
  loaded_.add(task, tasks[task].shape, group_of(task), request, running.site.machine);
}

void Scheduler::State::train(std::uint32_t lane, const model::Site& site, Instant at,
                             model::Decision& out) {
  MachineBook& book = machines_[site.machine.value];
  const model::Request asked = loaded_.lane(lane).request;
  const model::Request request = device_of(loaded_.lane(lane));
  const model::Cpus cpus = request.cpus;
  const model::TaskIndex task = loaded_.take_head(lane);
  Running& running = running_.at(task);
  running.gpus_by_grant = !site.gpus.empty();
  running.stage_before = running.stage;
  // Empty for one on the CPUs, and for one that tries again: it has kept its GPUs.
  if (!site.gpus.empty()) {
    promise_gpus(task, site, request, at);
    running.site = site;
    running.promise.gpus = request.gpus;
    running.promise.gpu_memory = request.gpu_memory;
    running.promise.gpu = request.gpu;
    running.promise.largest = request.largest;
    running.promise.listed_only = request.listed_only;
    running.promise.sharing = request.sharing;
  }
  // The task allocates its memory now, even if it had it before.
  in_pass(book).occupy(running.promise, running.site.gpus, at, policy_.gpu_settle_max);
  running.waits = false;
  passed_.erase(task);
  set_ahead(running, false);
  book.ledger.change(task, {.cpus = cpus});
  running.promise.cpus = cpus;
  running.stage = Stage::Train;
  running.training_since = at;
  if (running.time_left) set_deadline(running, at + *running.time_left);
  running.time_left.reset();
  enter(task, Status::Training, out);
  tell_of_last_try(running, out);
  tell_learned(tasks[task].shape, asked, request, out);
  out.commands.emplace_back(
      model::GrantDevice{.key = running.key,
                         .promise = running.promise,
                         .site = running.site,
                         .memory_max = memory_max_of(task, running.promise.memory)});
  settle_reason(tasks[task].shape, out);
}

void Scheduler::State::trained(Running& running, Instant at, model::Decision& out) {
  enter(running.key.task, Status::Finished, out);
  say_last(running, {.said = model::Said::Trained, .message = {}}, at, out);
}

void Scheduler::State::ran_out_of_memory(Running& running, const std::string& message, Instant at,
                                         model::Decision& out) {
  const model::TaskIndex task = running.key.task;
  MachineBook& book = book_of(running);
  // A process that could not load has nothing worth keeping, and of ranks the others wait for the
  // one that failed: both are started anew when they have ended.
  if (running.lack == Lack::GpuMemory) running.crowding = book.gpus.crowding_of(task);
  if (running.stage == Stage::Load || shape_of(task).terms.ranks > 0) {
    return say_last(running, {.said = model::Said::OutOfMemory, .message = message}, at, out);
  }
  if (running.lack == Lack::GpuMemory) {
    const Bytes peak = book.gpus.peak_of(task);
    running.needed.gpu_memory = std::max(peak, printed_need(message, peak));
  }
  const Setback setback = setback_of_memory(running);
  const std::optional<AnotherTry> next = next_try(running, setback);
  model::Request again = running.promise;
  GrownGpu grown;
  if (running.lack == Lack::GpuMemory && next) {
    grown = retry_requests_.gpu_after(running, setback, *next, gpu_memory_most(running.promise),
                                      has_hard_gpu_limit(task));
    again.gpu_memory = grown.each;
    again.largest = grown.largest;
  } else if (running.lack == Lack::HostMemory) {
    again.memory = grown_request(running, book.ledger.memory_held_by(task));
  }
  const Bytes more = again.memory - running.promise.memory;
  // It keeps what it loaded, and its GPUs, when it can have more at once. It does not wait for more
  // with what it has: two that did could wait for each other. Nor does it for a GPU of its own, or
  // for what others have taken of its part: it would run out of memory again at once.
  const bool is_taken = running.lack == Lack::GpuMemory &&
                        std::ranges::any_of(running.site.gpus, [&book](model::GpuIndex gpu) {
                          return book.gpus.is_overfull(gpu);
                        });
  if (!next || again.largest != running.promise.largest || more > book.ledger.memory_free() ||
      is_taken || !gpus_have_room_for_more(running, again.gpu_memory)) {
    return stop(running, StopCause::OutOfMemory, at, out);
  }
  tasks.count(task, setback, Stage::Train);
  send_back(running,
            {.failure = model::Failure::OutOfMemory,
             .message = fmt::format("{}{}; {}", message, crowding_text(running),
                                    retried_text(running.lack, again))},
            out);
  book.ledger.change(task, {.memory = more, .cpus = model::Cpus{} - running.promise.cpus});
  if (!running.site.gpus.empty()) book.gpus.change(task, again.gpu_memory);
  if (running.lack == Lack::GpuMemory) retry_requests_.grow(task, grown);
  tell_reached(task, again.memory, out);
  running.promise = again;
  running.promise.cpus = {};
  running.lack = Lack::HostMemory;
  running.crowding.reset();
  running.training_since.reset();
  running.its_end_tells = false;
  wait_for_device(running, at, out);
}

void Scheduler::State::say_last(Running& running, LastWord word, Instant at, model::Decision& out) {
  // The task may fail while it waits for its device.
  leave_room(running, out);
  running.word = std::move(word);
  set_deadline(running, at + policy_.stop_grace);
}

void Scheduler::State::misspoke(Running& running, std::string what, Instant at,
                                model::Decision& out) {
  // Nothing leads from FINISHED to UNKNOWN, and no report is taken after it.
  enter(running.key.task, Status::Unknown, out);
  running.word = LastWord{.said = model::Said::Nonsense, .message = std::move(what)};
  stop(running, StopCause::Leaving, at, out);
}

void Scheduler::State::leave_room(Running& running, model::Decision& out) {
  if (!std::exchange(running.waits, false)) return;
  const model::TaskIndex task = running.key.task;
  loaded_.remove(task);
  passed_.erase(task);
  settle_reason(tasks[task].shape, out);
}

void Scheduler::State::set_ahead(Running& running, bool ahead) {
  if (std::exchange(running.ahead, ahead) == ahead) return;
  const model::Request& request = shape_of(running.key.task).terms.request;
  const int by = ahead ? 1 : -1;
  MachineBook& book = book_of(running);
  ahead_ += by;
  book.ahead += by;
  if (request.gpus > 0) {
    book.ahead_on_gpus += by;
  } else {
    book.ahead_cpus = ahead ? book.ahead_cpus + request.cpus : book.ahead_cpus - request.cpus;
  }
}

}  // namespace trainyard::schedule
