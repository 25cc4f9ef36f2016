#include "sim/outside.h"

#include <cstddef>
#include <limits>
#include <tuple>

namespace trainyard::sim {

Outside::Outside(const model::Policy& the_limits, const model::Capacity& the_capacity)
    : policy(the_limits),
      capacity(the_capacity),
      available(the_capacity.memory),
      gpus(the_limits, capacity) {
  const auto unused = static_cast<std::int64_t>(static_cast<double>(capacity.memory.count) *
                                                (1 - policy.memory_utilization_max));
  kept_free = std::max(policy.memory_remain, Bytes{unused});
}

void Outside::read(Instant at, const model::GpusSampled& reading) {
  for (const model::GpuFound& it : reading.found) capacity.gpus[it.gpu.value] = it.what;
  gpus.read(at, reading);
}

void Outside::add(const model::Plan& batch, Instant since) {
  const std::uint32_t first = model::append(plan, batch).task;
  groups.resize(plan.groups.size(), {.since = since});
  reasons.resize(plan.shapes.size());
  waiting_in.resize(plan.shapes.size(), 0);
  memory_peaks.resize(plan.shapes.size());
  told_per_gpu_max.resize(plan.shapes.size());
  gpu_ratios.resize(plan.groups.size());
  gpu_memory_peaks.resize(plan.shapes.size());
  for (std::uint32_t index = first; index < plan.tasks.size(); ++index) {
    const model::PlannedTask& planned = plan.tasks[index];
    SeenTask task = begun(planned.shape, planned.first_attempt);
    if (planned.is_open()) {
      ++groups[task.group.value].open;
      ++waiting_in[planned.shape.value];
    } else {
      const bool failed = planned.before == model::Verdict::Failed;
      task.status = planned.finished_before() ? Status::Exited
                    : failed                  ? Status::Exception
                                              : Status::Init;
      task.verdict = planned.before;
    }
    task.priority = plan.shapes[planned.shape.value].terms.priority;
    tasks.push_back(task);
  }
  add_needs(batch, first);
  go_on_with(batch, first);
}

SeenTask Outside::begun(model::ShapeIndex index, std::uint32_t attempt) const {
  const model::Shape& shape = plan.shapes[index.value];
  SeenTask task{
      .shape = index,
      .group = shape.group,
      .next_attempt = attempt,
      .request = shape.terms.request,
      .gpu_request = {.gpus = shape.terms.request.gpus,
                      .gpu_memory = shape.terms.request.gpu_memory,
                      .gpu = shape.terms.request.gpu,
                      .listed_only = shape.terms.request.gpus > 0 && shape.terms.two_phase,
                      .sharing = shape.terms.request.sharing}};
  if (shape.terms.two_phase) {
    task.request = {.memory = shape.terms.request.memory, .disk = shape.terms.request.disk};
  }
  return task;
}

Duration Outside::time_limit_of(model::TaskIndex index) const {
  const auto asked = time_limits.find(index);
  return asked == time_limits.end() ? shape_of(index).terms.time_limit : asked->second;
}

void Outside::read(const model::Sampled& reading) {
  available = reading.memory_available;
  cpu_of_others = reading.cpu_used_by_others;
  disk_of_ended = {};
  disk_at_reading = std::nullopt;
  if (reading.disk) disk_at_reading = reading.disk->free;
  // A reading is the whole truth: what it does not mention has no memory.
  for (auto& [task, attempt] : running) attempt.measured = {};
  for (const model::TaskSample& sample : reading.tasks) {
    const auto found = running.find(sample.key.task);
    if (found != running.end() && found->second.key == sample.key) {
      found->second.measured = sample.memory;
      found->second.peak = std::max(found->second.peak, sample.memory);
    }
  }
  learn_from_running();
  low_readings = available < policy.memory_remain ? low_readings + 1 : 0;
}

void Outside::grant(const model::StartAttempt& command, Instant at) {
  const auto it =
      running
          .try_emplace(command.key.task,
                       SeenAttempt{.key = command.key, .promise = command.promise, .granted = at})
          .first;
  if (two_phase(command.key.task)) {
    it->second.stage = Stage::Load;
    it->second.ahead = true;
  } else {
    it->second.trains_since = at;
  }
  gpus.promise(command.key.task, command.site.gpus, command.promise);
  waiting.erase(command.key.task);
  SeenTask& seen = task(command.key.task);
  seen.again = false;
  --waiting_in[seen.shape.value];
  ++groups[seen.group.value].running;
  started.insert(command.key.task);
  seen.passed = 0;
  if (pause) pause->tried = command.key;
}

bool Outside::refuse(model::AttemptKey key, Instant at) {
  SeenTask& seen = task(key.task);
  if (!seen.refused_since) seen.refused_since = at;
  const bool alone = last_start > *seen.refused_since;
  if (alone && seen.refusal_delays >= policy.machine_patience) {
    seen.refused_since.reset();
    seen.refusal_delay = seen.refusal_delays = {};
    return false;
  }
  if (alone) {
    seen.refusal_delay =
        std::min(std::max(2 * seen.refusal_delay, Duration{1'000}), Duration{60'000});
    seen.refusal_delays += seen.refusal_delay;
  }
  if (seen.refusal_delay > Duration{0} && !pause) return true;
  ++seen.refusals;
  ++shape_refusals[seen.shape];
  if (!pause) {
    pause = SeenPause{.since = at, .tries_at = at + Duration{1'000}, .tried = {}};
  } else if (pause->tried == key) {
    pause->length = std::min(2 * pause->length, Duration{60'000});
    pause->tries_at = at + pause->length;
    pause->tried.reset();
  }
  return true;
}

void Outside::started_after_all(model::TaskIndex index, Instant at) {
  end_pause();
  last_start = std::max(last_start, at);
  SeenTask& seen = task(index);
  seen.refused_since.reset();
  seen.refusal_delay = seen.refusal_delays = {};
}

void Outside::end_pause() {
  pause.reset();
  shape_refusals.clear();
  for (SeenTask& seen : tasks) seen.refusals = 0;
}

void Outside::wait_for_device(model::TaskIndex index, Instant at) {
  SeenAttempt& attempt = running.at(index);
  if (attempt.end_by) attempt.left = *attempt.end_by - at;
  attempt.end_by.reset();
  attempt.trains_since.reset();
  attempt.promise.cpus = {};
  attempt.ahead = true;
  if (loaded.insert(index).second) ++waiting_in[task(index).shape.value];
}

void Outside::stop_waiting_for_device(model::TaskIndex index) {
  if (loaded.erase(index) == 0) return;
  --waiting_in[task(index).shape.value];
  // Tasks that passed it there did not pass it where it may wait next, with nothing loaded.
  task(index).passed = 0;
}

void Outside::train(const model::GrantDevice& command, Instant at) {
  const model::TaskIndex index = command.key.task;
  SeenAttempt& attempt = running.at(index);
  stop_waiting_for_device(index);
  if (gpus.shares_of(index).empty()) {
    gpus.promise(index, command.site.gpus, command.promise);
  }
  attempt.promise = command.promise;
  attempt.ahead = false;
  attempt.stage = Stage::Train;
  attempt.trains_since = at;
  if (attempt.left) attempt.end_by = at + *attempt.left;
  attempt.left.reset();
  task(index).passed = 0;
}

bool Outside::may_load_ahead(model::TaskIndex index) const {
  int all = 0;
  int alike = 0;
  model::Cpus cpus;
  const bool on_gpus = shape_of(index).terms.request.gpus > 0;
  for (const auto& [other, attempt] : running) {
    if (!attempt.ahead || (starts_before(index, other) && started.contains(other))) continue;
    ++all;
    const model::Request& request = shape_of(other).terms.request;
    if ((request.gpus > 0) != on_gpus) continue;
    ++alike;
    cpus = cpus + request.cpus;
  }
  if (policy.waiting_max > 0 && all >= policy.waiting_max) return false;
  // Enough that there is always one that fits into a gap of a GPU.
  if (on_gpus) return alike < 24;
  return alike == 0 || cpus + shape_of(index).terms.request.cpus <= capacity.cpus;
}

SeenAttempt Outside::release(model::TaskIndex index, Instant at) {
  stop_waiting_for_device(index);
  gpus.release(index, at);
  auto node = running.extract(index);
  SeenAttempt attempt = std::move(node.mapped());
  available += attempt.measured;
  disk_of_ended += attempt.promise.disk;
  --groups[task(index).group.value].running;
  ++waiting_in[task(index).shape.value];
  return attempt;
}

model::Cpus Outside::cpus_free() const {
  model::Cpus free = capacity.cpus;
  for (const auto& [index, attempt] : running) free = free - attempt.promise.cpus;
  return free;
}

model::Request Outside::due(model::TaskIndex index) const {
  if (loaded.contains(index)) {
    // A task that is retried keeps its GPUs.
    model::Request device =
        gpus.shares_of(index).empty() ? task(index).gpu_request : model::Request{};
    device.cpus = shape_of(index).terms.request.cpus;
    return kept_off(within_gpus(device, index));
  }
  model::Request request = kept_off(within_gpus(task(index).request, index));
  request.memory = learned_memory(request.memory, index);
  Bytes alone = available;
  for (const auto& [other, attempt] : running) alone += attempt.measured;
  alone = std::min(alone, capacity.memory) - kept_free;
  const Bytes asked = learned_memory(shape_of(index).terms.request.memory, index);
  if (request.memory > alone) request.memory = std::max(alone, std::min(asked, request.memory));
  return request;
}

model::Request Outside::kept_off(model::Request request) const {
  if (request.gpus == 0) return request;
  model::Request careful = request;
  for (const std::uint32_t gpu : gpus.last_resorts()) {
    careful.avoids.push_back({.machine = {}, .gpu = {gpu}});
  }
  if (careful.avoids.empty() || gpus.would_fit_alone(careful)) return careful;
  if (!request.avoids.empty() && !gpus.would_fit_alone(request)) request.avoids.clear();
  return request;
}

model::Request Outside::within_gpus(model::Request request, model::TaskIndex index) const {
  if (request.gpus == 0 || request.largest) return request;
  const int told = told_per_gpu_max[task(index).shape.value];
  int& most = request.sharing.max_per_gpu;
  if (told != 0) most = most == 0 ? told : std::min(most, told);
  request.gpu_memory = learned_gpu_memory(request.gpu_memory, index);
  const Bytes asked = learned_gpu_memory(shape_of(index).terms.request.gpu_memory, index);
  const Bytes alone = gpus.most_alone(request);
  if (request.gpu_memory > alone) {
    request.gpu_memory = std::max(alone, std::min(asked, request.gpu_memory));
  }
  return request;
}

Bytes Outside::memory_free_by_ledger() const {
  Bytes free = capacity.memory - kept_free;
  for (const auto& [index, attempt] : running) free -= attempt.holds();
  return free;
}

Bytes Outside::memory_free_by_reading() const {
  Bytes free = available - kept_free;
  for (const auto& [index, attempt] : running) {
    free -= std::max(Bytes{}, attempt.promise.memory - attempt.measured);
  }
  return free;
}

Bytes Outside::disk_free() const {
  Bytes free = disk_at_reading.value_or(Bytes{std::numeric_limits<std::int64_t>::max()});
  free -= disk_of_ended;
  for (const auto& [index, attempt] : running) free -= attempt.promise.disk;
  return free;
}

bool Outside::has_room_for(const model::Request& request) const {
  return request.cpus <= cpus_free() && request.memory <= memory_free_by_ledger() &&
         request.memory <= memory_free_by_reading() && gpus.has_room_for(request);
}

model::Request Outside::whole(model::TaskIndex index) const {
  const bool waits_for_device = loaded.contains(index);
  model::Request request = due(index);
  if (!waits_for_device && two_phase(index)) {
    const Bytes memory = request.memory;
    request = kept_off(within_gpus(task(index).gpu_request, index));
    request.memory = memory;
  }
  request.cpus = shape_of(index).terms.request.cpus;
  return request;
}

int Outside::processes_max() const {
  int most = std::numeric_limits<int>::max();
  if (policy.processes_max > 0) most = policy.processes_max;
  if (capacity.processes_max > 0) most = std::min(most, capacity.processes_max);
  return most;
}

bool Outside::group_has_room(model::GroupIndex group) const {
  const int most = plan.groups[group.value].parallel_max;
  return most == 0 || groups[group.value].running < most;
}

bool Outside::had_group_room(model::TaskIndex index) const {
  const SeenTask& seen = task(index);
  const auto later = std::ranges::count_if(started, [&](model::TaskIndex other) {
    return starts_before(index, other) && task(other).group == seen.group &&
           running.contains(other);
  });
  const int most = plan.groups[seen.group.value].parallel_max;
  return most == 0 || groups[seen.group.value].running - later < most;
}

bool Outside::may_use_cpus(model::TaskIndex index) const {
  const bool left_alone =
      policy.cpu_utilization_max >= 1 || cpu_of_others < policy.cpu_utilization_max;
  const auto on_gpus = [this](model::TaskIndex it) { return shape_of(it).terms.request.gpus > 0; };
  return left_alone || on_gpus(index) ||
         std::ranges::all_of(running, [&](const auto& it) { return on_gpus(it.first); });
}

bool Outside::gate_open() const {
  return interrupts == 0 && !keeper_silent && !is_paused() &&
         std::cmp_less(running.size(), processes_max());
}

std::optional<model::TaskIndex> Outside::oldest_without_room() const {
  const model::Cpus cpus = cpus_free();
  const Bytes memory = std::min(memory_free_by_ledger(), memory_free_by_reading());
  const std::optional<model::TaskIndex> oldest_loaded = oldest_loaded_without_device();
  std::set<bool> loads_wait;  // For tasks on GPUs, and for the others.
  for (const model::TaskIndex index : waiting_in_order()) {
    if (oldest_loaded && starts_before(*oldest_loaded, index)) break;
    // Tasks that may not be loaded ahead yet lack no room, and go one after the other.
    const bool on_gpus = shape_of(index).terms.request.gpus > 0;
    if (two_phase(index) && !may_load_ahead(index) && had_group_room(index)) {
      loads_wait.insert(on_gpus);
    }
    if (!may_use_cpus(index) || !group_has_room(task(index).group)) continue;
    if (two_phase(index) && loads_wait.contains(on_gpus)) continue;
    const model::Request needs = due(index);
    if (settling.contains(index) || without_disk.contains(index)) continue;
    if (needs.cpus > cpus || needs.memory > memory || !gpus.has_room_for(needs)) return index;
  }
  return oldest_loaded;
}

std::optional<model::TaskIndex> Outside::oldest_loaded_without_device() const {
  const std::vector<model::TaskIndex> all = loaded_in_order();
  const auto found = std::ranges::find_if(all, [&](model::TaskIndex it) {
    const model::Request needs = due(it);
    return !settling.contains(it) && (needs.cpus > cpus_free() || !gpus.has_room_for(needs));
  });
  if (found == all.end()) return std::nullopt;
  return *found;
}

IdleGpus Outside::idle_gpus() const {
  if (policy.gpu_strategy != model::GpuStrategy::IdleFirst) return IdleGpus::LikeOthers;
  const auto wants_whole_one = [this](model::TaskIndex index) {
    if (task(index).gpu_request.gpu_memory > Bytes{}) return false;
    const model::Request needs = due(index);
    return needs.gpus > 0 && needs.gpu_memory == Bytes{};
  };
  const bool one_waits = std::ranges::any_of(loaded, wants_whole_one) ||
                         std::ranges::any_of(waiting, [&](model::TaskIndex index) {
                           return group_has_room(task(index).group) && wants_whole_one(index);
                         });
  return one_waits ? IdleGpus::LikeOthers : IdleGpus::First;
}

bool Outside::is_owed_its_room(model::TaskIndex index, Instant at) const {
  const SeenTask& seen = task(index);
  if (seen.passed == 0) return false;
  Duration durations{0};
  std::int64_t ended_well = 0;
  for (const SeenGroup& group : groups) {
    durations += group.durations;
    ended_well += group.ended_well;
  }
  const Duration usual = ended_well > 0 ? durations / ended_well : Duration{0};
  const Duration longest = std::max(policy.passed_time_max, 10 * usual);
  return seen.passed >= policy.passes_max || at - seen.passed_since >= longest;
}

std::optional<Instant> Outside::expected_end(const SeenAttempt& attempt, Instant at) const {
  const SeenGroup& group = groups[task(attempt.key.task).group.value];
  const Duration limit = time_limit_of(attempt.key.task);
  if (!attempt.trains_since) return std::nullopt;
  const Instant began = *attempt.trains_since;
  if (group.ended_well > 0) return std::max(at, began + group.durations / group.ended_well);
  if (limit > Duration{0}) return std::max(at, began + limit);
  return std::nullopt;
}

std::optional<Opening> Outside::opening_for(model::TaskIndex index, Instant at) const {
  struct Gift {
    std::optional<Instant> at;
    Bytes memory;
    model::Cpus cpus;
    std::vector<SeenShare> gpus;
    bool of_one_that_runs = false;
    std::size_t turn = 0;

    [[nodiscard]] Bytes gpu_memory() const {
      Bytes sum;
      for (const SeenShare& share : gpus) sum += share.holds();
      return sum;
    }
  };
  std::vector<Gift> gifts;
  gifts.reserve(running.size());
  for (const auto& [other, attempt] : running) {
    gifts.push_back({.at = expected_end(attempt, at),
                     .memory = attempt.holds(),
                     .cpus = attempt.promise.cpus,
                     .gpus = gpus.shares_of(other),
                     .of_one_that_runs = true});
  }
  for (const OutsideGpus::Left& left : gpus.left_behind()) {
    SeenShare share = left.share;
    // It has no owner any more.
    share.promise = share.measured = share.holds();
    gifts.push_back({.at = left.until, .memory = {}, .cpus = {}, .gpus = {share}});
  }
  // Gifts with an unknown time come last, the smallest first.
  for (std::size_t i = 0; i < gifts.size(); ++i) gifts[i].turn = i;
  std::ranges::sort(gifts, [](const Gift& a, const Gift& b) {
    if (a.at.has_value() != b.at.has_value()) return a.at.has_value();
    if (a.at && *a.at != *b.at) return *a.at < *b.at;
    return std::tuple(a.memory, a.cpus, a.gpu_memory(), a.turn) <
           std::tuple(b.memory, b.cpus, b.gpu_memory(), b.turn);
  });
  const model::Request need = due(index);
  Opening opening{.at = {},
                  .memory_beside = std::min(memory_free_by_ledger(), memory_free_by_reading()),
                  .cpus_beside = cpus_free(),
                  .gpus_beside = gpus.now()};
  std::size_t given = 0;
  const auto give = [&](const Gift& gift) {
    opening.memory_beside += gift.memory;
    opening.cpus_beside = opening.cpus_beside + gift.cpus;
    for (const SeenShare& share : gift.gpus) {
      SeenGpu& gpu = opening.gpus_beside[share.gpu.value];
      gpu.free += share.holds();
      --gpu.users;
      if (share.promise == Bytes{}) gpu.owned = false;
      if (gift.of_one_that_runs) gpu.sharing.erase(std::ranges::find(gpu.sharing, share.sharing));
    }
  };
  while (need.memory > opening.memory_beside || need.cpus > opening.cpus_beside ||
         !gpus.right_ones(opening.gpus_beside, need)) {
    if (given == gifts.size()) return std::nullopt;
    // Resources that are released at one moment come together, but those with an unknown time come
    // singly.
    opening.at = gifts[given].at;
    do {
      give(gifts[given++]);
    } while (opening.at && given < gifts.size() && gifts[given].at == opening.at);
  }
  opening.memory_beside -= need.memory;
  opening.cpus_beside = opening.cpus_beside - need.cpus;
  const auto on = gpus.right_ones(opening.gpus_beside, need);
  take_from(opening.gpus_beside, need, on.value_or(std::vector<model::GpuIndex>{}));
  return opening;
}

std::optional<std::vector<model::GpuIndex>> Outside::place_beside(
    const Opening& opening, model::TaskIndex other, const std::vector<model::GpuIndex>& on) const {
  const model::Request needs = whole(other);
  if (needs.memory > opening.memory_beside || needs.cpus > opening.cpus_beside) return std::nullopt;
  // A task that loads now trains later, at an unknown time and place.
  const bool loads = two_phase(other) && !loaded.contains(other);
  if (loads) return gpus.right_ones(opening.gpus_beside, needs);
  // A task that is retried has its GPUs already.
  const bool fit = needs.gpus == 0 || std::ranges::all_of(on, [&](model::GpuIndex gpu) {
                     return gpus.fits(opening.gpus_beside[gpu.value], gpu, needs);
                   });
  return fit ? std::optional(on) : std::nullopt;
}

void Outside::take_beside(Opening& opening, model::TaskIndex other,
                          const std::vector<model::GpuIndex>& on) const {
  const auto there = place_beside(opening, other, on);
  if (!there) return;
  const model::Request needs = whole(other);
  opening.memory_beside -= needs.memory;
  opening.cpus_beside = opening.cpus_beside - needs.cpus;
  if (needs.gpus > 0) take_from(opening.gpus_beside, needs, *there);
}

bool Outside::would_delay(const Opening& opening, model::TaskIndex other,
                          const std::vector<model::GpuIndex>& on, Instant at) const {
  if (place_beside(opening, other, on)) return false;
  const SeenTask& seen = task(other);
  const bool loads = two_phase(other) && !loaded.contains(other);
  const SeenGroup& group = groups[seen.group.value];
  const Duration limit = shape_of(other).terms.time_limit;
  std::optional<Duration> takes;
  if (loads) {
    takes.reset();
  } else if (group.ended_well > 0) {
    takes = group.longest;
  } else if (limit > Duration{0}) {
    takes = limit;
  }
  const bool gone = opening.at && takes && at + *takes <= *opening.at;
  return !gone;
}

Bytes after_out_of_memory(Bytes had, Bytes peak, Bytes most) {
  const Bytes more = std::max({had, Bytes{had.count + (had.count / 5)}, peak});
  return std::max(had, std::min(most, more));
}

}  // namespace trainyard::sim
