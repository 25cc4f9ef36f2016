// The part of the scheduler that knows the requests of tasks to a machine, and the machines that
// could ever grant them. An amount that no user wrote, learned or guessed, is requested as far as a
// machine has it: with machines of several kinds that is another amount on each.
#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "model/ids.h"
#include "model/resources.h"
#include "model/terms.h"
#include "model/waiting.h"
#include "schedule/gpu_room.h"
#include "schedule/machine_book.h"
#include "schedule/retry_requests.h"
#include "schedule/scheduler.h"
#include "schedule/state.h"
#include "schedule/waiting_room.h"

namespace trainyard::schedule {

model::Request Scheduler::State::request_to_start(model::TaskIndex task, Bytes memory) const {
  // A two-phase task gets its CPUs and GPUs when it trains, where it has loaded.
  const model::Request& asked = shape_of(task).terms.request;
  if (shape_of(task).terms.two_phase) {
    return {.memory = memory, .disk = asked.disk, .where = asked.where};
  }
  model::Request request = gpu_request_of(task);
  request.memory = memory;
  request.cpus = asked.cpus;
  request.disk = asked.disk;
  return request;
}

model::Request Scheduler::State::request_of(const WaitingRoom::Lane& lane) const {
  // The part of a retry's request beyond its shape is our own guess. If no machine could grant so
  // much, even with nothing else on it, the task requests what it could have: it would wait for
  // ever otherwise.
  model::Request request = within_gpus(lane.request, lane.shape);
  request.memory = learned_memory(request.memory, lane.shape);
  const Bytes asked = learned_memory(shapes_[lane.shape.value].terms.request.memory, lane.shape);
  if (request.memory > asked) {
    request.memory = std::max(asked, std::min(request.memory, memory_free_alone(request.where)));
  }
  avoid_if_others_fit(request, shapes_[lane.shape.value].terms.request, machines_, policy_);
  return request;
}

model::Request Scheduler::State::request_on(const WaitingRoom::Lane& lane,
                                            const MachineBook& book) const {
  const model::Request request = request_of(lane);
  return asks_too_much(lane, request) ? as_far_as_there_is(request, lane.tasks.front(), book)
                                      : request;
}

/// The written request fits somewhere, or waits for a machine on which it does.
bool Scheduler::State::asks_too_much(const WaitingRoom::Lane& lane,
                                     const model::Request& it) const {
  const model::Terms& terms = shapes_[lane.shape.value].terms;
  const bool has_guess = it.memory > terms.request.memory ||
                         it.gpu_memory > terms.request.gpu_memory ||
                         (terms.two_phase && terms.request.gpus > 0);
  return has_guess && is_nowhere(whole_of(lane.tasks.front(), it));
}

/// With what one of two phases will ask for when it trains.
model::Request Scheduler::State::whole_of(model::TaskIndex task,
                                          const model::Request& request) const {
  if (!shape_of(task).terms.two_phase) return request;
  model::Request whole = within_gpus(gpu_request_of(task), tasks[task].shape);
  whole.memory = request.memory;
  whole.cpus = shape_of(task).terms.request.cpus;
  avoid_if_others_fit(whole, shape_of(task).terms.request, machines_, policy_);
  return whole;
}

model::Request Scheduler::State::whole_on(model::TaskIndex task, const model::Request& request,
                                          const MachineBook& book) const {
  const model::Request whole = whole_of(task, request);
  return is_nowhere(whole) ? as_far_as_there_is(whole, task, book) : whole;
}

/// The request for the device on which a loaded task trains: the one on which it has loaded.
model::Request Scheduler::State::device_of(const WaitingRoom::Lane& loaded) const {
  model::Request device = within_gpus(loaded.request, loaded.shape);
  const MachineBook& book = machines_[loaded.machine.value];
  avoid_if_others_fit(device, shapes_[loaded.shape.value].terms.request, {&book, 1}, policy_);
  const bool fits = could_have(device, book);
  return fits ? device : as_far_as_there_is(device, loaded.tasks.front(), book);
}

/// With the machine to itself, and all its GPUs there, also those on which the task was lost: of
/// GPUs that it avoids, a larger one is no reason to refuse it the largest of the others.
bool Scheduler::State::could_have(const model::Request& whole, const MachineBook& book) const {
  if (!book.is_where(whole.where)) return false;
  if (whole.memory > book.memory_most(policy_) || whole.cpus > book.capacity.cpus) return false;
  if (whole.gpus == 0) return true;
  const std::vector<GpuRoom> all(book.capacity.gpus.size());
  model::Request on_any = whole;
  on_any.avoids.clear();
  return book.chooser.choose(book.chooser.empty(all), on_any).has_value();
}

bool Scheduler::State::is_nowhere(const model::Request& whole) const {
  return std::ranges::none_of(
      machines_, [&](const MachineBook& book) { return !book.is_gone && could_have(whole, book); });
}

/// Lowers a request to what there is, but never below what the job file requests.
model::Request Scheduler::State::as_far_as_there_is(model::Request request, model::TaskIndex task,
                                                    const MachineBook& book) const {
  const model::Request& written = shape_of(task).terms.request;
  if (request.memory > written.memory) {
    request.memory = std::max(std::min(request.memory, book.memory_most(policy_)), written.memory);
  }
  if (request.gpu_memory > written.gpu_memory) {
    const Bytes most = book.chooser.most_memory(request);
    request.gpu_memory = std::max(std::min(request.gpu_memory, most), written.gpu_memory);
  }
  return request;
}

/// The cause for which a two-phase task could not train on this machine even alone. It trains where
/// it has loaded.
model::Cause Scheduler::State::lack_for_good(model::TaskIndex task, const model::Request& request,
                                             const MachineBook& book) const {
  if (!shape_of(task).terms.two_phase) return model::Cause::None;
  const model::Request whole = whole_on(task, request, book);
  if (whole.cpus > book.capacity.cpus) return model::Cause::Cpus;
  if (whole.gpus == 0) return model::Cause::None;
  const bool is_there = could_have(whole, book) && !has_larger_gpus_elsewhere(whole, book);
  return is_there || whole.memory > book.memory_most(policy_) ? model::Cause::None
                                                              : model::Cause::Gpus;
}

/// One for which only the largest will do waits for those of another machine, where it could have
/// all else that it asks for.
bool Scheduler::State::has_larger_gpus_elsewhere(const model::Request& whole,
                                                 const MachineBook& book) const {
  if (!whole.largest) return false;
  const auto total_of = [&whole](const MachineBook& it) {
    return it.chooser.least_total(it.gpus.room(), whole);
  };
  return std::ranges::any_of(machines_, [&](const MachineBook& other) {
    return !other.is_gone && total_of(other) > total_of(book) && could_have(whole, other);
  });
}

}  // namespace trainyard::schedule
